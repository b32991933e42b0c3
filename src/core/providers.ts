/** Whose webhooks a source takes: decides the signature scheme, the handshake and the delivery id. */
export const providers = [
  'generic',
  'custom',
  'github',
  'gitlab',
  'stripe',
  'shopify',
  'slack',
  'twilio',
  'paddle',
  'standard-webhooks',
  'svix',
  'intercom',
  'sentry',
  'bitbucket',
] as const;

export type Provider = (typeof providers)[number];

/**
 * Questions that a source answers by choice, whatever its provider. `hub_challenge`: Meta, WebSub; `validation_token`: Microsoft Graph; `challenge`: Dropbox;
 * `crc_token`: X; `cloudevents`: OPTIONS of CloudEvents.
 */
export const handshakes = ['hub_challenge', 'validation_token', 'challenge', 'crc_token', 'cloudevents'] as const;

export type Handshake = (typeof handshakes)[number];

/** How a sender of provider `custom` signs: an HMAC of the body in a header. */
export interface SignatureScheme {
  algorithm: 'sha1' | 'sha256' | 'sha512';
  /** Lower case. */
  header: string;
  encoding: 'hex' | 'base64';
  /** Stands before the signature in the header; may be empty. */
  prefix: string;
}

/** Whether the provider's secrets are those of Standard Webhooks, `whsec_` and base64. */
export function hasStandardSecrets(provider: Provider): boolean {
  return provider === 'standard-webhooks' || provider === 'svix';
}
