import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { defaultInstallation } from '../core/default-installation.ts';
import { PosthornError } from '../core/errors.ts';
import { wholePayloadBytes } from '../core/payload-sizes.ts';
import { requireOwnStore } from '../data/registry/store-installation.ts';
import type { RedisAddress } from '../redis/address.ts';
import { adminKeyName, standaloneManager } from '../resources/installation-managers.ts';
import type { ManifestsLoad } from '../runtime/manifests/directory.ts';
import { type Component, supervise } from '../runtime/supervisor.ts';
import type { RedisStore } from '../store/redis/redis-store.ts';
import type { ApplyObject } from '../store/store.ts';
import { adminKeySource } from './admin-key-file.ts';
import type { Config } from './config.ts';
import { defaultOrganization } from './default-organization.ts';
import { createHttpServer } from './http-server.ts';
import { closeServer, listen } from './listen.ts';
import { createOpsServer, opsHandler } from './ops-server.ts';
import { readableLayout } from './readable-layout.ts';
import type { Readiness } from './readiness.ts';
import { redisOf } from './redis-address.ts';
import { RedisLink } from './redis-link.ts';
import { checkRedisSettings } from './redis-settings.ts';
import { openRedisStore } from './resource-store.ts';
import { roleKeyring } from './role-keyring.ts';
import type { RoleContext, RoleDefinition } from './role-process.ts';
import { AdminKeyFollower } from './standalone/admin-key-follower.ts';
import { ChildRole } from './standalone/child-role.ts';
import { mergeMetrics } from './standalone/merged-metrics.ts';
import { OwnRedis, standaloneConnectionName } from './standalone/own-redis.ts';
import { socketPath } from './standalone/socket-path.ts';
import { bootstrap } from './standalone/standalone-objects.ts';
import { type StandaloneSecrets, standaloneSecrets } from './standalone/standalone-secrets.ts';
import { waitUntilReconciled } from './standalone/wait-until-reconciled.ts';
import { startUpQuery } from './start-up-query.ts';
import { watchRedis } from './watch-redis.ts';

export interface StandaloneOptions {
  manifestsDirectory: string | undefined;
  workers: number;
  /** Path of this program, to start its other roles with. */
  program: string;
  environment: Record<string, string | undefined>;
}

const loopback = ['127.0.0.0/8', '::1/128'];
const reconciledDeadlineMs = 15_000;

/** Everything on one machine: an own Redis when none is given, and the other roles as processes of their own. */
export function standaloneRole(options: StandaloneOptions): RoleDefinition {
  return {
    role: 'standalone',
    checks: ['redis', 'controller', 'api', 'ingest', 'delivery'],
    run: (context) => runStandalone(context, options),
  };
}

async function runStandalone(context: RoleContext, options: StandaloneOptions): Promise<void> {
  const { config, logger, clock, readiness, stopping } = context;
  const manifestsDirectory = options.manifestsDirectory ?? config.manifestsDirectory;
  if (manifestsDirectory !== undefined) await requireDirectory(manifestsDirectory);
  await requireFreePort(config.port, config.host, 'POSTHORN_PORT');
  if (config.ingestPort !== undefined) await requireFreePort(config.ingestPort, config.host, 'POSTHORN_INGEST_PORT');
  const secrets = standaloneSecrets(config.dataDirectory, config);

  const redisStopping = new AbortController();
  const takesLargePayloads = config.maxPayloadBytes > wholePayloadBytes;
  const ownRedis = config.redis === undefined ? new OwnRedis(config.dataDirectory, { clock, logger, takesLargePayloads }) : null;
  await ownRedis?.takeOver();
  const redisRuns = ownRedis === null ? Promise.resolve() : startRedis(ownRedis, context, redisStopping.signal);
  const redis: RedisAddress = ownRedis === null ? redisOf(config, logger) : { mode: 'single', url: ownRedis.url };
  let link: RedisLink | null = null;
  try {
    if (ownRedis !== null && !(await Promise.race([ownRedis.waitUntilUp(stopping), redisRuns.then(() => false)]))) return;
    link = new RedisLink(redis, { name: standaloneConnectionName, prefix: config.redisKeyPrefix, logger, readiness });
    void watchRedis(link, context, { settings: false });
    const keyring = roleKeyring(secrets, context);
    const store = openRedisStore(link, { keyring, prefix: config.redisKeyPrefix, clock });
    if (!(await link.waitUntilReachable(clock, stopping))) return;
    await checkRedisSettings(link.main, logger);
    const place = { redis: link.main, prefix: config.redisKeyPrefix };
    await startUpQuery(context, 'whose the data is', () => requireOwnStore(place, defaultInstallation));
    await readableLayout(link, context);
    await bootstrap(store, secrets.apiKey);
    await runChildren({ context, options, manifestsDirectory, secrets, redis, store });
  } finally {
    link?.close();
    redisStopping.abort();
    await redisRuns;
  }
}

