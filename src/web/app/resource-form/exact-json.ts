import { memberTexts } from '../../ui/json-layout.ts';

const texts = /"(?:\\.|[^"\\])*"/g;
const numbers = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** What JavaScript makes of a number as it is written; undefined for what is none, and for one whose digits it does not keep. */
export function exactNumber(written: string): number | undefined {
  const value = Number(written);
  const digits = digitsOf(written);
  return digits !== null && Number.isFinite(value) && digits === digitsOf(String(value)) ? value : undefined;
}

/** The significant digits with their exponent, the same for `1.50`, `1.5` and `15e-1`. */
function digitsOf(written: string): string | null {
  const [, sign = '', whole = '', part = '', power = '0'] = /^\s*(-?)(\d+)\.?(\d*)(?:[eE]([+-]?\d+))?\s*$/.exec(written) ?? [];
  if (whole === '') return null;
  const all = `${whole}${part}`.replace(/^0+/, '');
  const kept = all.replace(/0+$/, '');
  return kept === '' ? '0' : `${sign}${kept}e${Number(power) - part.length + all.length - kept.length}`;
}

/** The first number in a JSON text that is not kept with all its digits; null: all are. */
export function inexactNumber(json: string): string | null {
  return (
    json
      .replaceAll(texts, '""')
      .match(numbers)
      ?.find((written) => exactNumber(written) === undefined) ?? null
  );
}

/** Names of the members of a record, as the API returned it, that hold such a number. */
export function inexactMembers(answer: string): string[] {
  const all = memberTexts(answer) ?? new Map<string, string>();
  const record = all.get('data') ?? all.get('cronJob');
  const members = (record === undefined ? null : memberTexts(record)) ?? all;
  return [...members].flatMap(([name, text]) => (inexactNumber(text) === null ? [] : [name]));
}

/** Why such a number is not taken. */
export function inexactWords(written: string): string {
  return `The form does not keep all digits of ${written}. Change this by the API.`;
}

/** The value of a JSON text, or undefined where it is none. */
export function parsedJson(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** A value in a field that takes JSON or a text. A text that would be read as JSON is in quotes. */
export function typedText(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value !== 'string') return JSON.stringify(value, null, 2);
  return value.trim() === '' || parsedJson(value) !== undefined ? JSON.stringify(value) : value;
}

/** What such a field means; undefined: nothing. */
export function typedValue(text: string): unknown {
  if (text.trim() === '') return undefined;
  const read = parsedJson(text);
  return read === undefined ? text : read.value;
}
