import { byKind, kinds, type ServedKind, servedKinds } from '../../resources/kinds.ts';

/** What the API calls one of each kind. */
export const nouns: Readonly<Record<ServedKind, string>> = byKind(servedKinds, (kind) => kinds[kind].noun);
