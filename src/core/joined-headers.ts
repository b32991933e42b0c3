import { isUtf8 } from 'node:buffer';

/** Headers by name, as text; one that came several times is joined, as RFC 9110 section 5.3 allows. */
export function joinedHeaders(headers: readonly (readonly [string, string])[]): Record<string, string> {
  const joined = new Map<string, string>();
  for (const [name, value] of headers) {
    const before = joined.get(name);
    const text = headerText(value);
    joined.set(name, before === undefined ? text : `${before}, ${text}`);
  }
  return Object.fromEntries(joined);
}

const beyondAscii = /[\u0080-\u00ff]/;
const bytesOnly = /^[\0-\u00ff]*$/;

/** The text of a header as node:http has it, a character for each byte: senders write UTF-8, too. What is no UTF-8 stays. */
export function headerText(value: string): string {
  if (!beyondAscii.test(value) || !bytesOnly.test(value)) return value;
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString() : value;
}
