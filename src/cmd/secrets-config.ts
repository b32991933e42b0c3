import { z } from 'zod';
import type { EncryptionKey } from '../core/sealing.ts';
import { adminApiKey, encryptionKeys } from './config-values.ts';

const everyRole: { roles: ('controller' | 'api' | 'ingest' | 'delivery' | 'standalone')[] } = {
  roles: ['controller', 'api', 'ingest', 'delivery', 'standalone'],
};

/** The keys of an installation, given or in files. */
export const secretsEnvironment = {
  POSTHORN_ENCRYPTION_KEYS: encryptionKeys
    .optional()
    .describe(
      'Keys that seal secrets in Redis, as `id:base64[,id:base64…]`, newest first; each of 32 bytes (`openssl rand -base64 32`). The newest seals, all open. Standalone makes one in the data directory when none is given; the other roles need it, the same in all of them.',
    )
    .meta({ ...everyRole, secret: true }),
  POSTHORN_ENCRYPTION_KEYS_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File with these keys, where `POSTHORN_ENCRYPTION_KEYS` is not given. It is read again every 10 seconds, and when a value was sealed with a key that the process does not have. Standalone reads `encryption-keys` in the data directory in the same way.',
    )
    .meta(everyRole),
  POSTHORN_API_KEY: adminApiKey
    .optional()
    .describe(
      'Admin key of the organization `default`, of at least 32 characters. Standalone makes one, prints it once and keeps it in the data directory when it is not given; the controller makes none.',
    )
    .meta({ roles: ['controller', 'standalone'], secret: true }),
  POSTHORN_API_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File with that key, where `POSTHORN_API_KEY` is not given. It is read again every 10 seconds: another key in it replaces the earlier one, which is refused from then on. Standalone reads `api-key` in the data directory in the same way.',
    )
    .meta({ roles: ['controller', 'standalone'] }),
};

export interface SecretsConfig {
  /** Newest first; empty only in standalone, which then makes one. */
  encryptionKeys: readonly EncryptionKey[];
  /** Their file; undefined: they were given. */
  encryptionKeysFile: string | undefined;
  apiKey: string | undefined;
  /** Its file; undefined: it was given. */
  apiKeyFile: string | undefined;
}

/** `given`: the variables without what files hold. */
export function secretsConfig(
  values: z.output<z.ZodObject<typeof secretsEnvironment>>,
  given: Readonly<Record<string, string>>,
): SecretsConfig {
  return {
    encryptionKeys: values.POSTHORN_ENCRYPTION_KEYS ?? [],
    encryptionKeysFile: given['POSTHORN_ENCRYPTION_KEYS'] === undefined ? values.POSTHORN_ENCRYPTION_KEYS_FILE : undefined,
    apiKey: values.POSTHORN_API_KEY,
    apiKeyFile: given['POSTHORN_API_KEY'] === undefined ? values.POSTHORN_API_KEY_FILE : undefined,
  };
}
