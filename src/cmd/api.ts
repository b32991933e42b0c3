import { Keyring } from '../core/sealing.ts';
import { ApiKeyUsage } from '../data/api-key-usage.ts';
import { BegunWrites } from '../data/begun-writes.ts';
import { changeStreamBlockMs } from '../data/change-stream.ts';
import { Circuits } from '../data/circuits.ts';
import { CronExecutions } from '../data/cron-executions.ts';
import { CronRuns } from '../data/cron-runs.ts';
import { IdempotentAnswers } from '../data/idempotent-answers.ts';
import { RedisIntake } from '../data/intake.ts';
import { LastNotified } from '../data/last-notified.ts';
import { RedisMessageReader } from '../data/message-reader.ts';
import { RedisMessageReplayer } from '../data/message-replayer.ts';
import { OrganizationLock } from '../data/organization-lock.ts';
import { RateLimiter } from '../data/rate-limit.ts';
import { RedisStatisticsReader } from '../data/redis-statistics-reader.ts';
import type { RegistryReader } from '../data/registry.ts';
import { RedisRegistryReader } from '../data/registry-reader.ts';
import { RedisTaskCaller } from '../data/task-caller.ts';
import { taskBlockSeconds } from '../data/task-kind.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { WebhookMessages } from '../data/webhooks/webhook-messages.ts';
import { webhookSending } from '../data/webhooks/webhook-sending.ts';
import { WebhookStatistics } from '../data/webhooks/webhook-statistics.ts';
import { createFacade } from '../facade/app.ts';
import { finishBegunWrites } from '../facade/finish-begun-writes.ts';
import { KubernetesCallers } from '../facade/kubernetes-callers.ts';
import { createIngestHandler } from '../ingest/handler.ts';
import { ReplicatedWrites } from '../redis/replicated-writes.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import { createStoreMetrics } from '../store/metrics.ts';
import { agreedShards } from './agreed-shards.ts';
import { createApiServer } from './api-server.ts';
import type { Config } from './config.ts';
import { FacadeCaches } from './facade-caches.ts';
import { closeServer, listen } from './listen.ts';
import { metricsOf, opsHandler } from './ops-server.ts';
import { readableLayout } from './readable-layout.ts';
import { redisOf } from './redis-address.ts';
import { RedisLink } from './redis-link.ts';
import { openResourceStore } from './resource-store.ts';
import { type RoleContext, type RoleDefinition, startOpsServer, trafficHeapGrowthPercent } from './role-process.ts';
import { upstreamOps } from './upstream-ops.ts';
import { version } from './version.ts';

const drainMarginMs = 1000;
const resourcesDeadlineMs = 30_000;

/** The REST API and ingest. Both answer with the Redis they have; only changes of resources need the resource store. */
export const apiRole: RoleDefinition = {
  role: 'api',
  checks: ['redis', 'resources'],
  heapGrowthPercent: trafficHeapGrowthPercent,
  run: runApi,
};

