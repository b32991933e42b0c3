import { PosthornError } from '../core/errors.ts';
import { fromLoopbackHeader, isFromLoopback, isLoopbackHost } from '../core/loopback.ts';
import { requestIdFor } from '../core/request-id.ts';
import { feedBlockMs } from '../data/feed/feed-reader.ts';
import { SignatureFailureLog } from '../data/intake/signature-failure-log.ts';
import type { RegistryReader } from '../data/registry/registry.ts';
import { taskBlockSeconds } from '../data/tasks/task-kind.ts';
import { createFacade } from '../facade/app.ts';
import { KubernetesCallers } from '../facade/http/kubernetes-callers.ts';
import type { LoopbackOptions } from '../facade/http/loopback-access.ts';
import { recoverPendingWrites } from '../facade/records/write-transaction.ts';
import { answerError } from '../ingest/answer.ts';
import type { IngestHandler } from '../ingest/handler.ts';
import { isIngestTarget } from '../ingest/path.ts';
import { ReplicatedWrites } from '../redis/replicated-writes.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import type { KubernetesEvents } from '../store/kubernetes/kubernetes-events.ts';
import { createStoreMetrics } from '../store/metrics.ts';
import { agreedShards } from './agreed-shards.ts';
import { apiServerClockMetric } from './api-server-clock.ts';
import type { Config } from './config.ts';
import { createHttpServer } from './http-server.ts';
import { installationNamespace } from './lease-namespace.ts';
import { aborted, boundAddress, closeServer, drainServer, listen, listenOnSocket } from './listen.ts';
import { metricsOf, opsHandler } from './ops-server.ts';
import { answerForeign, OwnStore, ownStoreCheck } from './own-store.ts';
import { publishedRecords } from './published-records.ts';
import { readableLayout } from './readable-layout.ts';
import { redisOf } from './redis-address.ts';
import { RedisLink } from './redis-link.ts';
import { reportProcess } from './report-process.ts';
import { openResourceStore } from './resource-store.ts';
import { roleKeyring } from './role-keyring.ts';
import { type RoleContext, type RoleDefinition, startOpsServer, trafficHeapGrowthPercent } from './role-process.ts';
import { publicHealth } from './upstream-health.ts';
import { version } from './version.ts';
import { watchRedis } from './watch-redis.ts';
import { facadeCaches, wireApi } from './wire-api.ts';

/** The same from src/ and from dist/. */
const consoleDirectory = new URL('../../dist/web/', import.meta.url).pathname;

const resourcesDeadlineMs = 30_000;

/** The REST API. It answers with the Redis it has; only changes of resources need the resource store. */
export const apiRole: RoleDefinition = {
  role: 'api',
  checks: ['redis', 'resources'],
  heapGrowthPercent: trafficHeapGrowthPercent,
  run: runApi,
};

