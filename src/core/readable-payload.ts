import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { wholePayloadBytes } from './payload-sizes.ts';
import { payloadText } from './payload-text.ts';
import { isJson } from './plain-json.ts';

export const readableLimits = {
  codings: 2,
  /** Of a form. */
  fields: 5000,
  boundaryLength: 200,
  /** Bytes of the headers of a part of a multipart form. */
  partHead: 8192,
};

/** What the sender says of the bytes, in the words of HTTP; empty: nothing. */
export interface PayloadFormat {
  contentType: string;
  contentEncoding: string;
}

export interface ReadablePayload {
  /** JSON, or a text or bytes without fields. */
  bytes: Buffer;
  /** Why a compressed payload stays as it is; null: it does not, or was not compressed. */
  problem: string | null;
  /** Without its content coding it has more than `maxBytes`, and therefore stays as it is. */
  isTooLarge?: true;
}

/**
 * Returns what filters, schemas, transforms and field mappings read of a payload: a compressed one decompressed, and a form as JSON, an object with its
 * fields. A field that occurs several times has the list of its values; files have no field. A form whose only field is `payload`, with JSON in it, is
 * that JSON, as GitHub, Slack and Plex send it. A form with more fields than `readableLimits.fields` has none. Posthorn stores and relays the bytes as they
 * were sent. It takes up to some ms for each MiB, so that payloads above 1 MiB are read in the sandbox. `maxBytes`: of a decompressed payload; default: 1 MiB.
 */
export function readablePayload(
  payload: Buffer,
  { contentType, contentEncoding }: PayloadFormat,
  maxBytes = wholePayloadBytes,
): ReadablePayload {
  const plain: ReadablePayload =
    contentEncoding === '' ? { bytes: payload, problem: null } : decompressed(payload, contentEncoding, maxBytes);
  if (plain.problem !== null || !formType.test(contentType)) return plain;
  const fields = isMultipart(contentType) ? multipartFields(plain.bytes, contentType) : urlEncodedFields(plain.bytes);
  return fields === null ? plain : { bytes: Buffer.from(formJson(fields)), problem: null };
}

/** Returns the format that the headers of a request name. */
export function requestFormat(headers: IncomingHttpHeaders): PayloadFormat {
  return { contentType: headers['content-type'] ?? '', contentEncoding: headers['content-encoding'] ?? '' };
}

/** Returns the format of a stored event; the names of its headers are in lower case. */
export function storedFormat(contentType: string, headers: readonly (readonly [string, string])[]): PayloadFormat {
  const encodings = headers.filter(([name]) => name === 'content-encoding');
  return { contentType, contentEncoding: encodings.map(([, value]) => value).join(',') };
}

const formType = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data)\s*(?:;|$)/i;
const isMultipart = (contentType: string): boolean => /^\s*multipart/i.test(contentType);

type Decompress = (bytes: Buffer, options: { maxOutputLength: number }) => Buffer;

const inflate: Decompress = (bytes, options) => {
  // The name means the format of zlib; senders that take it by its word leave the two bytes at its head out.
  const [first = 0, second = 0] = bytes;
  const hasHead = (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
  return hasHead ? inflateSync(bytes, options) : inflateRawSync(bytes, options);
};

const codings = new Map<string, Decompress>([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflate],
  ['br', brotliDecompressSync],
  ['zstd', zstdDecompressSync],
]);

function decompressed(payload: Buffer, contentEncoding: string, maxBytes: number): ReadablePayload {
  const applied = contentEncoding
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  // Some proxies decompress a body and leave the header.
  const kept = (problem: string): ReadablePayload => ({ bytes: payload, problem: isJsonPayload(payload) ? null : problem });
  if (applied.length > readableLimits.codings) return kept(`the payload has more than ${readableLimits.codings} content codings`);
  let bytes = payload;
  for (const name of applied.reverse()) {
    const decompress = codings.get(name);
    if (decompress === undefined) return kept(`the content coding ${name.slice(0, 40)} of the payload is not known`);
    try {
      bytes = decompress(bytes, { maxOutputLength: maxBytes });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') return kept(`the payload is not valid ${name}`);
      const tooLarge = kept(`the payload has more than ${maxBytes} bytes without its content coding ${name}`);
      return tooLarge.problem === null ? tooLarge : { ...tooLarge, isTooLarge: true };
    }
  }
  return { bytes, problem: null };
}

