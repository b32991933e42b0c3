import { createPublicKey, verify } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** The signatures of a request by version, as a receiver splits them. */
export function signaturesOf(headers: IncomingHttpHeaders): { version: string; signature: Buffer }[] {
  return String(headers['webhook-signature'] ?? '')
    .split(' ')
    .filter((each) => each !== '')
    .map((each) => ({ version: each.slice(0, each.indexOf(',')), signature: Buffer.from(each.slice(each.indexOf(',') + 1), 'base64') }));
}

/** Whether one of the v1a signatures of a request is that of a public key: verified by `node:crypto` with the key as a JSON Web Key. */
export function verifiesV1a({ headers, body }: { headers: IncomingHttpHeaders; body: Buffer }, publicKey: string): boolean {
  if (!publicKey.startsWith('whpk_')) throw new Error(`${publicKey} is no public key`);
  const x = Buffer.from(publicKey.slice('whpk_'.length), 'base64').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const content = Buffer.concat([Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`), body]);
  return signaturesOf(headers).some(({ version, signature }) => version === 'v1a' && verify(null, content, key, signature));
}
