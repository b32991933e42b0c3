import { PosthornError } from '../core/errors.ts';
import type { RedisAddress } from '../redis/address.ts';
import type { Config } from './config.ts';
import { readPem } from './pem-file.ts';
import type { RedisConfig } from './redis-config.ts';

/** Where the Redis of a role is. Standalone without one of its own has made up its mind before. */
export function redisOf({ redis }: Config): RedisAddress {
  if (redis === undefined) throw new PosthornError('INVALID_CONFIG', 'POSTHORN_REDIS_URL: is required');
  return redisAddress(redis);
}

/** Reads the certificates that the configuration names. Throws INVALID_CONFIG for a file that is not there or no PEM file. */
function redisAddress({ mode, url, sentinel, caFile, certFile, keyFile }: RedisConfig): RedisAddress {
  return {
    mode,
    url,
    sentinel,
    tls: {
      ...(caFile !== undefined && { ca: [readPem(caFile, 'CERTIFICATE', 'POSTHORN_REDIS_CA_FILE')] }),
      ...(certFile !== undefined && { cert: readPem(certFile, 'CERTIFICATE', 'POSTHORN_REDIS_CERT_FILE') }),
      ...(keyFile !== undefined && { key: readPem(keyFile, 'PRIVATE KEY', 'POSTHORN_REDIS_KEY_FILE') }),
    },
  };
}
