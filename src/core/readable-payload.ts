import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { TextDecoder } from 'node:util';
import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { decoderNamed, decoderOf, inUtf8, knownDecoder, textIn } from './payload-charset.ts';
import { wholePayloadBytes } from './payload-sizes.ts';
import { payloadText, withoutByteOrderMark } from './payload-text.ts';
import { isJson } from './plain-json.ts';

export const readableLimits = {
  codings: 2,
  /** Fields of a form. */
  fields: 5000,
  boundaryLength: 200,
  /** Bytes of the headers of a part of a multipart form. */
  partHead: 8192,
};

/** The sender's description of the bytes, in HTTP terms; empty: none. */
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
 * Returns what filters, schemas, transforms and field mappings read of a payload: a compressed one decompressed, text of another charset in UTF-8, and a form
 * as JSON, an object with its fields. A field that occurs several times has the list of its values; files have no field. A form whose only field is `payload`, with JSON in it, is
 * that JSON, as GitHub, Slack and Plex send it. A form with more fields than `readableLimits.fields` has none. Posthorn stores and relays the bytes as they
 * were sent. It takes up to some ms for each MiB, so that payloads above 1 MiB are read in the sandbox. `maxBytes`: of a decompressed payload; default: 1 MiB.
 */
export function readablePayload(
  payload: Buffer,
  { contentType, contentEncoding }: PayloadFormat,
  maxBytes = wholePayloadBytes,
): ReadablePayload {
  const named = contentEncoding === '' ? [] : contentEncoding.split(',').map((name) => name.trim().toLowerCase());
  const plain: ReadablePayload = named.length === 0 ? { bytes: payload, problem: null } : decompressed(payload, named, maxBytes);
  if (plain.problem !== null) return plain;
  const decoder = decoderOf(contentType) ?? decoderAmong(named);
  if (!formType.test(contentType)) {
    const bytes = inUtf8(plain.bytes, decoder);
    if (bytes.length <= maxBytes || bytes === plain.bytes) return { bytes, problem: null };
    return { bytes: payload, problem: `the payload has more than ${maxBytes} bytes in UTF-8` };
  }
  const fields = isMultipart(contentType) ? multipartFields(plain.bytes, contentType, decoder) : urlEncodedFields(plain.bytes, decoder);
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

/** Senders that confuse the header with `Content-Transfer-Encoding` name these, and those that confuse it with the charset name that. */
const noCodings = new Set(['', 'identity', 'none', 'binary', '7bit', '8bit']);

function isNoCoding(name: string): boolean {
  return noCodings.has(name) || (!codings.has(name) && decoderNamed(name) !== null);
}

function decoderAmong(named: readonly string[]): TextDecoder | null {
  for (const name of named) {
    const decoder = noCodings.has(name) || codings.has(name) ? null : knownDecoder(name);
    if (decoder !== null) return decoder;
  }
  return null;
}

function decompressed(payload: Buffer, named: readonly string[], maxBytes: number): ReadablePayload {
  const applied = named.filter((name) => !isNoCoding(name));
  // Some proxies decompress a body and leave the header.
  const kept = (problem: string): ReadablePayload => ({ bytes: payload, problem: isJsonPayload(payload) ? null : problem });
  if (applied.length > readableLimits.codings) return kept(`the payload has more than ${readableLimits.codings} content codings`);
  let bytes = payload;
  for (const name of applied.reverse()) {
    const decompress = codings.get(name);
    if (decompress === undefined) return kept(`the content coding ${name.slice(0, 40)} of the payload is unknown`);
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

const [plusSign, space, ampersand, equalsSign, percentSign] = [0x2b, 0x20, 0x26, 0x3d, 0x25];
/** Fields in which a form names its charset: `_charset_` of browsers, `charset` of PayPal. */
const charsetFields = ['_charset_', 'charset'];

/** Null: no form, as the JSON that curl sends under this type by default, or too many fields. */
function urlEncodedFields(body: Buffer, named: TextDecoder | null): Field[] | null {
  const sent = payloadText(body);
  if (/^\s*[[{]/.test(sent) && isJson(sent)) return null;
  const plain = sent.includes('+') ? withoutPlusSigns(body) : body;
  const text = plain === body ? sent : payloadText(plain);
  let separators = 0;
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) if (++separators >= readableLimits.fields) return null;
  if (named !== null) return decodedFields(plain, named);
  const fields: Field[] = [...new URLSearchParams(text)];
  const decoder = decoderOfFields(fields);
  return decoder === null ? fields : decodedFields(plain, decoder);
}

function decoderOfFields(fields: readonly Field[]): TextDecoder | null {
  return knownDecoder(fields.find(([name]) => charsetFields.includes(name))?.[1] ?? '');
}

/** Fields of another charset; each that is UTF-8 all the same is that. `body`: without plus signs. */
function decodedFields(body: Buffer, decoder: TextDecoder): Field[] {
  const text = (bytes: Buffer): string => textIn(decoder, percentDecoded(bytes));
  const fields: Field[] = [];
  for (let start = 0; start < body.length; ) {
    const next = body.indexOf(ampersand, start);
    const part = body.subarray(start, next < 0 ? body.length : next);
    const at = part.indexOf(equalsSign);
    if (part.length > 0) fields.push(at < 0 ? [text(part), ''] : [text(part.subarray(0, at)), text(part.subarray(at + 1))]);
    start += part.length + 1;
  }
  return fields;
}

function percentDecoded(bytes: Buffer): Buffer {
  if (!bytes.includes(percentSign)) return bytes;
  const decoded = Buffer.alloc(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    const value = byte === percentSign ? hexadecimal(bytes[at + 1]) * 16 + hexadecimal(bytes[at + 2]) : Number.NaN;
    if (Number.isNaN(value)) decoded[length++] = byte;
    else {
      decoded[length++] = value;
      at += 2;
    }
  }
  return decoded.subarray(0, length);
}

/** NaN for what is no digit. */
function hexadecimal(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

/** With spaces for plus signs. URLSearchParams takes 100 ns for each plus sign: for 1 MiB as long as for all else. */
function withoutPlusSigns(body: Buffer): Buffer {
  const plain = Buffer.from(body);
  for (let at = 0; at < plain.length; at++) if (plain[at] === plusSign) plain[at] = space;
  return plain;
}

/** Null: not the form that the type promises, or too many fields. */
function multipartFields(body: Buffer, contentType: string, decoder: TextDecoder | null): Field[] | null {
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
    const field = partField(body.subarray(start, end), decoder);
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
function partField(part: Buffer, named: TextDecoder | null): Field | null {
  const headEnd = part.indexOf('\r\n\r\n');
  if (headEnd < 0 || headEnd > readableLimits.partHead) return null;
  const head = textIn(named, part.subarray(0, headEnd));
  const disposition = /^content-disposition:\s*form-data\s*(;.*)$/im.exec(head)?.[1];
  if (disposition === undefined || /;\s*filename\*?\s*=/i.test(disposition.replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/g, '""'))) return null;
  const [, quoted, plain] = /;\s*name\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(disposition) ?? [];
  const name =
    quoted?.replaceAll(/\\(["\\])|%22|%0D|%0A/gi, (text, escaped: string | undefined) => escaped ?? decodeURIComponent(text)) ?? plain;
  if (name === undefined) return null;
  const type = /^content-type:(.*)$/im.exec(head)?.[1] ?? '';
  return [name, textIn(decoderOf(type) ?? named, part.subarray(headEnd + 4))];
}

function formJson(fields: readonly Field[]): string {
  const [only] = fields;
  const payload = fields.length === 1 && only?.[0] === 'payload' ? withoutByteOrderMark(only[1]) : '';
  if (/^\s*[[{n]/.test(payload) && isJson(payload)) return payload;
  const values = new Map<string, string | string[]>();
  for (const [name, value] of fields) {
    const known = values.get(name);
    if (known === undefined) values.set(name, value);
    else if (Array.isArray(known)) known.push(value);
    else values.set(name, [known, value]);
  }
  return JSON.stringify(Object.fromEntries(values));
}
