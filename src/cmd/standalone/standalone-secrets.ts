import { randomBytes, randomUUID } from 'node:crypto';
import { constants, copyFileSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { newApiKey } from '../../core/api-key-hash.ts';
import { PosthornError } from '../../core/errors.ts';
import type { EncryptionKey } from '../../core/sealing.ts';
import { encryptionKeys } from '../config-values.ts';
import { issuesText } from '../issues-text.ts';
import type { SecretsConfig } from '../secrets-config.ts';

/** Secrets in standalone's data directory, readable by its user only. */
export interface StandaloneSecrets {
  encryptionKeys: readonly EncryptionKey[];
  /** Their file; undefined: they were given. */
  encryptionKeysFile: string | undefined;
  apiKey: string;
  /** Its file; undefined: it was given. */
  apiKeyFile: string | undefined;
  /** The API key was just made, so no user has it yet. */
  isApiKeyNew: boolean;
}

/** Reads the secrets of the data directory; makes and keeps those that are missing and not given. */
export function standaloneSecrets(dataDirectory: string, given: Omit<SecretsConfig, 'apiKeyFile'>): StandaloneSecrets {
  try {
    mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
    const keys = encryptionKeysOf(dataDirectory, given);
    if (given.apiKey !== undefined) return { ...keys, apiKey: given.apiKey, apiKeyFile: undefined, isApiKeyNew: false };
    const apiKeyFile = join(dataDirectory, 'api-key');
    const { text, isNew } = keep(apiKeyFile, () => newApiKey().key);
    return { ...keys, apiKey: text, apiKeyFile, isApiKeyNew: isNew };
  } catch (cause) {
    throw new PosthornError(
      'UNAVAILABLE',
      `the data directory ${dataDirectory} cannot be used: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    );
  }
}

function encryptionKeysOf(
  dataDirectory: string,
  given: Pick<SecretsConfig, 'encryptionKeys' | 'encryptionKeysFile'>,
): Pick<StandaloneSecrets, 'encryptionKeys' | 'encryptionKeysFile'> {
  if (given.encryptionKeys.length > 0) return given;
  const encryptionKeysFile = resolve(dataDirectory, 'encryption-keys');
  const { text } = keep(encryptionKeysFile, () => `k1:${randomBytes(32).toString('base64')}`);
  const { success, data, error } = encryptionKeys.safeParse(text);
  if (!success) throw new Error(`${encryptionKeysFile} ${issuesText(error)}`);
  return { encryptionKeys: data, encryptionKeysFile };
}

/** The text of the file. Of several processes that make it at the same time, all get the text of the first. */
function keep(file: string, make: () => string): { text: string; isNew: boolean } {
  const kept = textOf(file);
  if (kept !== null && kept !== '') return { text: kept, isNew: false };
  const text = make();
  const beside = `${file}.${randomUUID()}`;
  try {
    writeFileSync(beside, `${text}\n`, { mode: 0o600, flag: 'wx', flush: true });
    // An empty file is left by an aborted write.
    if (kept === '') renameSync(beside, file);
    else link(beside, file);
    const first = textOf(file) ?? text;
    return { text: first, isNew: first === text };
  } catch (error) {
    const first = hasCode(error, 'EEXIST') ? textOf(file) : null;
    if (first === null || first === '') throw error;
    return { text: first, isNew: false };
  } finally {
    rmSync(beside, { force: true });
  }
}

/** Fails when `file` exists. Where the file system has no hard links, the file is copied. */
function link(beside: string, file: string): void {
  try {
    linkSync(beside, file);
  } catch (error) {
    if (hasCode(error, 'EEXIST')) throw error;
    copyFileSync(beside, file, constants.COPYFILE_EXCL);
  }
}

/** Null: there is no such file. */
function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
