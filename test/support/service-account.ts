import { generateKeyPairSync } from 'node:crypto';

let privateKey: string | undefined;

/** Key of a service account of Google Cloud as JSON text, with an RSA key that is made once. */
export function serviceAccountKey(fields: Readonly<Record<string, string>> = {}): string {
  privateKey ??= generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return JSON.stringify({ type: 'service_account', client_email: 'a@b.example', private_key: privateKey, ...fields });
}
