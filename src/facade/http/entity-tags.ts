import { PosthornError } from '../../core/errors.ts';
import type { Call } from './operation.ts';

/** The entity tag of a version of a record (RFC 9110). */
export function entityTag(...version: readonly (string | number)[]): string {
  return `"${version.join('.')}"`;
}

/** The tags that an `If-Match` names; null: any. A compressing proxy makes tags weak: they name the same version. */
export function ifMatchIn(header: string | undefined): readonly string[] | null {
  if (header === undefined) return null;
  const tags = header.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') ? null : tags;
}

/** PRECONDITION_FAILED when the request is about other versions of the record than this one. */
export function requireVersion({ ifMatch }: Pick<Call, 'ifMatch'>, noun: string, tag: string): void {
  if (ifMatch !== null && !ifMatch.includes(tag)) throw hasChanged(noun);
}

export function hasChanged(noun: string, cause?: unknown): PosthornError {
  return new PosthornError('PRECONDITION_FAILED', `The ${noun} has changed since it was read; read it again.`, { cause });
}
