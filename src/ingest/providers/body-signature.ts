import type { SignatureScheme } from '../../core/providers.ts';
import { digestFromBase64, digestFromHex, hmacKeys, signedByAny } from './hmac.ts';
import type { Verifier } from './signed-request.ts';

/** Providers that put an HMAC of the body, and of nothing else, into a header. */
export const bodySignatures = {
  /** https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries */
  github: { algorithm: 'sha256', header: 'x-hub-signature-256', encoding: 'hex', prefix: 'sha256=' },
  /** https://shopify.dev/docs/apps/build/webhooks/subscribe/https#step-2-validate-the-origin-of-your-webhook-to-ensure-its-coming-from-shopify */
  shopify: { algorithm: 'sha256', header: 'x-shopify-hmac-sha256', encoding: 'base64', prefix: '' },
  /** https://developers.intercom.com/docs/webhooks/webhook-notifications#signed-notifications */
  intercom: { algorithm: 'sha1', header: 'x-hub-signature', encoding: 'hex', prefix: 'sha1=' },
  /** https://docs.sentry.io/organization/integrations/integration-platform/webhooks/#verifying-the-signature */
  sentry: { algorithm: 'sha256', header: 'sentry-hook-signature', encoding: 'hex', prefix: '' },
  /** https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/#Secure-webhooks */
  bitbucket: { algorithm: 'sha256', header: 'x-hub-signature', encoding: 'hex', prefix: 'sha256=' },
} as const satisfies Record<string, SignatureScheme>;

/** The HMAC of the body stands in `scheme.header`, behind `scheme.prefix`. */
export function bodySignatureVerifier(scheme: SignatureScheme, secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  const { algorithm, header, encoding, prefix } = scheme;
  const digestFrom = encoding === 'hex' ? digestFromHex : digestFromBase64;
  return function* ({ headers, body }) {
    const value = headers[header];
    if (typeof value !== 'string' || !value.startsWith(prefix)) return null;
    const signature = digestFrom(value.slice(prefix.length), algorithm);
    return signature === null ? null : yield* signedByAny(keys, { prefix: '', body }, [signature], algorithm);
  };
}
