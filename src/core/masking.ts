const bullets = '••••';
const shortestWithTail = 12;

/** How a secret is shown (API decisions, "Both families"): four bullets, then its last four characters when it has at least twelve. */
export function masked(secret: string): string {
  return bullets + (lastFour(secret) ?? '');
}

/** The same of the credentials of warehouses, whose last four characters are always shown (API document, "Credential redaction"). */
export function maskedWithTail(secret: string): string {
  return bullets + secret.slice(-4);
}

/** The last four characters of a secret, if it is long enough to show them; null otherwise. */
export function lastFour(secret: string): string | null {
  return secret.length >= shortestWithTail ? secret.slice(-4) : null;
}

/** How a secret is shown that cannot be read at the moment. */
export const maskedUnread = bullets;

/** Whether a sent value can only be the mask of something. */
export function looksMasked(value: string): boolean {
  return value.startsWith(bullets);
}
