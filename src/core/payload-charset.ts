import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { payloadText } from './payload-text.ts';

/** Returns the decoder of the charset that a content type names; null when that is UTF-8, no known one, or none. */
export function decoderOf(contentType: string): TextDecoder | null {
  return knownDecoder(/;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1] ?? '');
}

/** Null of UTF-8, and for what is no charset. */
export function knownDecoder(charset: string): TextDecoder | null {
  const decoder = decoderNamed(charset);
  return decoder?.encoding === 'utf-8' ? null : decoder;
}

/** Null for what is no charset. */
export function decoderNamed(charset: string): TextDecoder | null {
  // Most payloads name none, and the error of TextDecoder takes 20 µs.
  if (charset === '') return null;
  try {
    return new TextDecoder(charset);
  } catch {
    return null;
  }
}

/**
 * The text in UTF-8. Bytes that are UTF-8 are returned unchanged, also if the sender names another charset. Bytes without a named charset are returned
 * unchanged, unless they begin with a UTF-16 BOM, or are XML whose declaration names one (RFC 7303, section 3).
 */
export function inUtf8(bytes: Buffer, named: TextDecoder | null): Buffer {
  const [first = 0, second = 0] = bytes;
  if (first === 0xff && second === 0xfe) return Buffer.from(new TextDecoder('utf-16le').decode(bytes));
  if (first === 0xfe && second === 0xff) return Buffer.from(new TextDecoder('utf-16be').decode(bytes));
  const decoder = named ?? xmlDecoder(bytes);
  if (decoder === null) return bytes;
  // Letters of UTF-16 are UTF-8, too, between zeros.
  if (decoder.encoding.startsWith('utf-16')) return bytes.includes(0) ? Buffer.from(utf16Decoder(decoder, first).decode(bytes)) : bytes;
  return isUtf8(bytes) ? bytes : Buffer.from(decoder.decode(bytes));
}

const xmlDeclaration = '<?xml';
/** Most bytes of a declaration. */
const declarationLength = 200;

function xmlDecoder(bytes: Buffer): TextDecoder | null {
  if (bytes.toString('latin1', 0, xmlDeclaration.length) !== xmlDeclaration) return null;
  const declared = /^<\?xml\s[^>]*?\sencoding\s*=\s*(?:"([^"]*)"|'([^']*)')/.exec(bytes.toString('latin1', 0, declarationLength));
  return knownDecoder(declared?.[1] ?? declared?.[2] ?? '');
}

/** UTF-16 without one is big-endian if its first byte is zero, as JSON begins with an ASCII character; else the charset decides. */
function utf16Decoder(named: TextDecoder, first: number): TextDecoder {
  return first === 0 ? new TextDecoder('utf-16be') : named;
}

/** Text that is UTF-8, whatever its sender calls it, or else of the charset. */
export function textIn(decoder: TextDecoder | null, bytes: Buffer): string {
  return decoder === null || isUtf8(bytes) ? payloadText(bytes) : decoder.decode(bytes);
}
