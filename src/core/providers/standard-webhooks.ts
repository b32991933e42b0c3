import { withoutPrefix } from '../signing.ts';
import type { ProviderDescriptor, SignedRequest, Verifier } from './descriptor.ts';
import { digestFromBase64, hmacKeys, signedByAny, timeFailure } from './hmac.ts';
import { headerMalformed, headerMissing } from './signature-failure.ts';

const signaturePrefix = 'v1,';

/**
 * `webhook-id`, `webhook-timestamp` (seconds) and `webhook-signature` (`v1,<base64>`, several separated by spaces), over
 * `<id>.<timestamp>.<body>` with secrets `whsec_<base64>`
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
 */
export function standardWebhooksVerifier(secrets: readonly string[]): Verifier {
  const isSigned = signatureCheck(secrets);
  return (request) => isSigned(request, 'webhook');
}

/**
 * The same under `svix-id`, `svix-timestamp` and `svix-signature`, or under the names of Standard Webhooks
 * (https://docs.svix.com/receiving/verifying-payloads/how-manual).
 */
export function svixVerifier(secrets: readonly string[]): Verifier {
  const isSigned = signatureCheck(secrets);
  return (request) => isSigned(request, isNamedAsStandard(request) ? 'webhook' : 'svix');
}

function isNamedAsStandard({ headers }: SignedRequest): boolean {
  return headers['svix-id'] === undefined && headers['webhook-id'] !== undefined;
}

function signatureCheck(secrets: readonly string[]): (request: SignedRequest, name: 'webhook' | 'svix') => ReturnType<Verifier> {
  const keys = hmacKeys(secrets.map((secret) => Buffer.from(withoutPrefix(secret), 'base64')));
  return function* ({ headers, body, nowMs }, name) {
    const { [`${name}-id`]: id, [`${name}-timestamp`]: seconds, [`${name}-signature`]: list } = headers;
    if (typeof list !== 'string') return headerMissing(`${name}-signature`);
    if (typeof id !== 'string' || id === '') return headerMissing(`${name}-id`);
    if (typeof seconds !== 'string') return headerMissing(`${name}-timestamp`);
    const signatures = list
      .split(' ')
      .filter((item) => item.startsWith(signaturePrefix))
      .flatMap((item) => digestFromBase64(item.slice(signaturePrefix.length)) ?? []);
    if (signatures.length === 0) return headerMalformed(`${name}-signature`);
    return (
      timeFailure(`${name}-timestamp`, seconds, nowMs) ?? (yield* signedByAny(keys, { prefix: `${id}.${seconds}.`, body }, signatures))
    );
  };
}

export const standardWebhooks: ProviderDescriptor = {
  title: 'senders that keep Standard Webhooks',
  url: 'https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md',
  verifier: standardWebhooksVerifier,
  secret: { style: 'standard-webhooks', isOurs: true },
  deliveryIds: [{ header: 'webhook-id', isSigned: true }],
  distinctContents: 'always',
  docs: {
    header: '`webhook-id`, `webhook-timestamp`, `webhook-signature: v1,<base64>`, several allowed',
    signed: '`<id>.<timestamp>.<body>`, with the bytes that the base64 of the secret stands for',
    secret: '`whsec_` and base64',
    recognized: 'all: an id and a time are signed',
    unrecognized: '',
  },
};
