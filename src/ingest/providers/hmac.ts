import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

/** How far the time in a signature may be from ours, either way. */
const toleranceSeconds = 300;

const hexSha256 = /^[0-9a-fA-F]{64}$/;
const decimalSeconds = /^[0-9]{1,12}$/;

/** Key objects made once: a raw key costs five times as much per signature. Empty secrets are no secrets. */
export function hmacKeys(secrets: readonly (string | Buffer)[]): KeyObject[] {
  return secrets
    .filter((secret) => secret.length > 0)
    .map((secret) => createSecretKey(typeof secret === 'string' ? Buffer.from(secret) : secret));
}

/** Whether the HMAC-SHA256 of `prefix` + `body` under one of the keys is one of the signatures; compared in constant time. */
export function isSignedByAny(keys: readonly KeyObject[], prefix: string, body: Buffer, signatures: readonly Buffer[]): boolean {
  let isSigned = false;
  for (const key of keys) {
    const hmac = createHmac('sha256', key);
    if (prefix !== '') hmac.update(prefix);
    const expected = hmac.update(body).digest();
    for (const signature of signatures) {
      if (signature.length === expected.length && timingSafeEqual(signature, expected)) isSigned = true;
    }
  }
  return isSigned;
}

/** The bytes of a hexadecimal SHA-256; null when it is not one. */
export function sha256FromHex(text: string): Buffer | null {
  return hexSha256.test(text) ? Buffer.from(text, 'hex') : null;
}

/** Whether the text is a time in seconds since the epoch that lies within the tolerance. */
export function isTimely(seconds: string, nowMs: number): boolean {
  return decimalSeconds.test(seconds) && Math.abs(nowMs / 1000 - Number(seconds)) <= toleranceSeconds;
}
