import { z } from 'zod';
import { type RedisMode, redisNodes } from '../redis/address.ts';
import { byteCount, redisUrl } from './config-values.ts';

const all: ('controller' | 'api' | 'ingest' | 'delivery' | 'standalone')[] = ['controller', 'api', 'ingest', 'delivery', 'standalone'];

/** Where Redis is, how it is run, and what of it is ours. */
export const redisEnvironment = {
  POSTHORN_REDIS_URL: redisUrl
    .describe(
      'Redis: `redis://[user:password@]host[:port][,host[:port]…][/database]`, `rediss://…` for TLS, or the path of a unix socket. Standalone starts a redis-server of its own in the data directory when it is not given; the other roles need it.',
    )
    .meta({ roles: all, secret: true }),
  POSTHORN_REDIS_URL_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File with that URL, where `POSTHORN_REDIS_URL` is not given. User and password are read again at every connect, so that they can be rotated without a restart; servers and database are those of the start.',
    )
    .meta({ roles: all }),
  POSTHORN_REDIS_MODE: z
    .enum(['single', 'sentinel', 'cluster'])
    .default('single')
    .describe(
      'How Redis is run. With `sentinel` the hosts in the URL are those of the sentinels, with `cluster` some nodes of the cluster.',
    )
    .meta({ roles: all }),
  POSTHORN_REDIS_SENTINEL_MASTER: z
    .string()
    .min(1)
    .default('mymaster')
    .describe('Name of the master in the sentinels.')
    .meta({ roles: all }),
  POSTHORN_REDIS_SENTINEL_USERNAME: z.string().min(1).optional().describe('User at the sentinels.').meta({ roles: all }),
  POSTHORN_REDIS_SENTINEL_PASSWORD: z.string().min(1).optional().describe('Password at the sentinels.').meta({ roles: all, secret: true }),
  POSTHORN_REDIS_SENTINEL_PASSWORD_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File with that password, where the variable is not given; read again at every connect. A missing file means that the sentinels require none.',
    )
    .meta({ roles: all }),
  POSTHORN_REDIS_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'PEM file of the certificate authorities trusted for `rediss://` instead of the well-known ones. This file and the two that follow are read again at every connect.',
    )
    .meta({ roles: all }),
  POSTHORN_REDIS_CERT_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('PEM file of the certificate that Posthorn shows to Redis.')
    .meta({ roles: all }),
  POSTHORN_REDIS_KEY_FILE: z.string().min(1).optional().describe('PEM file of the key of that certificate.').meta({ roles: all }),
  POSTHORN_REDIS_MEMORY_LIMIT: byteCount
    .optional()
    .describe(
      'Bytes of memory that Redis may use, such as `4gb`, where it has no `maxmemory` of its own: above 60 % finished messages go early, above 80 % ingest answers 503, and an organization with more than its share of unfinished events is answered 429. The redis-server of standalone has one: half of the memory of the machine.',
    )
    .meta({ roles: ['api', 'ingest', 'delivery', 'standalone'] }),
  POSTHORN_REDIS_KEY_PREFIX: z
    .string()
    .max(64)
    .regex(/^[^{}\s]*$/, 'must not contain braces or blanks')
    .default('posthorn:')
    .describe('Prefix of every key, so that installations can share a Redis.')
    .meta({ roles: all }),
};

export interface RedisConfig {
  mode: RedisMode;
  url: string;
  /** The file that the URL is reread from; undefined: in the environment. */
  urlFile: string | undefined;
  /** The same of the password of the sentinels. */
  sentinelPasswordFile: string | undefined;
  sentinel: { master: string; username?: string; password?: string };
  caFile: string | undefined;
  certFile: string | undefined;
  keyFile: string | undefined;
}

type Environment = z.output<z.ZodObject<typeof redisEnvironment>>;

/** `given`: the variables without what files hold. */
export function redisConfig(values: Environment, url: string, given: Record<string, string>): RedisConfig {
  const { POSTHORN_REDIS_SENTINEL_USERNAME: username, POSTHORN_REDIS_SENTINEL_PASSWORD: password } = values;
  return {
    mode: values.POSTHORN_REDIS_MODE,
    url,
    urlFile: given['POSTHORN_REDIS_URL'] === undefined ? values.POSTHORN_REDIS_URL_FILE : undefined,
    sentinelPasswordFile:
      given['POSTHORN_REDIS_SENTINEL_PASSWORD'] === undefined ? values.POSTHORN_REDIS_SENTINEL_PASSWORD_FILE : undefined,
    sentinel: {
      master: values.POSTHORN_REDIS_SENTINEL_MASTER,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
    },
    caFile: values.POSTHORN_REDIS_CA_FILE,
    certFile: values.POSTHORN_REDIS_CERT_FILE,
    keyFile: values.POSTHORN_REDIS_KEY_FILE,
  };
}

export function redisMistakes(values: Environment): string[] {
  const { POSTHORN_REDIS_MODE: mode, POSTHORN_REDIS_URL: url, POSTHORN_REDIS_CERT_FILE: cert, POSTHORN_REDIS_KEY_FILE: key } = values;
  const mistakes: string[] = [];
  if (mode !== 'single' && url === undefined) mistakes.push(`POSTHORN_REDIS_URL: is required where POSTHORN_REDIS_MODE is ${mode}`);
  if (mode !== 'single' && url?.startsWith('/')) mistakes.push(`POSTHORN_REDIS_URL: must name hosts where POSTHORN_REDIS_MODE is ${mode}`);
  if (mode === 'single' && url?.includes(',')) mistakes.push('POSTHORN_REDIS_URL: must name one host where POSTHORN_REDIS_MODE is single');
  if (mode === 'cluster' && url !== undefined && !url.startsWith('/') && redisNodes(url).database !== 0)
    mistakes.push('POSTHORN_REDIS_URL: a cluster has database 0 only');
  if ((cert === undefined) !== (key === undefined))
    mistakes.push('POSTHORN_REDIS_CERT_FILE: belongs with POSTHORN_REDIS_KEY_FILE; give both or none');
  return mistakes;
}
