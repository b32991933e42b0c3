import { createHmac, createSecretKey, type KeyObject, sign } from 'node:crypto';
import { ed25519Key, signingKeyPrefix } from './ed25519-keys.ts';
import { PosthornError } from './errors.ts';
import { updateInPieces } from './hash-in-pieces.ts';
import { type LargeWork, signLarge } from './large-ed25519.ts';

const secretPrefix = 'whsec_';

/**
 * The key behind a secret of Standard Webhooks: of `whsec_` + base64 a secret key, which makes v1 signatures, of `whsk_` + base64 a private key, which makes
 * v1a signatures. Throws INVALID_CONFIG when there is none in it.
 */
export function signingKey(secret: string): KeyObject {
  if (secret.startsWith(signingKeyPrefix)) {
    const key = ed25519Key(secret);
    if (key.problem !== undefined) throw new PosthornError('INVALID_CONFIG', `a signing key ${key.problem}`);
    return key.key;
  }
  const bytes = Buffer.from(withoutPrefix(secret), 'base64');
  if (bytes.length === 0) throw new PosthornError('INVALID_CONFIG', 'a signing secret is not whsec_ followed by base64');
  return createSecretKey(bytes);
}

/** The Base64 of a Standard Webhooks secret or key. */
export function withoutPrefix(secret: string): string {
  const prefix = [secretPrefix, signingKeyPrefix].find((each) => secret.startsWith(each)) ?? '';
  return secret.slice(prefix.length);
}

/**
 * Value of `webhook-signature` for `<id>.<timestamp>.<body>` (Standard Webhooks 1.0): one `v1,…` or `v1a,…` per key.
 * Keys are KeyObjects because those are five times faster than raw bytes.
 */
export function webhookSignature(keys: readonly KeyObject[], id: string, timestampSeconds: number, body: Uint8Array): string {
  const head = `${id}.${timestampSeconds}.`;
  let content: Buffer | undefined;
  return keys
    .map((key) => {
      if (key.type !== 'private') return `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`;
      content ??= Buffer.concat([Buffer.from(head), body]);
      return `v1a,${sign(null, content, key).toString('base64')}`;
    })
    .join(' ');
}

/** The same of a large body, piece by piece and in a thread. Rejects with AbandonedError once the signal of the work is aborted. */
export async function largeWebhookSignature(
  keys: readonly KeyObject[],
  { id, timestampSeconds, body }: { id: string; timestampSeconds: number; body: Uint8Array },
  work: LargeWork,
): Promise<string> {
  const head = `${id}.${timestampSeconds}.`;
  const privateKeys = keys.filter(({ type }) => type === 'private');
  const made = privateKeys.length === 0 ? [] : await signLarge({ head, body }, privateKeys, work);
  const asymmetric = new Map(privateKeys.map((key, i) => [key, made[i]]));
  const signatures: string[] = [];
  for (const key of keys) {
    const signature = asymmetric.get(key);
    signatures.push(
      signature === undefined ? `v1,${await work.inTurns(hmacInPieces(key, head, body))}` : `v1a,${signature.toString('base64')}`,
    );
  }
  return signatures.join(' ');
}

function* hmacInPieces(key: KeyObject, head: string, body: Uint8Array): Generator<undefined, string> {
  const hmac = createHmac('sha256', key).update(head);
  yield* updateInPieces(hmac, body);
  return hmac.digest('base64');
}
