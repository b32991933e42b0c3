import { z } from 'zod';
import { defaultWebhookRetryDelaysMs } from '../core/webhook.ts';
import { type RedisMode, redisNodes } from '../redis/address.ts';
import {
  byteCount,
  cidrList,
  count,
  encryptionKeys,
  flag,
  port,
  portNumber,
  proxyUrl,
  redisUrl,
  retryDelays,
  storeEndpoint,
  wholeNumber,
} from './config-values.ts';
import { type SmtpConfig, smtpConfig, smtpEnvironment, smtpMistakes } from './smtp-config.ts';

export const roles = ['controller', 'api', 'delivery', 'standalone'] as const;
export type Role = (typeof roles)[number];

/** What the environment may hold. The descriptions are the text of docs/configuration.md. */
export const environmentSchema = z.object({
  POSTHORN_PORT: port(8080)
    .describe('Port of the REST API and of `/ingest/`.')
    .meta({ roles: ['api', 'standalone'] }),
  POSTHORN_HOST: z
    .string()
    .min(1)
    .optional()
    .describe('Address to listen on. Default: all addresses.')
    .meta({ roles: [...roles] }),
  POSTHORN_OPS_PORT: portNumber
    .optional()
    .describe(
      'Port of `/livez`, `/readyz` and `/metrics`. The role api serves them on `POSTHORN_PORT` too. Default: 9090; in standalone any free port of the loopback address.',
    )
    .meta({ roles: [...roles] }),
  POSTHORN_OPS_UPSTREAM: z
    .url({ protocol: /^http$/ })
    .optional()
    .describe('Where `/readyz` and `/metrics` on `POSTHORN_PORT` are fetched from. Standalone sets it for its own api process.')
    .meta({ roles: ['api'] }),
  POSTHORN_REDIS_URL: redisUrl
    .describe(
      'Redis: `redis://[user:password@]host[:port][,host[:port]…][/database]`, `rediss://…` for TLS, or the path of a unix socket. Standalone starts a redis-server of its own in the data directory when it is not given; the other roles need it.',
    )
    .meta({ roles: [...roles], secret: true }),
  POSTHORN_REDIS_MODE: z
    .enum(['single', 'sentinel', 'cluster'])
    .default('single')
    .describe(
      'How Redis is run. With `sentinel` the hosts in the URL are those of the sentinels, with `cluster` some nodes of the cluster.',
    )
    .meta({ roles: [...roles] }),
  POSTHORN_REDIS_SENTINEL_MASTER: z
    .string()
    .min(1)
    .default('mymaster')
    .describe('Name of the master, as the sentinels know it.')
    .meta({ roles: [...roles] }),
  POSTHORN_REDIS_SENTINEL_USERNAME: z
    .string()
    .min(1)
    .optional()
    .describe('User at the sentinels.')
    .meta({ roles: [...roles] }),
  POSTHORN_REDIS_SENTINEL_PASSWORD: z
    .string()
    .min(1)
    .optional()
    .describe('Password at the sentinels.')
    .meta({ roles: [...roles], secret: true }),
  POSTHORN_REDIS_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('PEM file of the certificate authorities trusted for `rediss://` instead of the well-known ones.')
    .meta({ roles: [...roles] }),
  POSTHORN_REDIS_CERT_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('PEM file of the certificate that Posthorn shows to Redis.')
    .meta({ roles: [...roles] }),
  POSTHORN_REDIS_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('PEM file of the key of that certificate.')
    .meta({ roles: [...roles] }),
  POSTHORN_REDIS_MEMORY_LIMIT: byteCount
    .optional()
    .describe(
      'Bytes of memory that Redis may use, such as `4gb`, where it has no `maxmemory` of its own: above 60 % finished messages go early, above 80 % ingest answers 503. The redis-server of standalone has one: half of the memory of the machine.',
    )
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_REDIS_KEY_PREFIX: z
    .string()
    .max(64)
    .regex(/^[^{}\s]*$/, 'must not contain braces or blanks')
    .default('posthorn:')
    .describe('Stands before every key, so that installations can share a Redis.')
    .meta({ roles: [...roles] }),
  POSTHORN_SHARDS: wholeNumber(1, 1296)
    .optional()
    .describe(
      'Over how many shards (parts of the keys, which a Redis Cluster spreads over its nodes) new destinations are placed; the same in all roles. It may grow, and never shrinks. Default: 16; in standalone 1.',
    )
    .meta({ roles: [...roles] }),
  POSTHORN_RESOURCE_STORE: z
    .enum(['kubernetes', 'redis'])
    .default('kubernetes')
    .describe('Where resources live: in the Kubernetes API server, or in Redis. Standalone keeps them in Redis.')
    .meta({ roles: ['controller', 'api'] }),
  KUBECONFIG: z
    .string()
    .min(1)
    .optional()
    .describe('Kubeconfig file. Default: the service account of the pod, else `~/.kube/config`.')
    .meta({ roles: ['controller', 'api'] }),
  KUBERNETES_SERVICE_HOST: z
    .string()
    .min(1)
    .optional()
    .describe('Set by Kubernetes: the API server, which no delivery may reach.')
    .meta({ roles: ['delivery'] }),
  KUBERNETES_SERVICE_PORT: portNumber
    .default(443)
    .describe('Set by Kubernetes.')
    .meta({ roles: ['delivery'] }),
  POSTHORN_LEASE_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be the name of a namespace')
    .optional()
    .describe(
      'Namespace of the Lease `posthorn-controller` by which controllers elect their leader. Default: that of the pod, else `default`.',
    )
    .meta({ roles: ['controller'] }),
  POSTHORN_ENCRYPTION_KEYS: encryptionKeys
    .optional()
    .describe(
      'Keys that seal secrets in Redis, as `id:base64[,id:base64…]`, newest first; each of 32 bytes (`openssl rand -base64 32`). The newest seals, all open. Standalone makes one in the data directory when none is given; the other roles need it, the same in all of them.',
    )
    .meta({ roles: [...roles], secret: true }),
  POSTHORN_DATA_DIR: z
    .string()
    .min(1)
    .default('.posthorn')
    .describe('Directory of keys and of the Redis data.')
    .meta({ roles: ['standalone'] }),
  POSTHORN_API_KEY: z
    .string()
    .min(1)
    .max(512)
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without blanks')
    .optional()
    .describe('Admin key of the organization `default`. One is made, printed once and kept in the data directory when it is not given.')
    .meta({ roles: ['standalone'], secret: true }),
  POSTHORN_MANIFESTS_DIR: z
    .string()
    .min(1)
    .optional()
    .describe('Directory of YAML manifests to load and watch; `--manifests` goes before it.')
    .meta({ roles: ['standalone'] }),
  POSTHORN_EGRESS_ALLOWED_CIDRS: cidrList
    .describe(
      'Networks that are not public and that deliveries of every organization may reach, as CIDRs separated by commas. Standalone adds the loopback addresses.',
    )
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_EGRESS_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('PEM file of certificate authorities that deliveries trust besides the well-known ones.')
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_EGRESS_PROXY_URL: proxyUrl
    .optional()
    .describe(
      'Proxy (CONNECT) with a fixed address, `http://[user:password@]host:port`, through which destinations with `useStaticIp` are reached. It is told addresses that were checked, not names.',
    )
    .meta({ roles: ['delivery', 'standalone'], secret: true }),
  POSTHORN_WAREHOUSE_BATCH_SECONDS: count(1, 3600, 60)
    .describe('How long the oldest record of a batch for a warehouse waits for others; a batch of 1000 records or 5 MiB goes at once.')
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_WAREHOUSE_PLATFORM_IDENTITY: flag
    .prefault('false')
    .describe(
      '`true`: warehouse destinations of every organization may have `identity: platform`, and with it write wherever the identity of the delivery pods may. The same for all roles.',
    )
    .meta({ roles: [...roles] }),
  POSTHORN_WAREHOUSE_S3_ENDPOINT: storeEndpoint
    .describe(
      'Server that speaks S3 and takes the files of all destinations of type s3, instead of AWS: `http(s)://host:port`, buckets in the path.',
    )
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_WAREHOUSE_GCS_ENDPOINT: storeEndpoint
    .describe('The same for destinations of type gcs: an emulator of Google Cloud Storage, which is asked without credentials.')
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_WAREHOUSE_AZURE_ENDPOINT: storeEndpoint
    .describe('The same for destinations of type azure_blob, such as Azurite: accounts in the path.')
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_WEBHOOK_RETRY_DELAYS: retryDelays
    .describe(
      'Seconds from one attempt at a webhook endpoint to the next, separated by commas; with the first attempt there is one more than these. Default: 5,300,1800,7200,18000,36000,36000.',
    )
    .meta({ roles: ['api', 'delivery', 'standalone'] }),
  POSTHORN_ALLOW_INSECURE_ENDPOINTS: flag
    .default(false)
    .describe('`true`: webhook endpoints may have `http://` URLs, for development. Otherwise they must have `https://`.')
    .meta({ roles: ['api', 'controller', 'delivery', 'standalone'] }),
  ...smtpEnvironment,
  POSTHORN_DELIVERY_CONCURRENCY: count(1, 10_000, 128)
    .describe('Delivery attempts under way at the same time in one worker.')
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_PUBLIC_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'Address by which senders reach `/ingest/`, for the `ingestUrl` of sources. Default: what the Host header of the request says.',
    )
    .meta({ roles: ['api', 'standalone'] }),
  POSTHORN_TRUSTED_PROXIES: cidrList
    .describe(
      'Networks of the proxies in front of `/ingest/`, as CIDRs separated by commas: the sender is then the last address in `X-Forwarded-For` that is none of them. Default: none, the sender is who connects.',
    )
    .meta({ roles: ['api', 'standalone'] }),
  POSTHORN_DRAIN_SECONDS: count(1, 3600, 25)
    .describe('How long SIGTERM waits for what is under way.')
    .meta({ roles: [...roles] }),
  POSTHORN_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least severe log lines that are written.')
    .meta({ roles: [...roles] }),
});