/** The first start must succeed; after that a crash is a reason to start it again. */
async function startRedis(redis: OwnRedis, { clock, logger }: RoleContext, signal: AbortSignal): Promise<void> {
  const startedAtMs = clock.now();
  try {
    await redis.run(signal);
  } catch (error) {
    if (clock.now() - startedAtMs < 2000) throw error;
    logger.error({ err: error }, 'redis-server stopped; restarting');
    await supervise(redis, { clock, logger, signal });
  }
}

interface Parts {
  context: RoleContext;
  options: StandaloneOptions;
  manifestsDirectory: string | undefined;
  secrets: StandaloneSecrets;
  redis: RedisAddress;
  store: RedisStore;
}

async function runChildren(parts: Parts): Promise<void> {
  const { context, options, manifestsDirectory, secrets, redis, store } = parts;
  const { config, clock, logger, registry, readiness, stopping } = context;
  const children: ChildRole[] = [];
  const metrics = async () => {
    const own = { process: 'standalone', text: await registry.metrics() };
    const others = await Promise.all(children.map(async (child) => ({ process: child.name, text: await child.metrics() })));
    return { contentType: registry.contentType, text: mergeMetrics([own, ...others]) };
  };
  const ops = createOpsServer(opsHandler({ readiness, logger, metrics }));
  const opsPort = await listen(ops, {
    port: config.opsPort ?? 0,
    host: config.opsPort === undefined ? '127.0.0.1' : config.host,
    setting: 'POSTHORN_OPS_PORT',
  });
  logger.info({ opsPort }, 'serving health and metrics');

  const environment = {
    ...options.environment,
    // If it is in a file, each process reads it there.
    ...(config.redis?.urlFile === undefined && { POSTHORN_REDIS_URL: redis.url }),
    ...(secrets.encryptionKeysFile !== undefined && { POSTHORN_ENCRYPTION_KEYS_FILE: secrets.encryptionKeysFile }),
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_SHARDS: String(config.shards),
    POSTHORN_EGRESS_ALLOWED_CIDRS: [...config.egress.allowedCidrs, ...loopback].join(','),
    POSTHORN_OPS_UPSTREAM: `http://127.0.0.1:${opsPort}`,
    ...publicUrls(config, options.environment),
    ...entrance(config),
    POSTHORN_LOOPBACK_ORGANIZATION: defaultOrganization,
    POSTHORN_API_KEY: undefined,
    POSTHORN_API_KEY_FILE: undefined,
  };
  const child = (role: string, name: string): ChildRole =>
    new ChildRole({
      name,
      role,
      program: options.program,
      environment: () => (role === 'ingest' ? { ...environment, POSTHORN_PORT: String(config.ingestPort ?? config.port) } : environment),
      clock,
      stopDeadlineMs: config.drainMs + 5000,
      onState: () => followState(role, children, readiness),
    });
  const workers = Array.from({ length: options.workers }, (_, i) =>
    child('delivery', options.workers === 1 ? 'delivery' : `delivery-${i + 1}`),
  );
  children.push(child('controller', 'controller'), child('api', 'api'), child('ingest', 'ingest'), ...workers);

  const components: Component[] = [...children];
  const adminKeys = adminKeySource({ key: secrets.apiKey, file: config.apiKeyFile ?? secrets.apiKeyFile });
  if (adminKeys !== null) components.push(new AdminKeyFollower({ store, source: adminKeys, key: secrets.apiKey, clock, logger }));
  const firstLoad = Promise.withResolvers<readonly ApplyObject[]>();
  if (manifestsDirectory === undefined) firstLoad.resolve([]);
  else {
    const onLoad = (load: ManifestsLoad): void => {
      reportLoad(load, context);
      firstLoad.resolve(load.objects);
    };
    const [{ ManifestApplier }, { ManifestsDirectory }] = await Promise.all([
      import('../runtime/manifests/apply.ts'),
      import('../runtime/manifests/directory.ts'),
    ]);
    const applier = new ManifestApplier(store, { protectedManager: standaloneManager });
    components.push(new ManifestsDirectory({ directory: manifestsDirectory, applier, clock, logger, registry, onLoad }));
  }
  const running = Promise.all(components.map((component) => supervise(component, { clock, logger, signal: stopping })));
  const adminKey: ApplyObject = { kind: 'ApiKey', metadata: { name: adminKeyName, namespace: defaultOrganization } };
  void tellReady(parts, () => firstLoad.promise.then((objects) => [...objects, adminKey])).catch((error) =>
    logger.error({ err: error }, 'the ready line could not be printed'),
  );
  await running;
  await closeServer(ops, 1000);
}

