import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';

/** Ed25519 keys as Standard Webhooks writes them: `whsk_` + base64 of the seed and the public key, `whpk_` + base64 of the public key. */
export const signingKeyPrefix = 'whsk_';
export const publicKeyPrefix = 'whpk_';

const seedBytes = 32;
const publicBytes = 32;
/** DER of SubjectPublicKeyInfo (RFC 8410) in front of the public key. */
const publicHead = Buffer.from('302a300506032b6570032100', 'hex');
/** DER of PKCS #8 (RFC 8410) in front of the seed. */
const privateHead = Buffer.from('302e020100300506032b657004220420', 'hex');

export interface Ed25519Key {
  /** A private key. */
  key: KeyObject;
  /** `whpk_` + base64. */
  publicKey: string;
}

/** A new key: `whsk_` + base64 of seed and public key. */
export function newSigningKey(): string {
  const { privateKey } = generateKeyPairSync('ed25519');
  const seed = privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(privateHead.length);
  return signingKeyPrefix + Buffer.concat([seed, publicBytesOf(privateKey)]).toString('base64');
}

/** The key in `whsk_` + base64 of a seed, or of a seed and its public key. `problem` describes the error, without any of the key. */
export function ed25519Key(secret: string): (Ed25519Key & { problem?: undefined }) | { problem: string } {
  const bytes = bytesBehind(signingKeyPrefix, secret);
  if (bytes === null || (bytes.length !== seedBytes && bytes.length !== seedBytes + publicBytes))
    return { problem: `is not ${signingKeyRule}` };
  const key = createPrivateKey({ key: Buffer.concat([privateHead, bytes.subarray(0, seedBytes)]), format: 'der', type: 'pkcs8' });
  const own = publicBytesOf(key);
  if (bytes.length > seedBytes && !own.equals(bytes.subarray(seedBytes)))
    return { problem: 'has another public key in its last 32 bytes than that of its seed' };
  return { key, publicKey: publicKeyPrefix + own.toString('base64') };
}

export const signingKeyRule = `${signingKeyPrefix} followed by the base64 of 32 bytes (the seed of an Ed25519 key) or 64 bytes (the seed and the public key)`;

/** The key behind `whpk_` + base64 of a public key, which verifies v1a signatures; null: it is none. */
export function ed25519PublicKey(text: string): KeyObject | null {
  const bytes = bytesBehind(publicKeyPrefix, text);
  if (bytes?.length !== publicBytes) return null;
  return createPublicKey({ key: Buffer.concat([publicHead, bytes]), format: 'der', type: 'spki' });
}

export const publicKeyRule = `${publicKeyPrefix} followed by the base64 of 32 bytes (an Ed25519 public key)`;

/** Null: the text is not the prefix and Base64 without bits left over. */
function bytesBehind(prefix: string, text: string): Buffer | null {
  const encoded = text.slice(prefix.length);
  const bytes = Buffer.from(encoded, 'base64');
  const isWhole = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded) && withoutPadding(bytes.toString('base64')) === withoutPadding(encoded);
  return text.startsWith(prefix) && isWhole ? bytes : null;
}

function publicBytesOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' }).subarray(-publicBytes);
}

function withoutPadding(encoded: string): string {
  return encoded.replaceAll('=', '');
}
