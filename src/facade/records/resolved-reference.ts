import { PosthornError } from '../../core/errors.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { resolve } from './lookup.ts';
import { nouns } from './nouns.ts';

/** How a spec names another resource. */
export interface Ref {
  name: string;
}

/**
 * Target of the id or slug in a field of a body; one of `present` may be sent back although it points at nothing. INVALID_SOURCE for
 * a source or destination that is not there, VALIDATION_FAILED for another resource.
 */
export async function reference(call: Call, kind: ServedKind, field: string, idOrSlug: string, present: readonly Ref[]): Promise<Ref> {
  const object = await resolve(call, kind, idOrSlug);
  if (object !== null) return { name: object.metadata.name };
  if (present.some(({ name }) => name === idOrSlug)) return { name: idOrSlug };
  const isEnd = kind === 'Source' || kind === 'Destination';
  throw new PosthornError(isEnd ? 'INVALID_SOURCE' : 'VALIDATION_FAILED', `${field}: there is no ${nouns[kind]} "${idOrSlug}".`);
}

/** VALIDATION_FAILED when two items of a list refer to the same resource. */
export function refuseRepeated(field: string, kind: ServedKind, refs: readonly Ref[]): void {
  const names = refs.map(({ name }) => name);
  const index = names.findIndex((name, at) => names.indexOf(name) < at);
  if (index < 0) return;
  throw new PosthornError('VALIDATION_FAILED', `${field}[${index}] names the ${nouns[kind]} "${names[index]}" a second time.`);
}