/** Puts the readiness of a role's processes into our own. */
function followState(role: string, children: readonly ChildRole[], readiness: Readiness): void {
  const states = children.filter(({ name }) => name === role || name.startsWith(`${role}-`)).map(({ state }) => state);
  readiness.set(role, states.find(({ ok }) => !ok) ?? { ok: true });
}

/** Prints the line that reports that everything works, once, and the address of the console. */
async function tellReady({ context, secrets, store }: Parts, firstObjects: () => Promise<readonly ApplyObject[]>): Promise<void> {
  const { config, clock, readiness, stopping } = context;
  while (!readiness.ready && !stopping.aborted) await clock.sleep(50, stopping);
  await waitUntilReconciled(store, await firstObjects(), { clock, deadlineMs: reconciledDeadlineMs, signal: stopping });
  if (stopping.aborted) return;
  const key = secrets.isApiKeyNew ? ` key ${secrets.apiKey}` : '';
  const console = config.console ? `Console: ${ownUrl(config)}${config.basePath}/console/\n` : '';
  process.stdout.write(`posthorn ready ${ownUrl(config)}${key}\n${console}`);
}

/**
 * Where the api and the ingest process listen. On one port ingest does: it serves `/ingest/` itself and passes everything else on, so that events do
 * not wait for the API, nor for its start after a crash.
 */
function entrance({ dataDirectory, port, ingestPort }: Config) {
  if (ingestPort !== undefined) return { POSTHORN_API_SOCKET: undefined };
  return { POSTHORN_API_SOCKET: socketPath(join(resolve(dataDirectory), 'api'), `${port}.sock`) };
}

function publicUrls(config: Config, given: Record<string, string | undefined>) {
  const { POSTHORN_PUBLIC_URL: api, POSTHORN_PUBLIC_INGEST_URL: ingest } = given;
  const { ingestPort = config.port } = config;
  return {
    POSTHORN_PUBLIC_URL: api || ownUrl(config),
    POSTHORN_PUBLIC_INGEST_URL: ingest || api || ownUrl({ ...config, port: ingestPort }),
  };
}

function ownUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  return `http://${urlHost(host)}:${port}`;
}

function urlHost(host: string | undefined): string {
  if (host === undefined || host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

function reportLoad({ files, objects, errors, waiting, pruned }: ManifestsLoad, { logger, readiness }: RoleContext): void {
  logger.info({ files, objects: objects.length, errors: errors.length, waiting, pruned }, 'manifests loaded');
  for (const { file, message } of errors) {
    logger.error({ file, error: message }, 'a manifest is invalid');
    process.stdout.write(`posthorn manifest error ${file}: ${message}\n`);
  }
  const early = waiting === 0 ? '' : `, ${waiting} wait for the namespace of their organization`;
  const detail =
    errors.length === 0
      ? `${objects.length} objects from ${files} files${early}`
      : errors.map(({ file, message }) => `${file}: ${message}`).join('; ');
  readiness.note('manifests', () => detail);
}

async function requireDirectory(directory: string): Promise<void> {
  const isDirectory = await stat(directory).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isDirectory) throw new PosthornError('INVALID_CONFIG', `the manifests directory ${directory} does not exist`);
}

/** Finds out before anything is started, and without a child that is started again and again. */
async function requireFreePort(port: number, host: string | undefined, setting: string): Promise<void> {
  const probe = createHttpServer((_request, response) => void response.writeHead(503).end());
  await listen(probe, { port, host, setting });
  await closeServer(probe, 1000);
}
