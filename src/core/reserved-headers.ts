/** Headers that belong to the connection, or that Posthorn sets to what it can read: neither senders nor configuration control them. Lower case. */
export const connectionHeaders: readonly string[] = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'keep-alive',
  'expect',
  'accept-encoding',
];

/** `sec-`: only browsers set these, to identify a request's origin. */
export const reservedPrefixes: readonly string[] = ['proxy-', 'sec-', 'x-posthorn-'];

/** Headers of Standard Webhooks. A destination that signs sets them itself. */
export const signatureHeaders: ReadonlySet<string> = new Set(['webhook-id', 'webhook-timestamp', 'webhook-signature']);

/** Headers that define how to read the payload are sent with it, whatever a destination forwards. */
export const payloadHeaders: ReadonlySet<string> = new Set(['content-type', 'content-encoding']);

/** Whether the header, a name in lower case, describes the payload that came in and no other: its type, its coding, a digest. */
export function describesPayload(name: string): boolean {
  return /^(?:content-.*|digest|repr-digest|etag)$/.test(name);
}
