/**
 * The text of a payload: UTF-8, without the byte order mark that some senders put before JSON. Everything that parses a payload reads it by this;
 * what is relayed are the bytes.
 */
export function payloadText(payload: Buffer): string {
  const hasMark = payload[0] === 0xef && payload[1] === 0xbb && payload[2] === 0xbf;
  return payload.toString('utf8', hasMark ? 3 : 0);
}

/** The same of what is text already. */
export function withoutByteOrderMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