async function runApi(context: RoleContext): Promise<void> {
  const { config, logger, clock, registry, readiness, stopping } = context;
  const ownOps = opsHandler({ readiness, logger, metrics: metricsOf(registry) });
  const ops = config.opsUpstream === undefined ? ownOps : upstreamOps(config.opsUpstream);
  const ending = new AbortController();
  const prefix = config.redisKeyPrefix;
  const link = new RedisLink(redisOf(config), { name: 'api', prefix, logger, readiness });
  const keyring = new Keyring(config.encryptionKeys);
  const records = new RedisRegistryReader({
    redis: link.main,
    blocking: link.blocking('changes', changeStreamBlockMs),
    prefix,
    clock,
    logger,
  });
  const storeMetrics = createStoreMetrics(registry);
  const writes = new ReplicatedWrites({ redis: link.command('writes'), clock, logger, registry });
  const { store, kubernetes, close: closeStore } = await openResourceStore(link, config, { clock, metrics: storeMetrics, writes });
  const resources = new FacadeCaches({ store, clock, logger, metrics: storeMetrics });
  const shared = { redis: link.main, prefix, clock, logger };
  const sandbox = new Sandbox({ clock, processes: 2 });
  let shards = config.shards;
  const ingestRedis = { redis: link.command('ingest'), prefix, clock };
  const webhooks = new RedisWebhookStore({ ...shared, writes });
  const maxAttempts = config.webhooks.retryDelaysMs.length + 1;
  const sending = webhookSending({ ...shared, storing: ingestRedis.redis, store: webhooks, maxAttempts });
  const begunWrites = new BegunWrites(shared);
  const services = {
    store,
    caches: resources.caches,
    registry: records,
    kubernetesCallers: await openKubernetesCallers(kubernetes, records, config),
    messages: new RedisMessageReader({ redis: link.main, prefix, shards: () => shards }),
    replayer: new RedisMessageReplayer({ redis: link.main, prefix, clock, shards: () => shards }),
    // By the connection that stores events, too: it is asked whether one is stored.
    intake: new RedisIntake(ingestRedis),
    statistics: new RedisStatisticsReader({ redis: link.main, prefix, clock, shards: () => shards }),
    circuits: new Circuits({ redis: link.main, prefix, shards: () => shards }),
    webhookMessages: new WebhookMessages({ redis: link.main, prefix, shards: () => shards }),
    webhookStatistics: new WebhookStatistics({ redis: link.main, prefix, clock, shards: () => shards }),
    allowsInsecureEndpoints: config.webhooks.allowsInsecureUrls,
    shards: () => shards,
    webhooks,
    sending,
    cronRuns: new CronRuns({ redis: link.main, prefix }),
    cronExecutions: new CronExecutions({ redis: link.main, prefix }),
    tasks: new RedisTaskCaller({ ...shared, blocking: link.blocking('tasks', taskBlockSeconds * 1000) }),
    sandbox,
    keyring,
    allowsPlatformIdentity: config.warehouse.allowsPlatformIdentity,
    apiKeyUsage: new ApiKeyUsage(shared),
    lastNotified: new LastNotified(shared),
    organizationLock: new OrganizationLock(shared),
    begunWrites,
    idempotentAnswers: new IdempotentAnswers({ redis: link.main, prefix }),
    rateLimiter: new RateLimiter(shared),
    clock,
    logger,
    metrics: registry,
    version,
    ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
  };
  const facade = createFacade(services);
  const ingest = createIngestHandler({
    sandbox,
    registry: records,
    acceptor: sending.acceptor,
    intake: new RedisIntake(ingestRedis),
    keyring,
    clock,
    logger,
    metrics: registry,
    publicUrl: config.publicUrl,
    trustedProxies: config.trustedProxies,
  });

  const server = createApiServer((request, response) => {
    if (!ingest(request, response) && !ops(request, response)) facade(request, response);
  });
  await listen(server, { port: config.port, host: config.host, setting: 'POSTHORN_PORT' });
  const opsServer = await startOpsServer(context, ownOps);
  logger.info({ port: config.port }, 'listening');
  if (await link.waitUntilReachable(clock, stopping)) {
    await readableLayout(link, context);
    shards = await agreedShards(link, context);
  } else ending.abort();
  records.start();
  const following = resources.run(ending.signal);
  const finishing = begunWrites.run((org) => finishBegunWrites(services, org), ending.signal);
  let isSynced = false;
  void resources.synced.then(() => {
    isSynced = true;
    readiness.set('resources', { ok: true });
  });
  // Ingest does not need the resource store: it must not wait for one that is away.
  void clock
    .sleep(resourcesDeadlineMs, ending.signal)
    .then(() => isSynced || readiness.set('resources', { ok: true, detail: 'the resource store may be away' }));

  await aborted(stopping);
  await closeServer(server, Math.max(1000, config.drainMs - drainMarginMs));
  ending.abort();
  await Promise.all([following, finishing, records.stop(), closeServer(opsServer, 1000)]);
  sandbox.close();
  await closeStore();
  link.close();
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Null: resources live in Redis, and there is no API server to ask. */
async function openKubernetesCallers(
  api: KubernetesApi | null,
  registry: RegistryReader,
  { tokenAudiences }: Config,
): Promise<KubernetesCallers | null> {
  if (api === null) return null;
  const { KubernetesAccess } = await import('../store/kubernetes/kubernetes-access.ts');
  return new KubernetesCallers({ access: new KubernetesAccess({ api, audiences: tokenAudiences }), registry });
}
