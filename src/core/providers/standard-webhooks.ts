import { ed25519PublicKey } from '../ed25519-keys.ts';
import { withoutPrefix } from '../signing.ts';
import { isVerified, type ProviderDescriptor, type SignedRequest, type Verifier } from './descriptor.ts';
import { signedByAnyPublicKey } from './ed25519.ts';
import { digestFromBase64, hmacKeys, signedByAny, timeFailure } from './hmac.ts';
import { headerMalformed, headerMissing, noSecretMatches, noSecretOfVersion } from './signature-failure.ts';

const symmetricPrefix = 'v1,';
const asymmetricPrefix = 'v1a,';

/**
 * `webhook-id`, `webhook-timestamp` (seconds) and `webhook-signature` (`v1,<base64>` and `v1a,<base64>`, several separated by spaces), over
 * `<id>.<timestamp>.<body>` with secrets `whsec_<base64>`, or with the Ed25519 keys whose public ones are `whpk_<base64>`
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
  const publicKeys = secrets.flatMap((secret) => ed25519PublicKey(secret) ?? []);
  const others = secrets.filter((secret) => ed25519PublicKey(secret) === null);
  const keys = hmacKeys(others.map((secret) => Buffer.from(withoutPrefix(secret), 'base64')));
  return function* ({ organization, source, headers, body, nowMs }, name) {
    const { [`${name}-id`]: id, [`${name}-timestamp`]: seconds, [`${name}-signature`]: list } = headers;
    if (typeof list !== 'string') return headerMissing(`${name}-signature`);
    if (typeof id !== 'string' || id === '') return headerMissing(`${name}-id`);
    if (typeof seconds !== 'string') return headerMissing(`${name}-timestamp`);
    const symmetric = signaturesIn(list, symmetricPrefix, 'sha256');
    const asymmetric = signaturesIn(list, asymmetricPrefix, 'sha512');
    if (symmetric.length === 0 && asymmetric.length === 0) return headerMalformed(`${name}-signature`);
    const failure = timeFailure(`${name}-timestamp`, seconds, nowMs);
    if (failure !== null) return failure;
    const [byKeys, byPublicKeys] = [symmetric.length > 0 && keys.length > 0, asymmetric.length > 0 && publicKeys.length > 0];
    if (!byKeys && !byPublicKeys) return noSecretOfVersion(`${name}-signature`);
    const signed = { prefix: `${id}.${seconds}.`, body };
    const result = byKeys ? yield* signedByAny(keys, signed, symmetric) : noSecretMatches;
    return isVerified(result) || !byPublicKeys
      ? result
      : yield* signedByAnyPublicKey(publicKeys, signed, asymmetric, {
          organization,
          ...(source !== undefined && { part: source }),
        });
  };
}

/** Signatures of one version whose Base64 has as many bytes as a digest of the algorithm; one of Ed25519 has as many as SHA-512. */
function signaturesIn(list: string, prefix: string, algorithm: 'sha256' | 'sha512'): Buffer[] {
  return list
    .split(' ')
    .filter((item) => item.startsWith(prefix))
    .flatMap((item) => digestFromBase64(item.slice(prefix.length), algorithm) ?? []);
}

export const standardWebhooks: ProviderDescriptor = {
  title: 'senders that keep Standard Webhooks',
  url: 'https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md',
  verifier: standardWebhooksVerifier,
  secret: { style: 'standard-webhooks', isOurs: true },
  deliveryIds: [{ header: 'webhook-id', isSigned: true }],
  distinctContents: 'always',
  docs: {
    header: '`webhook-id`, `webhook-timestamp`, `webhook-signature: v1,<base64>` or `v1a,<base64>`, several allowed',
    signed: '`<id>.<timestamp>.<body>`, by HMAC-SHA256 with the bytes of the base64 in the secret (`v1`), or by Ed25519 (`v1a`)',
    secret: '`whsec_` and base64, or for `v1a` the public key of the sender: `whpk_` and base64',
    recognized: 'all: an id and a time are signed',
    unrecognized: '',
  },
};
