import { createHash, timingSafeEqual } from 'node:crypto';
import { PosthornError } from '../../core/errors.ts';

/** Where a page ended: its last index entry. Lists are in the order of time, shard and number, the highest first. */
export interface Position {
  ms: number;
  shard: number;
  number: number;
}

/** Where a list begins. */
export const newest: Position = { ms: 9_999_999_999_999, shard: 0, number: 0 };
const checkLength = 9;

/**
 * Cursors hold no secret and grant nothing, so a checksum over position and list is enough to detect a forged or misplaced
 * one. `scope` names the list: organization and filter. `mark`: lower-case letters that come back with the position.
 */
export function encodeCursor(position: Position, scope: string, mark = ''): string {
  return cursorOf(`${position.ms}-${position.shard}-${position.number}${mark === '' ? '' : `-${mark}`}`, scope);
}

/** The newest end for an absent cursor. Throws INVALID_QUERY for one that `encodeCursor` has not made for this list. */
export function decodeCursor(cursor: string | undefined, scope: string): { position: Position; mark: string } {
  if (cursor === undefined) return { position: newest, mark: '' };
  const match = /^(\d{1,14})-(\d{1,4})-(\d{1,16})(?:-([a-z]+))?$/.exec(cursorText(cursor, scope));
  if (match === null) throw invalid();
  return { position: { ms: Number(match[1]), shard: Number(match[2]), number: Number(match[3]) }, mark: match[4] ?? '' };
}

/** Whether the first comes before the second in a list. */
export function isBefore(one: Position, other: Position): boolean {
  if (one.ms !== other.ms) return one.ms > other.ms;
  return one.shard === other.shard ? one.number > other.number : one.shard > other.shard;
}

/** A cursor that holds any text; see `encodeCursor`. */
export function cursorOf(text: string, scope: string): string {
  return Buffer.concat([checksum(text, scope), Buffer.from(text)]).toString('base64url');
}

/** Throws INVALID_QUERY for one that `cursorOf` has not made for this list. */
export function cursorText(cursor: string, scope: string): string {
  const decoded = Buffer.from(cursor, 'base64url');
  const text = decoded.subarray(checkLength).toString();
  // Characters outside base64url are dropped when it is decoded, and so are unused bits at the end.
  const isAsMade = decoded.length > checkLength && decoded.toString('base64url') === cursor;
  if (!isAsMade || !timingSafeEqual(decoded.subarray(0, checkLength), checksum(text, scope))) throw invalid();
  return text;
}

function invalid(): PosthornError {
  return new PosthornError('INVALID_QUERY', 'Query: cursor must be the nextCursor of an answer to this query, with the same filters.', {
    details: { cursor: ['is not valid'] },
  });
}

function checksum(body: string, scope: string): Buffer {
  return createHash('sha256').update(`posthorn-cursor\n${scope}\n${body}`).digest().subarray(0, checkLength);
}
