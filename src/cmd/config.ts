import { z } from 'zod';
import type { PoolDefaults } from '../compile/delivery-pool/pool-setting.ts';
import type { AttemptDetailMode } from '../core/attempt-detail-mode.ts';
import { defaultPool } from '../core/default-pool.ts';
import { largestPayloadBytes, wholePayloadBytes } from '../core/payload-sizes.ts';
import { defaultWebhookRetryDelaysMs } from '../core/webhook.ts';
import { cidrList, connectableUrl, count, flag, optionalPort, port, portNumber, retryDelays, wholeNumber } from './config-values.ts';
import { consoleEnvironment } from './console-config.ts';
import type { ConsoleView } from './console-views.ts';
import { deliveryPoolEnvironment, poolDefaults } from './delivery-pool-config.ts';
import { type EgressConfig, egressConfig, egressEnvironment } from './egress-config.ts';
import { type ReadText, readTextFile, withFileVariables } from './file-variables.ts';
import { installationEnvironment, installationMistakes } from './installation-config.ts';
import { type RedisConfig, redisConfig, redisEnvironment, redisMistakes } from './redis-config.ts';
import { type SecretsConfig, secretsConfig, secretsEnvironment } from './secrets-config.ts';
import { type SmtpConfig, smtpConfig, smtpEnvironment, smtpMistakes } from './smtp-config.ts';
import { type WarehouseConfig, warehouseConfig, warehouseEnvironment } from './warehouse-config.ts';
import { workerEnvironment } from './worker-config.ts';

export const roles = ['controller', 'api', 'ingest', 'delivery', 'standalone'] as const;
export type Role = (typeof roles)[number];

