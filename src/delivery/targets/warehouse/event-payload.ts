import { isUtf8 } from 'node:buffer';
import { payloadText } from '../../../core/payload-text.ts';

/** What JSON says; text that is no JSON is a string, bytes that are no text are one in Base64. `json` has no line breaks. */
export function eventPayload(payload: Buffer): { value: unknown; json: string } {
  if (!isUtf8(payload)) {
    // Base64 may read as JSON: `true`, `null`, a number.
    const value = payload.toString('base64');
    return { value, json: JSON.stringify(value) };
  }
  const text = payloadText(payload);
  try {
    return { value: JSON.parse(text), json: text.replaceAll(/[\r\n]+/g, ' ').trim() };
  } catch {
    return { value: text, json: JSON.stringify(text) };
  }
}
