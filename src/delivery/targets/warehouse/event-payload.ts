import { isUtf8 } from 'node:buffer';
import { payloadText } from '../../../core/payload-text.ts';

/** What JSON says; text that is no JSON is a string, bytes that are no text are one in Base64. `json` has no line breaks. */
export function eventPayload(payload: Buffer): { value: unknown; json: string } {
  const text = isUtf8(payload) ? payloadText(payload) : payload.toString('base64');
  try {
    return { value: JSON.parse(text), json: text.replaceAll(/[\r\n]+/g, ' ').trim() };
  } catch {
    return { value: text, json: JSON.stringify(text) };
  }
}