/** Schema of the environment. The descriptions are the text of docs/configuration.md. */
export const environmentSchema = z.object({
  POSTHORN_PORT: port(8080)
    .describe('Port of the REST API; of the role ingest that of `/ingest/`; of standalone that of both.')
    .meta({ roles: ['api', 'ingest', 'standalone'] }),
  POSTHORN_INGEST_PORT: optionalPort
    .describe('Port of `/ingest/` alone, where it is not to be on `POSTHORN_PORT` with the REST API. Default: none.')
    .meta({ roles: ['standalone'] }),
  POSTHORN_API_SOCKET: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe(
      'Unix socket on which the api listens in place of `POSTHORN_PORT`, and to which ingest passes on what is not for `/ingest/`. Standalone sets it for its own processes, so that both are on one port.',
    )
    .meta({ roles: ['api', 'ingest'] }),
  POSTHORN_CONSOLE: z
    .enum(['on', 'off'])
    .default('on')
    .transform((value) => value === 'on')
    .describe('`off`: there is no console, no login and no session of a browser, and standalone takes no request without credentials.')
    .meta({ roles: ['api', 'standalone'] }),
  ...consoleEnvironment,
  POSTHORN_LOOPBACK_ORGANIZATION: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Organization of requests without credentials from the machine itself. Standalone sets it for its own processes; where resources live in Kubernetes it has no effect.',
    )
    .meta({ roles: ['api'] }),
  POSTHORN_API_INGEST: flag
    .default(false)
    .describe('`true`: the api accepts events at `/ingest/`, too, while its senders are moved to ingest. Otherwise it answers 404 there.')
    .meta({ roles: ['api'] }),
  POSTHORN_HOST: z
    .string()
    .min(1)
    .optional()
    .describe('Address to listen on. Default: all addresses.')
    .meta({ roles: [...roles] }),
  POSTHORN_OPS_PORT: portNumber
    .optional()
    .describe(
      'Port of `/livez`, `/readyz` and `/metrics`, not for the public. The roles api and ingest serve the first two on `POSTHORN_PORT` too. Default: 9090; in standalone any free port of the loopback address.',
    )
    .meta({ roles: [...roles] }),
  POSTHORN_OPS_UPSTREAM: z
    .url({ protocol: /^http$/ })
    .optional()
    .describe('Where `/readyz` on `POSTHORN_PORT` is fetched from. Standalone sets it for its own processes.')
    .meta({ roles: ['api', 'ingest'] }),
  ...redisEnvironment,
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
  POSTHORN_TOKEN_AUDIENCES: z
    .string()
    .regex(/^[^\s,]+(,[^\s,]+)*$/, 'must be names with commas between them')
    .default('posthorn')
    .transform((text) => text.split(','))
    .describe(
      'Audiences, with commas between them: in a cluster a token of Kubernetes (of a service account, or of a user) for one of them is taken in place of an API key, as in `kubectl create token NAME --audience posthorn`. Default: `posthorn`.',
    )
    .meta({ roles: ['api'] }),
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
      'Namespace of the installation: that of the Lease `posthorn-controller`, by which controllers elect their leader, and of its DeliveryPools. Default: that of the pod; for the Lease else `default`.',
    )
    .meta({ roles: ['controller', 'api'] }),
  ...installationEnvironment,
  ...secretsEnvironment,
  POSTHORN_DATA_DIR: z
    .string()
    .min(1)
    .default('.posthorn')
    .describe('Directory of keys and of the Redis data.')
    .meta({ roles: ['standalone'] }),
  POSTHORN_BOOTSTRAP_DIR: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Directory of YAML manifests of what an installation must have, such as the organization `default`: a controller that begins to lead applies them, and deletes nothing. A namespaced object that names no namespace goes to that of the Lease. The Helm chart sets it.',
    )
    .meta({ roles: ['controller'] }),
  POSTHORN_BOOTSTRAP_CONFIG_MAP: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'must be the name of a ConfigMap')
    .optional()
    .describe(
      'Name of the ConfigMap that these manifests come from, in the namespace of the Lease: Events on it report what could not be applied. The Helm chart sets it.',
    )
    .meta({ roles: ['controller'] }),
  POSTHORN_MANIFESTS_DIR: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Directory of YAML manifests to load and watch; `--manifests` goes before it. They are read as kubectl reads YAML: without quotes `no`, `on` and `y` are booleans, and `0123` is octal.',
    )
    .meta({ roles: ['standalone'] }),
  ...egressEnvironment,
  ...warehouseEnvironment,
  POSTHORN_SECRET_CONSENT: flag
    .default(false)
    .describe(
      '`true`: an object may refer to a Secret only if it has the label `posthorn.dev/usable: "true"`, or if the API made it for that object. Otherwise a user who may write a Destination can have any Secret of its namespace sent to any host.',
    )
    .meta({ roles: ['controller', 'standalone'] }),
  POSTHORN_WEBHOOK_RETRY_DELAYS: retryDelays
    .describe(
      'Seconds from one attempt at a webhook endpoint without `retryDelays` to the next, separated by commas; with the first attempt there is one more than these. Default: 5,300,1800,7200,18000,36000,36000.',
    )
    .meta({ roles: ['api', 'delivery', 'standalone'] }),
  POSTHORN_WEBHOOK_DISABLE_AFTER_HOURS: count(0, 8760, 0)
    .describe(
      'Hours of uninterrupted failure after which a webhook endpoint is disabled, unless it or its application has `disableAfterHours`. `0`: never.',
    )
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_ALLOW_INSECURE_ENDPOINTS: flag
    .default(false)
    .describe('`true`: webhook endpoints may have `http://` URLs, for development. Otherwise they must have `https://`.')
    .meta({ roles: ['api', 'controller', 'delivery', 'standalone'] }),
  ...smtpEnvironment,
  ...deliveryPoolEnvironment,
  POSTHORN_DELIVERY_POOL: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?$/, 'must be the name of a DeliveryPool')
    .default(defaultPool)
    .describe('The DeliveryPool of which the worker is: it delivers what the organizations of that pool have. A pool sets it.')
    .meta({ roles: ['delivery'] }),
  ...workerEnvironment,
  POSTHORN_PUBLIC_URL: connectableUrl
    .optional()
    .describe(
      'Address by which clients reach the installation. Links of thin deliveries begin with it. Default: in standalone the address that it listens on; else none: the `ingestUrl` of sources is a path without a host, and `payloadForm: thin` is refused.',
    )
    .meta({ roles: ['api', 'controller', 'delivery', 'ingest', 'standalone'] }),
  POSTHORN_PUBLIC_INGEST_URL: connectableUrl
    .optional()
    .describe('Address by which senders reach `/ingest/`, for the `ingestUrl` of sources. Default: `POSTHORN_PUBLIC_URL`.')
    .meta({ roles: ['api', 'ingest', 'standalone'] }),
  POSTHORN_MAX_PAYLOAD_BYTES: wholeNumber(wholePayloadBytes, largestPayloadBytes)
    .default(wholePayloadBytes)
    .describe(
      'Bytes of the largest payload that a source may take, up to 33554432 (32 MiB); an organization has what `limits.payloadBytes` or its plan allows, and never more than this. Workers read compressed payloads of more than 1 MiB for transforms where it is above 1 MiB.',
    )
    .meta({ roles: ['ingest', 'delivery', 'standalone'] }),
  POSTHORN_AUTH_FAILURES_PER_MINUTE: count(1, 1_000_000, 60)
    .describe(
      'API keys, and as many Kubernetes tokens, of one client address (IPv6: of one /64) that a process refuses in a minute with 401; further wrong ones get 429. Valid API keys, and tokens that the process has accepted before, are not held up.',
    )
    .meta({ roles: ['api', 'standalone'] }),
  POSTHORN_TRUSTED_PROXIES: cidrList
    .describe(
      'Networks of the proxies in front of `/ingest/` and `/api/`, as CIDRs separated by commas: the sender is then the last address in `X-Forwarded-For` that is none of them. Default: none, the sender is who connects.',
    )
    .meta({ roles: ['api', 'ingest', 'standalone'] }),
  POSTHORN_DRAIN_SECONDS: count(1, 3600, 25)
    .describe('How long SIGTERM waits for what is under way.')
    .meta({ roles: [...roles] }),
  POSTHORN_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least severe log lines that are written.')
    .meta({ roles: [...roles] }),
});

