import { randomUUID } from 'node:crypto';
import { isRecord } from '../../resources/field-tree.ts';

/** JSON text that is sent unchanged: reparsing would lose digits of large numbers and duplicate keys. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON text of a value that contains `RawJson` unchanged. */
export function jsonText(value: unknown): string {
  return holdsRawJson(value) ? withRawJson(value) : JSON.stringify(value);
}

function holdsRawJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof RawJson) return true;
  if (Array.isArray(value)) return value.some(holdsRawJson);
  for (const name in value) if (holdsRawJson(Reflect.get(value, name))) return true;
  return false;
}

function withRawJson(value: unknown): string {
  const texts: string[] = [];
  // Random, so that nothing in the value is taken for it.
  const mark = randomUUID();
  const json = JSON.stringify(value, (_key, member: unknown) => {
    if (!(member instanceof RawJson)) return member;
    texts.push(member.text);
    return mark;
  });
  return json
    .split(`"${mark}"`)
    .map((piece, i) => piece + (texts[i] ?? ''))
    .join('');
}

/** Whether the answer has a list that can be written in pieces. */
export function hasList(answer: unknown): answer is Record<string, unknown> {
  return isRecord(answer) && Object.values(answer).some((value) => Array.isArray(value) && value.length > 1);
}

/** `jsonText` of an answer in pieces: yields after each item of a list. One item may be as large as a body. */
export function* jsonTextInPieces(answer: Record<string, unknown>): Generator<undefined, string> {
  const members: string[] = [];
  for (const [name, value] of Object.entries(answer)) {
    if (value === undefined) continue;
    members.push(`${JSON.stringify(name)}:${Array.isArray(value) ? yield* listText(value) : jsonText(value)}`);
  }
  return `{${members.join(',')}}`;
}

function* listText(items: readonly unknown[]): Generator<undefined, string> {
  const pieces: string[] = [];
  for (const item of items) {
    pieces.push(jsonText([item]).slice(1, -1));
    yield;
  }
  return `[${pieces.join(',')}]`;
}
