import { isPosthornError, PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { type RedisAddress, type RedisSecrets, redisNodes } from '../redis/address.ts';
import type { Config } from './config.ts';
import { readTextFile } from './file-variables.ts';
import { readPem } from './pem-file.ts';
import type { RedisConfig } from './redis-config.ts';

/** Where the Redis of a role is. Standalone without one of its own has made up its mind before. Throws INVALID_CONFIG for certificates that cannot be read. */
export function redisOf({ redis }: Config, logger?: Logger): RedisAddress {
  if (redis === undefined) throw new PosthornError('INVALID_CONFIG', 'POSTHORN_REDIS_URL: is required');
  const { mode, url, sentinel, urlFile, sentinelPasswordFile, caFile, certFile, keyFile } = redis;
  const files = [urlFile, sentinelPasswordFile, caFile, certFile, keyFile].filter((file) => file !== undefined);
  const secrets = new SecretsInFiles(redis, logger);
  return { mode, url, sentinel, tls: secrets.current().tls, ...(files.length > 0 && { current: () => secrets.current() }) };
}

/** Reads credentials of Redis from files. If a file cannot be used, the last credentials remain valid. */
class SecretsInFiles {
  readonly #config: RedisConfig;
  readonly #logger: Logger | undefined;
  #last: RedisSecrets | undefined;
  #complaint = '';

  constructor(config: RedisConfig, logger: Logger | undefined) {
    this.#config = config;
    this.#logger = logger;
  }

  /** Throws INVALID_CONFIG the first time only. */
  current(): RedisSecrets {
    try {
      this.#last = readSecrets(this.#config);
      this.#complaint = '';
      return this.#last;
    } catch (error) {
      if (this.#last === undefined || !isPosthornError(error, 'INVALID_CONFIG')) throw error;
      if (error.message !== this.#complaint)
        this.#logger?.warn({ reason: error.message }, 'the credentials of Redis cannot be read; those read before remain in use');
      this.#complaint = error.message;
      return this.#last;
    }
  }
}

function readSecrets(config: RedisConfig): RedisSecrets {
  const { urlFile, sentinelPasswordFile, sentinel, caFile, certFile, keyFile } = config;
  const { username, password } = redisNodes(urlFile === undefined ? config.url : readUrl(urlFile, config.url));
  return {
    username,
    password,
    sentinelPassword: sentinelPasswordFile === undefined ? sentinel.password : readTextFile(sentinelPasswordFile) || undefined,
    tls: {
      ...(caFile !== undefined && { ca: [readPem(caFile, 'CERTIFICATE', 'POSTHORN_REDIS_CA_FILE')] }),
      ...(certFile !== undefined && { cert: readPem(certFile, 'CERTIFICATE', 'POSTHORN_REDIS_CERT_FILE') }),
      ...(keyFile !== undefined && { key: readPem(keyFile, 'PRIVATE KEY', 'POSTHORN_REDIS_KEY_FILE') }),
    },
  };
}

/** Throws INVALID_CONFIG if the file names other servers or another database. Open connections stay with the first ones; a change needs a restart. */
function readUrl(file: string, first: string): string {
  const url = readTextFile(file);
  if (url === null) throw new PosthornError('INVALID_CONFIG', `POSTHORN_REDIS_URL_FILE: ${file} cannot be read`);
  let place: string;
  try {
    place = placeOf(url);
  } catch (error) {
    if (!isPosthornError(error, 'INVALID_CONFIG')) throw error;
    throw new PosthornError('INVALID_CONFIG', `POSTHORN_REDIS_URL_FILE: ${error.message}`, { cause: error });
  }
  if (place === placeOf(first)) return url;
  throw new PosthornError('INVALID_CONFIG', 'POSTHORN_REDIS_URL_FILE: names other servers or another database; they need a restart');
}

function placeOf(url: string): string {
  const { nodes, path, usesTls, database } = redisNodes(url);
  return JSON.stringify([nodes, path, usesTls, database]);
}
