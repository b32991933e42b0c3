import { PosthornError } from '../../core/errors.ts';

/** Readers of script replies, which arrive as unknown values; a reply of another shape is a defect and throws INTERNAL. */

export function list(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw unexpected('a list', value);
}

export function text(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Buffer.isBuffer(value)) return value.toString();
  throw unexpected('text', value);
}

export function bytes(value: unknown): Buffer {
  if (Buffer.isBuffer(value)) return value;
  throw unexpected('bytes', value);
}

export function integer(value: unknown): number {
  const number = typeof value === 'number' ? value : Number(text(value));
  if (Number.isFinite(number)) return number;
  throw unexpected('a number', value);
}

/** A hash as the flat list of its fields and values. */
export function fields(value: unknown): Map<string, string> {
  const flat = list(value);
  const map = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) map.set(text(flat[i]), text(flat[i + 1]));
  return map;
}

function unexpected(what: string, value: unknown): PosthornError {
  return new PosthornError('INTERNAL', `a script was expected to answer ${what}, not ${typeof value}`);
}