export interface RedisConfig {
  mode: RedisMode;
  url: string;
  sentinel: { master: string; username?: string; password?: string };
  caFile: string | undefined;
  certFile: string | undefined;
  keyFile: string | undefined;
}

export interface Config {
  port: number;
  host: string | undefined;
  /** Undefined: the role's own default. */
  opsPort: number | undefined;
  opsUpstream: string | undefined;
  /** Undefined only in standalone, which then starts its own. */
  redis: RedisConfig | undefined;
  /** Undefined: what Redis itself says. */
  redisMemoryLimitBytes: number | undefined;
  redisKeyPrefix: string;
  shards: number;
  resourceStore: 'kubernetes' | 'redis';
  kubeconfigFile: string | undefined;
  leaseNamespace: string | undefined;
  kubernetesService: { host: string; port: number } | undefined;
  /** Newest first; empty only in standalone, which then makes one. */
  encryptionKeys: { id: string; key: Buffer }[];
  dataDirectory: string;
  apiKey: string | undefined;
  manifestsDirectory: string | undefined;
  egressAllowedCidrs: string[];
  egressCaFile: string | undefined;
  egressProxyUrl: string | undefined;
  /** Undefined: no e-mail is sent. */
  smtp: SmtpConfig | undefined;
  deliveryConcurrency: number;
  warehouse: {
    batchAgeMs: number;
    /** Destinations may have the identity of the delivery pods. */
    allowsPlatformIdentity: boolean;
    endpoints: { s3?: string | undefined; gcs?: string | undefined; azure?: string | undefined };
  };
  webhooks: { retryDelaysMs: readonly number[]; allowsInsecureUrls: boolean };
  publicUrl: string | undefined;
  trustedProxies: string[];
  drainMs: number;
  logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

/** All mistakes of a configuration, one a line; the program says them and exits with 2. */
export class ConfigError extends Error {
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    super(
      `the configuration has ${mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`}:\n${mistakes.map((each) => `  ${each}`).join('\n')}`,
    );
    this.name = 'ConfigError';
    this.mistakes = mistakes;
  }
}

/** Reads the configuration of a role, of `posthorn check` or of `posthorn rekey`; an empty variable counts as absent. Throws ConfigError. */
export function readConfig(role: Role | 'check' | 'rekey', environment: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = environmentSchema.safeParse(given);
  const mistakes = parsed.success ? [] : parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  if (role !== 'standalone') {
    for (const name of role === 'check' ? ['POSTHORN_REDIS_URL'] : ['POSTHORN_REDIS_URL', 'POSTHORN_ENCRYPTION_KEYS']) {
      if (given[name] === undefined) mistakes.push(`${name}: is required by ${role}`);
    }
  }
  if (parsed.success) mistakes.push(...redisMistakes(parsed.data), ...smtpMistakes(parsed.data));
  if (!parsed.success || mistakes.length > 0) throw new ConfigError(mistakes);
  const values = parsed.data;
  return {
    port: values.POSTHORN_PORT,
    host: values.POSTHORN_HOST,
    opsPort: values.POSTHORN_OPS_PORT,
    opsUpstream: values.POSTHORN_OPS_UPSTREAM,
    redis: values.POSTHORN_REDIS_URL === undefined ? undefined : redisConfig(values, values.POSTHORN_REDIS_URL),
    redisMemoryLimitBytes: values.POSTHORN_REDIS_MEMORY_LIMIT,
    redisKeyPrefix: values.POSTHORN_REDIS_KEY_PREFIX,
    shards: values.POSTHORN_SHARDS ?? (role === 'standalone' ? 1 : 16),
    resourceStore: role === 'standalone' ? 'redis' : values.POSTHORN_RESOURCE_STORE,
    kubeconfigFile: values.KUBECONFIG,
    leaseNamespace: values.POSTHORN_LEASE_NAMESPACE,
    kubernetesService:
      values.KUBERNETES_SERVICE_HOST === undefined
        ? undefined
        : { host: values.KUBERNETES_SERVICE_HOST, port: values.KUBERNETES_SERVICE_PORT },
    encryptionKeys: values.POSTHORN_ENCRYPTION_KEYS ?? [],
    dataDirectory: values.POSTHORN_DATA_DIR,
    apiKey: values.POSTHORN_API_KEY,
    manifestsDirectory: values.POSTHORN_MANIFESTS_DIR,
    egressAllowedCidrs: values.POSTHORN_EGRESS_ALLOWED_CIDRS,
    egressCaFile: values.POSTHORN_EGRESS_CA_FILE,
    egressProxyUrl: values.POSTHORN_EGRESS_PROXY_URL,
    smtp: smtpConfig(values),
    deliveryConcurrency: values.POSTHORN_DELIVERY_CONCURRENCY,
    warehouse: {
      batchAgeMs: values.POSTHORN_WAREHOUSE_BATCH_SECONDS * 1000,
      allowsPlatformIdentity: values.POSTHORN_WAREHOUSE_PLATFORM_IDENTITY,
      endpoints: {
        s3: values.POSTHORN_WAREHOUSE_S3_ENDPOINT,
        gcs: values.POSTHORN_WAREHOUSE_GCS_ENDPOINT,
        azure: values.POSTHORN_WAREHOUSE_AZURE_ENDPOINT,
      },
    },
    webhooks: {
      retryDelaysMs: values.POSTHORN_WEBHOOK_RETRY_DELAYS ?? defaultWebhookRetryDelaysMs,
      allowsInsecureUrls: values.POSTHORN_ALLOW_INSECURE_ENDPOINTS,
    },
    publicUrl: values.POSTHORN_PUBLIC_URL?.replace(/\/+$/, ''),
    trustedProxies: values.POSTHORN_TRUSTED_PROXIES,
    drainMs: values.POSTHORN_DRAIN_SECONDS * 1000,
    logLevel: values.POSTHORN_LOG_LEVEL,
  };
}

type Environment = z.output<typeof environmentSchema>;

function redisConfig(values: Environment, url: string): RedisConfig {
  const { POSTHORN_REDIS_SENTINEL_USERNAME: username, POSTHORN_REDIS_SENTINEL_PASSWORD: password } = values;
  return {
    mode: values.POSTHORN_REDIS_MODE,
    url,
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

function redisMistakes(values: Environment): string[] {
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

const setByKubernetes = /_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_.+)?)$/;

/** Names of variables that look meant for Posthorn and that it does not know: most likely misspelt. */
export function unknownVariables(environment: Record<string, string | undefined>): string[] {
  return Object.keys(environment).filter(
    (name) => name.startsWith('POSTHORN_') && !(name in environmentSchema.shape) && !setByKubernetes.test(name),
  );
}
