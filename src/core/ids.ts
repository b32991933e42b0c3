import { createHash } from 'node:crypto';
import { base32Letters, randomBase32 } from './random.ts';

/** RFC 4648 base32, lower case, without padding. */
export function base32(bytes: Uint8Array): string {
  let out = '';
  let buffer = 0;
  let bits = 0;
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      out += base32Letters[(buffer >>> (bits - 5)) & 31];
      bits -= 5;
    }
    buffer &= (1 << bits) - 1;
  }
  if (bits > 0) out += base32Letters[(buffer << (5 - bits)) & 31];
  return out;
}

/** The annotation by which a restored object keeps the id it had. */
export const idAnnotation = 'posthorn.dev/id';

const keptPattern = /^[a-z]+_[a-z2-7]{26}$/;

/** API id of a resource: prefix + base32 of the 16 bytes of `metadata.uid`, or the annotation's value when it is such an id. */
export function resourceId(prefix: string, metadata: { uid: string; annotations?: Record<string, string> }): string {
  const kept = metadata.annotations?.[idAnnotation];
  return kept !== undefined && isKept(prefix, kept) ? kept : idOfUid(prefix, metadata);
}

/** Whether the object requests, by its annotation, another id than that of its `metadata.uid`. */
export function requestsAnotherId(prefix: string, metadata: { uid: string; annotations?: Record<string, string> }): boolean {
  return resourceId(prefix, metadata) !== idOfUid(prefix, metadata);
}

function idOfUid(prefix: string, { uid }: { uid: string }): string {
  return prefix + base32(Buffer.from(uid.replaceAll('-', ''), 'hex'));
}

/** Whether the object requests an id that it cannot have: not one of its kind. */
export function requestsForeignId(prefix: string, { annotations }: { annotations?: Record<string, string> }): boolean {
  const kept = annotations?.[idAnnotation];
  return kept !== undefined && !isKept(prefix, kept);
}

function isKept(prefix: string, id: string): boolean {
  return id.startsWith(prefix) && keptPattern.test(id);
}

const shardStart = 'msg_'.length;
const shardWidth = 2;
const timeWidth = 9;
const randomWidth = 16;

/**
 * Time-ordered id of an event or a message that names its shard: prefix, 2 characters shard number (base 36),
 * 9 characters milliseconds (base 36), 16 characters (80 bits) of randomness. Contains no `.` (Standard Webhooks).
 */
export function newTimedId(prefix: 'evt_' | 'msg_', shard: number, nowMs: number): string {
  return prefix + shard.toString(36).padStart(shardWidth, '0') + nowMs.toString(36).padStart(timeWidth, '0') + randomBase32(randomWidth);
}

/** The id that `name` always has: of a record that is made again after its maker died. `nowMs` is part of the name. */
export function derivedTimedId(prefix: 'evt_' | 'msg_', shard: number, nowMs: number, name: string): string {
  const random = createHash('sha256').update(name).digest().subarray(0, 10);
  return prefix + shard.toString(36).padStart(shardWidth, '0') + nowMs.toString(36).padStart(timeWidth, '0') + base32(random);
}

const timedIdPattern = /^(?:evt|msg)_([0-9a-z]{2})([0-9a-z]{9})[a-z2-7]{16}$/;

/** The shard that an id made by `newTimedId` names; null when it is not one. */
export function shardOfTimedId(id: string): number | null {
  return timedIdPattern.test(id) ? Number.parseInt(id.slice(shardStart, shardStart + shardWidth), 36) : null;
}

/** Shard and creation time of an id made by `newTimedId`; null when it is not one. */
export function parseTimedId(id: string): { shard: number; createdAtMs: number } | null {
  const match = timedIdPattern.exec(id);
  if (match === null) return null;
  return { shard: Number.parseInt(match[1] ?? '', 36), createdAtMs: Number.parseInt(match[2] ?? '', 36) };
}