function isJsonPayload(payload: Buffer): boolean {
  return isUtf8(payload) && isJson(payloadText(payload));
}

type Field = [name: string, value: string];

const [plusSign, space] = [0x2b, 0x20];

/** Null: no form, as the JSON that curl sends under this type unless it is told another, or too many fields. */
function urlEncodedFields(body: Buffer): Field[] | null {
  const sent = payloadText(body);
  if (/^\s*[[{]/.test(sent) && isJson(sent)) return null;
  const text = sent.includes('+') ? payloadText(withoutPlusSigns(body)) : sent;
  let separators = 0;
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) if (++separators >= readableLimits.fields) return null;
  return [...new URLSearchParams(text)];
}

/** With the spaces that plus signs stand for. URLSearchParams takes 100 ns for each plus sign: for 1 MiB as long as for all else. */
function withoutPlusSigns(body: Buffer): Buffer {
  const plain = Buffer.from(body);
  for (let at = 0; at < plain.length; at++) if (plain[at] === plusSign) plain[at] = space;
  return plain;
}

/** Null: not the form that the type promises, or too many fields. */
function multipartFields(body: Buffer, contentType: string): Field[] | null {
  const [, quoted, plain = ''] = /;\s*boundary=(?:"([^"]+)"|([^\s;"]+))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === '' || boundary.length > readableLimits.boundaryLength) return null;
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
  const first = delimiter.subarray(2);
  const fields: Field[] = [];
  let start = body.subarray(0, first.length).equals(first) ? first.length : after(body, delimiter, 0);
  for (let parts = 0; start !== null && body.toString('latin1', start, start + 2) !== '--'; parts++) {
    const end = body.indexOf(delimiter, start);
    if (end < 0 || parts >= readableLimits.fields) return null;
    const field = partField(body.subarray(start, end));
    if (field !== null) fields.push(field);
    start = end + delimiter.length;
  }
  return start === null ? null : fields;
}

function after(body: Buffer, delimiter: Buffer, from: number): number | null {
  const at = body.indexOf(delimiter, from);
  return at < 0 ? null : at + delimiter.length;
}

/** Null: a file, no part of a form, or one with too long headers. */
function partField(part: Buffer): Field | null {
  const headEnd = part.indexOf('\r\n\r\n');
  if (headEnd < 0 || headEnd > readableLimits.partHead) return null;
  const disposition = /^content-disposition:\s*form-data\s*(;.*)$/im.exec(part.toString('utf8', 0, headEnd))?.[1];
  if (disposition === undefined || /;\s*filename\*?\s*=/i.test(disposition.replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/g, '""'))) return null;
  const [, quoted, plain] = /;\s*name\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(disposition) ?? [];
  const name =
    quoted?.replaceAll(/\\(["\\])|%22|%0D|%0A/gi, (text, escaped: string | undefined) => escaped ?? decodeURIComponent(text)) ?? plain;
  return name === undefined ? null : [name, payloadText(part.subarray(headEnd + 4))];
}

function formJson(fields: readonly Field[]): string {
  const [only] = fields;
  if (fields.length === 1 && only?.[0] === 'payload' && /^\s*[[{n]/.test(only[1]) && isJson(only[1])) return only[1];
  const values = new Map<string, string | string[]>();
  for (const [name, value] of fields) {
    const known = values.get(name);
    if (known === undefined) values.set(name, value);
    else if (Array.isArray(known)) known.push(value);
    else values.set(name, [known, value]);
  }
  return JSON.stringify(Object.fromEntries(values));
}
