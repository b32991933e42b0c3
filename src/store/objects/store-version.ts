import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import { base32 } from '../../core/ids.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { Version } from '../store.ts';

/**
 * Versions of the redis and memory stores: `<revision>-<marker>`. Revisions are dense, one per change of any object; the marker is
 * random and made with the store, so that a version from before a store was emptied fits nothing in it.
 */
export interface Revision {
  revision: number;
  marker: string;
}

export function newStoreId(): string {
  return base32(randomBytes(5));
}

export function toVersion({ revision, marker }: Revision): Version {
  return `${revision}-${marker}` as Version;
}

/** Null when the text is no version of such a store. */
export function parseVersion(version: string): Revision | null {
  const match = /^(\d{1,15})-([a-z2-7]{8})$/.exec(version);
  return match === null ? null : { revision: Number(match[1]), marker: match[2] ?? '' };
}

/** EXPIRED, with which a reader lists again. */
export function expired(what: string): PosthornError {
  return new PosthornError('EXPIRED', `${what} is too old; list again`);
}

/** The state of the log of changes: its last revision, and the oldest that it still has (one above the last when it is empty). */
export interface Position extends Revision {
  oldest: number;
}

/** Throws EXPIRED when the changes after `version` are no longer all in the log. */
export function requireInLog({ revision, marker }: Revision, position: Position, what: string): void {
  if (marker !== position.marker || revision > position.revision || revision < position.oldest - 1) throw expired(what);
}

const tokenSchema = z.strictObject({ version: z.string(), after: z.string() });

/** Where the next page of a list begins: after this member, in the order of names, of the list that had this version. */
export interface ContinueToken {
  version: Revision;
  after: string;
}

export function writeContinueToken({ version, after }: ContinueToken): string {
  return Buffer.from(JSON.stringify({ version: toVersion(version), after })).toString('base64url');
}

/** Throws BAD_REQUEST when it is none. */
export function readContinueToken(text: string): ContinueToken {
  try {
    const { version, after } = tokenSchema.parse(parsePlainJson(Buffer.from(text, 'base64url').toString('utf8')));
    const revision = parseVersion(version);
    if (revision !== null) return { version: revision, after };
  } catch {
    // said below
  }
  throw new PosthornError('BAD_REQUEST', 'the continue token is malformed');
}