async function runApi(context: RoleContext): Promise<void> {
  const { config, logger, clock, registry, readiness, stopping } = context;
  const ops = opsHandler({ readiness, logger, metrics: metricsOf(registry) });
  const health = publicHealth(context);
  const ending = new AbortController();
  const prefix = config.redisKeyPrefix;
  const check = ownStoreCheck(config, { claims: false });
  const link = new RedisLink(redisOf(config, logger), { name: 'api', prefix, logger, readiness, check });
  void watchRedis(link, context, { settings: false });
  void reportProcess(link, context, 'api');
  const own = new OwnStore(link, context, check);
  const keyring = roleKeyring(config, context, () => records.flush());
  const records = publishedRecords(link, context);
  const storeMetrics = createStoreMetrics(registry);
  const writes = new ReplicatedWrites({ redis: link.command('writes'), clock, logger, registry });
  const { store, kubernetes, close: closeStore } = await openResourceStore(link, config, { clock, metrics: storeMetrics, keyring, writes });
  apiServerClockMetric(registry, kubernetes);
  const resources = facadeCaches({ store, clock, logger, metrics: storeMetrics });
  const sandbox = new Sandbox({ clock, processes: 2 });
  let shards = config.shards;
  const storing = link.command('ingest');
  const parts = wireApi({
    connections: {
      redis: link.main,
      storing,
      payloads: link.command('payloads'),
      feed: link.blocking('feed', feedBlockMs),
      tasks: link.blocking('tasks', taskBlockSeconds * 1000),
    },
    prefix,
    clock,
    logger,
    metrics: registry,
    registry: records,
    writes,
    shards: () => shards,
    memoryLimitBytes: config.redisMemoryLimitBytes,
    installation: {
      name: config.installation,
      mode: kubernetes === null ? 'standalone' : 'cluster',
      namespace: kubernetes === null ? null : installationNamespace(config),
    },
    maxAttempts: config.webhooks.retryDelaysMs.length + 1,
    requiresMailConfirmation: config.requiresMailConfirmation,
  });
  const { intake, sending, streams, writeAheadLog } = parts;
  const services = {
    ...parts,
    store,
    caches: resources.caches,
    kubernetesCallers: await openKubernetesCallers(kubernetes, records, config),
    objectEvents: await openObjectEvents(kubernetes),
    allowsInsecureEndpoints: config.webhooks.allowsInsecureUrls,
    hasPublicUrl: config.publicUrl !== undefined,
    sandbox,
    keyring,
    allowsPlatformIdentity: config.warehouse.allowsPlatformIdentity,
    mailDomains: config.mailDomains,
    version,
    trustedProxies: config.trustedProxies,
    isOnUnixSocket: config.apiSocket !== undefined,
    maxAuthFailuresPerMinute: config.maxAuthFailuresPerMinute,
    basePath: config.basePath,
    console: config.console ? { directory: consoleDirectory, theme: config.consoleTheme, views: config.consoleViews } : null,
    takesSessions: config.console,
    loopback: loopbackOf(config, () => boundAddress(server)),
    ...(config.publicIngestUrl === undefined ? {} : { publicIngestUrl: config.publicIngestUrl }),
  };
  const facade = createFacade(services);
  const signatureFailures = new SignatureFailureLog({ redis: storing, prefix, clock, logger });
  const events = {
    sandbox,
    signatureFailures,
    registry: records,
    acceptor: sending.acceptor,
    intake,
    keyring,
    clock,
    logger,
    metrics: registry,
  };
  const senders = { publicUrl: config.publicIngestUrl, trustedProxies: config.trustedProxies };
  const ingest = config.apiTakesEvents
    ? (await import('../ingest/handler.ts')).createIngestHandler({ ...events, ...senders })
    : eventsElsewhere;
  const server = createHttpServer(
    (request, response) => {
      // The facade reports that Redis has not responded yet, and serves the console meanwhile.
      if (!own.isOwn && isIngestTarget(request.url ?? '')) return answerForeign(request, response);
      if (ingest(request, response) || health(request, response)) return;
      if (own.refusal !== null) answerForeign(request, response);
      else facade(request, response);
    },
    // Behind the socket the process that has the port has taken it off.
    { trustedProxies: config.trustedProxies, basePath: config.apiSocket === undefined ? config.basePath : '' },
  );
  if (config.apiSocket === undefined) await listen(server, { port: config.port, host: config.host, setting: 'POSTHORN_PORT' });
  else await listenOnSocket(server, config.apiSocket);
  const opsServer = await startOpsServer(context, ops);
  logger.info(config.apiSocket === undefined ? { port: config.port } : { socket: config.apiSocket }, 'listening');
  if (await link.waitUntilReachable(clock, stopping)) {
    await own.untilOwn();
    await readableLayout(link, context);
    shards = await agreedShards(link, context);
  } else ending.abort();
  records.start();
  const following = resources.run(ending.signal);
  const finishing = writeAheadLog.run((org) => recoverPendingWrites(services, org), ending.signal);
  let isSynced = false;
  void resources.synced.then(() => {
    isSynced = true;
    readiness.set('resources', { ok: true });
  });
  // Reads and sends need no resource store: they must not wait for one that is down.
  void clock
    .sleep(resourcesDeadlineMs, ending.signal)
    .then(() => isSynced || readiness.set('resources', { ok: true, detail: 'the resource store may be unreachable' }));

  await aborted(stopping);
  streams.close();
  await drainServer(server, config.drainMs);
  await signatureFailures.close();
  ending.abort();
  await Promise.all([following, finishing, records.stop(), closeServer(opsServer, 1000)]);
  sandbox.close();
  await closeStore();
  link.close();
}

/**
 * Requests without credentials, in standalone with a console: on one port its ingest process authorizes them. Null where settings configure a proxy, whose
 * clients come from anywhere.
 */
function loopbackOf(config: Config, address: () => string | null): LoopbackOptions | null {
  const { apiSocket, basePath, console, loopbackOrganization, publicUrl, trustedProxies } = config;
  const isReachedElsewhere = publicUrl !== undefined && !isLoopbackHost(new URL(publicUrl).host);
  if (!console || loopbackOrganization === undefined || basePath !== '' || trustedProxies.length > 0 || isReachedElsewhere) return null;
  return {
    organization: loopbackOrganization,
    isFromHere: (request) => (apiSocket === undefined ? isFromLoopback(request, address()) : request.headers[fromLoopbackHeader] === '1'),
  };
}

const eventsElsewhere: IngestHandler = (request, response) => {
  if (!isIngestTarget(request.url ?? '')) return false;
  const error = new PosthornError('NOT_FOUND', 'This server does not accept events: post them to the ingestUrl of the source.');
  answerError(response, requestIdFor(request.headers['x-request-id']), error);
  return true;
};

async function openObjectEvents(api: KubernetesApi | null): Promise<KubernetesEvents | null> {
  if (api === null) return null;
  const { KubernetesEvents } = await import('../store/kubernetes/kubernetes-events.ts');
  return new KubernetesEvents({ api });
}

/** Null: resources live in Redis, and there is no API server. */
async function openKubernetesCallers(
  api: KubernetesApi | null,
  registry: RegistryReader,
  { tokenAudiences }: Config,
): Promise<KubernetesCallers | null> {
  if (api === null) return null;
  const { KubernetesAccess } = await import('../store/kubernetes/kubernetes-access.ts');
  return new KubernetesCallers({ access: new KubernetesAccess({ api, audiences: tokenAudiences }), registry });
}
