import { isRecord } from '../../resources/field-tree.ts';

/** Characters that YAML refuses, or takes for a line break and folds, where JSON has any character: DEL, C1, line and paragraph separator, BOM and the like. */
const unlikeJson = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** One escape of a JSON text, whole, so that an escaped backslash does not begin another. */
const jsonEscapes = /\\(?:u[0-9a-f]{4}|.)/g;

/** Characters from its beginning in which YAML expects the colon of a key without an indicator. */
const colonWithin = 1024;

/**
 * A value as JSON that the API server's YAML parser, which reads the bodies of server-side apply, reads as the same value. Half of a
 * surrogate pair, which is no character, becomes U+FFFD there as in the server's own JSON.
 */
export function yamlOf(value: unknown): string {
  if (typeof value === 'string') return textOf(value);
  if (Array.isArray(value)) return `[${value.map((item) => yamlOf(item ?? null)).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${keyOf(name)}:${yamlOf(member)}`).join(',')}}`;
}

function keyOf(name: string): string {
  const key = textOf(name);
  return key.length < colonWithin ? key : `? ${key}`;
}

function textOf(text: string): string {
  const json = JSON.stringify(text).replaceAll(unlikeJson, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return json.includes('\\ud') ? json.replaceAll(jsonEscapes, (sequence) => (/^\\ud[89a-f]/.test(sequence) ? '\\ufffd' : sequence)) : json;
}
