import { byKind, kinds, type ServedKind, servedKinds } from '../../resources/kinds.ts';

/** Noun of each kind in the API. */
export const nouns: Readonly<Record<ServedKind, string>> = byKind(servedKinds, (kind) => kinds[kind].noun);
