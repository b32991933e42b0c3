import { isUtf8 } from 'node:buffer';
import { readLargePayload, wholeJsonBytes } from './large-json.ts';
import { payloadText } from './payload-text.ts';
import { isJson } from './plain-json.ts';
import { readJson } from './read-json.ts';

/** The JSON form of a payload, without line breaks: text that is no JSON is a string, bytes that are no text are one in Base64. */
export function payloadJson(payload: Buffer): string {
  // Base64 may read as JSON: `true`, `null`, a number.
  if (!isUtf8(payload)) return JSON.stringify(payload.toString('base64'));
  const text = payloadText(payload);
  return isJson(text) ? text.replaceAll(/[\r\n]+/g, ' ').trim() : JSON.stringify(text);
}

/** The value of that JSON. Yields between chunks of a large one. */
export function* payloadValue(payload: Buffer): Generator<undefined, unknown> {
  if (!isUtf8(payload)) return payload.toString('base64');
  const value = payload.length > wholeJsonBytes ? yield* readLargePayload(payload) : readJson(payloadText(payload));
  return value === undefined ? payloadText(payload) : value;
}
