import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newApiKey } from '../../core/api-keys.ts';
import { PosthornError } from '../../core/errors.ts';

/** What standalone keeps in its data directory, readable by its user only. */
export interface StandaloneSecrets {
  /** As POSTHORN_ENCRYPTION_KEYS has it. */
  encryptionKeys: string;
  apiKey: string;
  /** The API key was made right now, so nobody knows it yet. */
  isApiKeyNew: boolean;
}

/** Reads the secrets of the data directory; makes and keeps those that are missing and not given. */
export function standaloneSecrets(
  dataDirectory: string,
  given: { encryptionKeys: string | undefined; apiKey: string | undefined },
): StandaloneSecrets {
  try {
    mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
    const encryptionKeys =
      given.encryptionKeys ?? keep(join(dataDirectory, 'encryption-keys'), () => `k1:${randomBytes(32).toString('base64')}`).text;
    if (given.apiKey !== undefined) return { encryptionKeys, apiKey: given.apiKey, isApiKeyNew: false };
    const { text, isNew } = keep(join(dataDirectory, 'api-key'), () => newApiKey().key);
    return { encryptionKeys, apiKey: text, isApiKeyNew: isNew };
  } catch (cause) {
    throw new PosthornError(
      'UNAVAILABLE',
      `the data directory ${dataDirectory} cannot be used: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    );
  }
}

function keep(file: string, make: () => string): { text: string; isNew: boolean } {
  try {
    const text = readFileSync(file, 'utf8').trim();
    if (text !== '') return { text, isNew: false };
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  const text = make();
  writeFileSync(file, `${text}\n`, { mode: 0o600 });
  return { text, isNew: true };
}
