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

/** How a sender of provider `custom` signs: an HMAC of the body in a header. */
export interface SignatureScheme {
  algorithm: 'sha1' | 'sha256' | 'sha512';
  /** Lower case. */
  header: string;
  encoding: 'hex' | 'base64';
  /** Stands before the signature in the header; may be empty. */
  prefix: string;
}

/** Lower case. */
export const gitlabTokenHeader = 'x-gitlab-token';

/** Where senders of the provider send the secret itself, not a signature made with it. */
const secretHeaders: Partial<Record<Provider, string>> = { gitlab: gitlabTokenHeader };

export function secretHeader(provider: Provider): string | undefined {
  return secretHeaders[provider];
}

/**
 * Headers without those that carry a secret in clear from senders of the provider; null: from any. Names are in lower case. The same array
 * where there are none.
 */
export function withoutSecretHeaders(headers: [name: string, value: string][], provider: Provider | null): [string, string][] {
  const secrets = provider === null ? Object.values(secretHeaders) : [secretHeaders[provider]];
  const isSecret = ([name]: [string, string]): boolean => secrets.includes(name);
  return headers.some(isSecret) ? headers.filter((header) => !isSecret(header)) : headers;
}

/** Whether the provider's secrets are those of Standard Webhooks, `whsec_` and base64. */
export function hasStandardSecrets(provider: Provider): boolean {
  return provider === 'standard-webhooks' || provider === 'svix';
}
