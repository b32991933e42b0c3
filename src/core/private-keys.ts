import { createPrivateKey, type KeyObject } from 'node:crypto';

/** A signature takes the cube of it: 20 ms of the event loop with 4096 bits, 150 ms with 8192, half a minute with 40,000. */
const maxRsaBits = 4096;

/** Heads of the parts of a key for PSS, the public exponent, and the hashes that it signs with. */
const maxRestBytes = 256;

/** Its text says how often a password is hashed to decrypt it: OpenSSL does that many times, up to minutes, also where there is no password. */
const encrypted = /-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type:[^\n]*ENCRYPTED/;

/**
 * Returns why a private key in PEM must not sign in an event loop; null when it may, and for what is no key, with which nothing is signed. The key is
 * used for nothing, so that the answer takes no time.
 */
export function costlyKeyProblem(pem: string): string | null {
  if (encrypted.test(pem)) return 'is an encrypted key';
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    return null;
  }
  switch (key.asymmetricKeyType) {
    case 'rsa':
    case 'rsa-pss':
      return hasUsualRsaParts(key) ? null : `is an RSA key of more than ${maxRsaBits} bits, or with parts that are longer than its modulus`;
    case 'ec':
      return key.asymmetricKeyDetails?.namedCurve === undefined ? 'is a key of a curve without a name' : null;
    case 'ed25519':
    case 'ed448':
      return null;
    default:
      return `is a key of the type ${key.asymmetricKeyType}; there are RSA, elliptic curves, Ed25519 and Ed448`;
  }
}

/** Exponents and primes longer than the modulus asks for take as long as a longer modulus. */
function hasUsualRsaParts(key: KeyObject): boolean {
  const { modulusLength = Number.POSITIVE_INFINITY } = key.asymmetricKeyDetails ?? {};
  if (modulusLength > maxRsaBits) return false;
  if (!hasUsualLength(key, modulusLength / 8)) return false;
  // There is no JWK of it.
  if (key.asymmetricKeyType === 'rsa-pss') return true;
  try {
    const { n = '', e, d, p, q, dp, dq, qi } = key.export({ format: 'jwk' });
    return [e, d, p, q, dp, dq, qi].every((part) => part !== undefined && part.length <= n.length);
  } catch {
    return false;
  }
}

/** The DER holds the modulus, an exponent as long, five parts of half the length, or more that are shorter, and little besides. */
function hasUsualLength(key: KeyObject, modulusBytes: number): boolean {
  return key.export({ format: 'der', type: 'pkcs8' }).length <= 4.5 * modulusBytes + maxRestBytes;
}