export interface Config extends SecretsConfig {
  port: number;
  /** Undefined: ingest is on the port of the API. */
  ingestPort: number | undefined;
  apiSocket: string | undefined;
  apiTakesEvents: boolean;
  console: boolean;
  /** As `/posthorn`; empty: none. */
  basePath: string;
  consoleTheme: 'auto' | 'light' | 'dark';
  consoleViews: readonly ConsoleView[];
  /** Undefined: every request needs credentials. */
  loopbackOrganization: string | undefined;
  host: string | undefined;
  /** Undefined: the role's own default. */
  opsPort: number | undefined;
  opsUpstream: string | undefined;
  /** Undefined only in standalone, which then starts its own. */
  redis: RedisConfig | undefined;
  /** Undefined: as Redis reports. */
  redisMemoryLimitBytes: number | undefined;
  redisKeyPrefix: string;
  shards: number;
  resourceStore: 'kubernetes' | 'redis';
  kubeconfigFile: string | undefined;
  leaseNamespace: string | undefined;
  /** Serves the Organizations that name it. */
  installation: string;
  /** Names the ClusterRoles that the controller binds in the namespaces of organizations, and their quotas. */
  installationName: string;
  kubernetesService: { host: string; port: number } | undefined;
  dataDirectory: string;
  manifestsDirectory: string | undefined;
  bootstrapDirectory: string | undefined;
  bootstrapConfigMap: string | undefined;
  egress: EgressConfig;
  /** Undefined: no e-mail is sent. */
  smtp: SmtpConfig | undefined;
  /** E-mails of one organization, one for each address. */
  mailsPerDay: number;
  /** Domains of addresses that may get e-mails; empty: any. */
  mailDomains: string[];
  /** Addresses get e-mails of an organization once their owners have confirmed it. */
  requiresMailConfirmation: boolean;
  /** Without a slash at the end; undefined: it is not set. */
  publicUrl: string | undefined;
  /** What the workers of DeliveryPools get. */
  pools: PoolDefaults;
  deliveryPool: string;
  deliveryConcurrency: number;
  attemptDetail: AttemptDetailMode;
  warehouse: WarehouseConfig;
  /** Secrets of users need their label to be used. */
  requiresSecretConsent: boolean;
  webhooks: { retryDelaysMs: readonly number[]; disableAfterHours: number; allowsInsecureUrls: boolean };
  /** Without a slash at the end; undefined: it is not set. */
  publicIngestUrl: string | undefined;
  /** Audiences of tokens that are accepted instead of API keys. */
  tokenAudiences: string[];
  /** Refused credentials of one client. */
  maxAuthFailuresPerMinute: number;
  trustedProxies: string[];
  maxPayloadBytes: number;
  drainMs: number;
  logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

/** All errors of a configuration, one a line; the program prints them and exits with 2. */
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

/** Who makes the links to the page where addresses are confirmed, or has it. */
const leadsToPage: ReadonlySet<string> = new Set<Role>(['api', 'delivery', 'standalone']);

/** Reads the configuration of a role, of `posthorn check`, `lint`, `migrate`, `rekey` or `uninstall`; an empty variable counts as absent. `readText` reads the files that contain variables. Throws ConfigError. */
export function readConfig(
  role: Role | 'check' | 'lint' | 'migrate' | 'rekey' | 'uninstall',
  environment: Record<string, string | undefined>,
  readText: ReadText = readTextFile,
): Config {
  const variables = Object.fromEntries(Object.entries(environment).flatMap(([name, value]) => (value ? [[name, value]] : [])));
  const { environment: given, mistakes } = withFileVariables(variables, readText);
  const parsed = environmentSchema.safeParse(given);
  if (!parsed.success) mistakes.push(...parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`));
  if (role !== 'standalone' && role !== 'uninstall' && role !== 'lint') {
    for (const name of role === 'check' || role === 'migrate'
      ? ['POSTHORN_REDIS_URL']
      : ['POSTHORN_REDIS_URL', 'POSTHORN_ENCRYPTION_KEYS']) {
      // A file that is given and cannot be read is a mistake of its own.
      if (given[name] === undefined && given[`${name}_FILE`] === undefined) mistakes.push(`${name}: is required by ${role}`);
    }
  }
  if (given['POSTHORN_PUBLIC_URL'] === undefined && parsed.data?.POSTHORN_MAIL_CONFIRMATION === true && leadsToPage.has(role))
    mistakes.push('POSTHORN_PUBLIC_URL: is required with POSTHORN_MAIL_CONFIRMATION, for the links that are sent');
  if (parsed.success)
    mistakes.push(...redisMistakes(parsed.data), ...smtpMistakes(parsed.data), ...installationMistakes({ ...parsed.data, role }));
  if (!parsed.success || mistakes.length > 0) throw new ConfigError(mistakes);
  const values = parsed.data;
  return {
    port: values.POSTHORN_PORT,
    ingestPort: values.POSTHORN_INGEST_PORT,
    apiSocket: values.POSTHORN_API_SOCKET,
    apiTakesEvents: values.POSTHORN_API_INGEST,
    console: values.POSTHORN_CONSOLE,
    basePath: values.POSTHORN_BASE_PATH,
    consoleTheme: values.POSTHORN_CONSOLE_THEME,
    consoleViews: values.POSTHORN_CONSOLE_VIEWS,
    loopbackOrganization: role === 'api' && values.POSTHORN_RESOURCE_STORE === 'redis' ? values.POSTHORN_LOOPBACK_ORGANIZATION : undefined,
    host: values.POSTHORN_HOST,
    opsPort: values.POSTHORN_OPS_PORT,
    opsUpstream: values.POSTHORN_OPS_UPSTREAM,
    redis: values.POSTHORN_REDIS_URL === undefined ? undefined : redisConfig(values, values.POSTHORN_REDIS_URL, variables),
    redisMemoryLimitBytes: values.POSTHORN_REDIS_MEMORY_LIMIT,
    redisKeyPrefix: values.POSTHORN_REDIS_KEY_PREFIX,
    shards: values.POSTHORN_SHARDS ?? (role === 'standalone' ? 1 : 16),
    resourceStore: role === 'standalone' ? 'redis' : values.POSTHORN_RESOURCE_STORE,
    kubeconfigFile: values.KUBECONFIG,
    leaseNamespace: values.POSTHORN_LEASE_NAMESPACE,
    installation: values.POSTHORN_INSTALLATION,
    installationName: values.POSTHORN_INSTALLATION_NAME,
    kubernetesService:
      values.KUBERNETES_SERVICE_HOST === undefined
        ? undefined
        : { host: values.KUBERNETES_SERVICE_HOST, port: values.KUBERNETES_SERVICE_PORT },
    ...secretsConfig(values, variables),
    dataDirectory: values.POSTHORN_DATA_DIR,
    manifestsDirectory: values.POSTHORN_MANIFESTS_DIR,
    bootstrapDirectory: values.POSTHORN_BOOTSTRAP_DIR,
    bootstrapConfigMap: values.POSTHORN_BOOTSTRAP_CONFIG_MAP,
    egress: egressConfig(values),
    smtp: smtpConfig(values),
    mailsPerDay: values.POSTHORN_MAILS_PER_DAY,
    mailDomains: values.POSTHORN_MAIL_DOMAINS,
    requiresMailConfirmation: values.POSTHORN_MAIL_CONFIRMATION,
    publicUrl: values.POSTHORN_PUBLIC_URL?.replace(/\/+$/, ''),
    pools: poolDefaults(values),
    deliveryPool: values.POSTHORN_DELIVERY_POOL,
    deliveryConcurrency: values.POSTHORN_DELIVERY_CONCURRENCY,
    attemptDetail: values.POSTHORN_ATTEMPT_DETAIL,
    warehouse: warehouseConfig(values),
    requiresSecretConsent: values.POSTHORN_SECRET_CONSENT,
    webhooks: {
      retryDelaysMs: values.POSTHORN_WEBHOOK_RETRY_DELAYS ?? defaultWebhookRetryDelaysMs,
      disableAfterHours: values.POSTHORN_WEBHOOK_DISABLE_AFTER_HOURS,
      allowsInsecureUrls: values.POSTHORN_ALLOW_INSECURE_ENDPOINTS,
    },
    publicIngestUrl: (values.POSTHORN_PUBLIC_INGEST_URL ?? values.POSTHORN_PUBLIC_URL)?.replace(/\/+$/, ''),
    tokenAudiences: values.POSTHORN_TOKEN_AUDIENCES,
    maxAuthFailuresPerMinute: values.POSTHORN_AUTH_FAILURES_PER_MINUTE,
    trustedProxies: values.POSTHORN_TRUSTED_PROXIES,
    maxPayloadBytes: values.POSTHORN_MAX_PAYLOAD_BYTES,
    drainMs: values.POSTHORN_DRAIN_SECONDS * 1000,
    logLevel: values.POSTHORN_LOG_LEVEL,
  };
}

const setByKubernetes = /_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_.+)?)$/;

/** Names of unknown variables that look meant for Posthorn: most likely misspelt. */
export function unknownVariables(environment: Record<string, string | undefined>): string[] {
  return Object.keys(environment).filter(
    (name) => name.startsWith('POSTHORN_') && !(name in environmentSchema.shape) && !setByKubernetes.test(name),
  );
}
