const prefix = 'whsec_';
const fewestBytes = 24;
const maxBytes = 64;

/**
 * Secrets and keys in one value, and of one record. Each is one more signature of every request, or one more that is compared; a Secret of Kubernetes has
 * room for 25,000.
 */
export const maxListedSecrets = 10;

/** The texts in a value of a Secret, separated by white space; null: there are more than `maxListedSecrets`. */
export function listedSecrets(value: string): string[] | null {
  const texts = value.split(/\s+/, maxListedSecrets + 3).filter((text) => text !== '');
  return texts.length > maxListedSecrets ? null : texts;
}

/** Continues a sentence about a value for which `listedSecrets` returns null. */
export const tooManySecrets = `contains more than ${maxListedSecrets} secrets and keys`;

/**
 * The Standard Webhooks secrets in a value of a Secret: one, or several while a rotation lasts, separated by white space.
 * Null when one of them is not `whsec_` + base64 of 24 to 64 bytes (Standard Webhooks, "Signature scheme").
 */
export function standardWebhooksSecrets(value: string): string[] | null {
  const secrets = listedSecrets(value) ?? [];
  return secrets.length > 0 && secrets.every(isStandardWebhooksSecret) ? secrets : null;
}

export const standardWebhooksSecretRule = `${prefix} followed by the base64 of ${fewestBytes} to ${maxBytes} bytes`;

function isStandardWebhooksSecret(secret: string): boolean {
  const encoded = secret.slice(prefix.length);
  if (!secret.startsWith(prefix) || !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return false;
  const bytes = Buffer.from(encoded, 'base64');
  const isWhole = bytes.toString('base64').replaceAll('=', '') === encoded.replaceAll('=', '');
  return isWhole && bytes.length >= fewestBytes && bytes.length <= maxBytes;
}
