import { signingKeyPrefix } from './ed25519-keys.ts';

const bullets = '••••';
const shortestWithTail = 12;

/**
 * Returns a secret as it is shown: four bullets, then its last four characters when it has at least twelve. Clients of the API expect the tail of
 * warehouse credentials. Stores issue credentials of at least twelve characters, so the tail reveals a small part.
 */
export function masked(secret: string): string {
  return bullets + (lastFour(secret) ?? '');
}

/** The last four characters of a secret, if it is long enough to show them and no Ed25519 key, which its public key identifies; null otherwise. */
export function lastFour(secret: string): string | null {
  return secret.length >= shortestWithTail && !secret.includes(signingKeyPrefix) ? secret.slice(-4) : null;
}

/** How a secret is shown that cannot be read at the moment. */
export const maskedUnread = bullets;

/** Whether a sent value means the stored one: it is the same, or its mask. `stored` null: what is stored cannot be read at the moment. */
export function meansStored(sent: string, stored: string | null, mask = masked): boolean {
  return stored === null ? sent === maskedUnread : sent === stored || sent === mask(stored);
}

/** Text of a pattern for the mask of a secret, whatever its last characters are. */
export const maskPattern = String.raw`•{4}[\s\S]{0,4}`;

/** Whether a sent value can only be the mask of something. */
export function looksMasked(value: string): boolean {
  return value.startsWith(bullets);
}
