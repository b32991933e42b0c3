import { isUtf8 } from 'node:buffer';
import { payloadText, withoutByteOrderMark } from '../../../core/payload-text.ts';
import { isJson } from '../../../core/plain-json.ts';
import { RawJson } from '../../http/raw-json.ts';

/** How a payload is shown: JSON unchanged, other text as text, both without a byte order mark; everything else in base64. */
export function shownPayload(payload: Buffer | null): { payload: unknown; payloadEncoding: 'json' | 'text' | 'base64' | null } {
  if (payload === null) return { payload: null, payloadEncoding: null };
  if (!isUtf8(payload)) return { payload: payload.toString('base64'), payloadEncoding: 'base64' };
  const text = payloadText(payload);
  if (!isJson(text)) return { payload: text, payloadEncoding: 'text' };
  return { payload: new RawJson(text), payloadEncoding: 'json' };
}

/** The same of the beginning of a payload of `size` bytes: never JSON, because that would not be whole, and no broken character at its end. */
export function shownBeginning(beginning: Buffer, size: number): ReturnType<typeof shownPayload> {
  if (beginning.length >= size) return shownPayload(beginning);
  const text = beginning.toString('utf8');
  const whole = text.endsWith('\ufffd') ? text.replace(/\ufffd{1,3}$/u, '') : text;
  const isText = Buffer.from(whole, 'utf8').equals(beginning.subarray(0, Buffer.byteLength(whole)));
  if (!isText) return { payload: beginning.toString('base64'), payloadEncoding: 'base64' };
  return { payload: withoutByteOrderMark(whole), payloadEncoding: 'text' };
}
