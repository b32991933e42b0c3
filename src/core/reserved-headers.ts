/** Headers that belong to the connection, or that Posthorn sets to what it can read: neither senders nor configuration have a say in them. Lower case. */
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

/** `sec-`: by these a browser alone says who has it send a request. */
export const reservedPrefixes: readonly string[] = ['proxy-', 'sec-', 'x-posthorn-'];

/** Headers of Standard Webhooks. A destination that signs sets them itself. */
export const signatureHeaders: ReadonlySet<string> = new Set(['webhook-id', 'webhook-timestamp', 'webhook-signature']);

/** What says how the payload is to be read goes out with it, whatever a destination forwards. */
export const payloadHeaders: ReadonlySet<string> = new Set(['content-type', 'content-encoding']);

/** Whether the header, a name in lower case, describes the payload that came in and no other: its type, its coding, a digest. */
export function describesPayload(name: string): boolean {
  return /^(?:content-.*|digest|repr-digest|etag)$/.test(name);
}
