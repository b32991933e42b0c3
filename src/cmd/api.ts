import { PosthornError } from '../core/errors.ts';
import { fromLoopbackHeader, isFromLoopback, isLoopbackHost } from '../core/loopback.ts';
import { requestIdFor } from '../core/request-id.ts';
import { ChannelAlerts } from '../data/alerts/channel-alerts.ts';
import { MailRecipients } from '../data/alerts/mail-recipients.ts';
import { RedisStatisticsReader } from '../data/analytics/redis-statistics-reader.ts';
import { CronExecutions } from '../data/cron/cron-executions.ts';
import { CronRuns } from '../data/cron/cron-runs.ts';
import { FeedReader, feedBlockMs } from '../data/feed/feed-reader.ts';
import { LinkedPayloads } from '../data/history/linked-payloads.ts';
import { RedisMessageCanceller } from '../data/history/message-canceller.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessageReplayer } from '../data/history/message-replayer.ts';
import { ApiKeyUsage } from '../data/intake/api-key-usage.ts';
import { IdempotentAnswers } from '../data/intake/idempotent-answers.ts';
import { RedisIntake } from '../data/intake/intake.ts';
import { QuotaSteps } from '../data/intake/quota-steps.ts';
import { RateLimiter } from '../data/intake/rate-limit.ts';
import { SignatureFailureLog } from '../data/intake/signature-failure-log.ts';
import { SignatureFailures } from '../data/intake/signature-failures.ts';
import { OrganizationLock } from '../data/locks/organization-lock.ts';
import { WriteAheadLog } from '../data/locks/write-ahead-log.ts';
import { Circuits } from '../data/queue/circuits.ts';
import type { RegistryReader } from '../data/registry/registry.ts';
import { RedisReplayRuns } from '../data/replays/redis-replay-runs.ts';
import { SessionStore } from '../data/sessions/session-store.ts';
import { RedisTaskCaller } from '../data/tasks/task-caller.ts';
import { taskBlockSeconds } from '../data/tasks/task-kind.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { WebhookMessages } from '../data/webhooks/webhook-messages.ts';
import { webhookSending } from '../data/webhooks/webhook-sending.ts';
import { WebhookStatistics } from '../data/webhooks/webhook-statistics.ts';
import { createFacade } from '../facade/app.ts';
import { KubernetesCallers } from '../facade/http/kubernetes-callers.ts';
import type { LoopbackOptions } from '../facade/http/loopback-access.ts';
import { recoverPendingWrites } from '../facade/records/write-transaction.ts';
import { streamMetrics } from '../feed/metrics.ts';
import { StreamHub } from '../feed/stream-hub.ts';
import { answerError } from '../ingest/answer.ts';
import type { IngestHandler } from '../ingest/handler.ts';
import { isIngestTarget } from '../ingest/path.ts';
import { ReplicatedWrites } from '../redis/replicated-writes.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import { createStoreMetrics } from '../store/metrics.ts';
import { agreedShards } from './agreed-shards.ts';
import type { Config } from './config.ts';
import { facadeCaches } from './facade-caches.ts';
import { createHttpServer } from './http-server.ts';
import { installationReader } from './installation-reader.ts';
import { installationNamespace } from './lease-namespace.ts';
import { aborted, boundAddress, closeServer, drainServer, listen, listenOnSocket } from './listen.ts';
import { metricsOf, opsHandler } from './ops-server.ts';
import { answerForeign, OwnStore } from './own-store.ts';
import { publishedRecords } from './published-records.ts';
import { readableLayout } from './readable-layout.ts';
import { redisOf } from './redis-address.ts';
import { RedisLink } from './redis-link.ts';
import { openResourceStore } from './resource-store.ts';
import { roleKeyring } from './role-keyring.ts';
import { type RoleContext, type RoleDefinition, startOpsServer, trafficHeapGrowthPercent } from './role-process.ts';
import { publicHealth } from './upstream-health.ts';
import { version } from './version.ts';
import { watchRedis } from './watch-redis.ts';

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
  const link = new RedisLink(redisOf(config, logger), { name: 'api', prefix, logger, readiness });
  void watchRedis(link, context, { settings: false });
  const own = new OwnStore(link, context);
  const keyring = roleKeyring(config, context, () => records.flush());
  const records = publishedRecords(link, context);
  const storeMetrics = createStoreMetrics(registry);
  const writes = new ReplicatedWrites({ redis: link.command('writes'), clock, logger, registry });
  const { store, kubernetes, close: closeStore } = await openResourceStore(link, config, { clock, metrics: storeMetrics, keyring, writes });
  const resources = facadeCaches({ store, clock, logger, metrics: storeMetrics });
  const shared = { redis: link.main, prefix, clock, logger };
  const sandbox = new Sandbox({ clock, processes: 2 });
  let shards = config.shards;
  const ingestRedis = { redis: link.command('ingest'), prefix, clock };
  // By the connection that stores events, too: it is asked whether one is stored.
  const quotaSteps = new QuotaSteps({ ...shared, registry: records, shards: () => shards });
  const intake = new RedisIntake({ ...ingestRedis, quotaSteps });
  const webhooks = new RedisWebhookStore({ ...shared, writes, shards: () => shards });
  const maxAttempts = config.webhooks.retryDelaysMs.length + 1;
  const sending = webhookSending({
    ...shared,
    storing: ingestRedis.redis,
    store: webhooks,
    maxAttempts,
    shards: () => shards,
    memoryLimitBytes: config.redisMemoryLimitBytes,
  });
  const writeAheadLog = new WriteAheadLog(shared);
  const feed = new FeedReader({ ...shared, blocking: link.blocking('feed', feedBlockMs), shards: () => shards });
  const streams = new StreamHub({ reader: feed, clock, logger, metrics: streamMetrics(registry) });
  const services = {
    store,
    caches: resources.caches,
    registry: records,
    installation: installationReader({
      redis: link.main,
      prefix,
      shards: () => shards,
      memoryLimitBytes: config.redisMemoryLimitBytes,
      name: config.installation,
      mode: kubernetes === null ? 'standalone' : 'cluster',
      namespace: kubernetes === null ? null : installationNamespace(config),
    }),
    kubernetesCallers: await openKubernetesCallers(kubernetes, records, config),
    messages: new RedisMessageReader({ redis: link.main, prefix, shards: () => shards }),
    replayer: new RedisMessageReplayer({
      redis: link.main,
      prefix,
      clock,
      shards: () => shards,
      memoryLimitBytes: config.redisMemoryLimitBytes,
      quotaSteps,
    }),
    canceller: new RedisMessageCanceller({ redis: link.main, prefix, shards: () => shards }),
    replayRuns: new RedisReplayRuns(shared),
    intake,
    statistics: new RedisStatisticsReader({ redis: link.main, prefix, clock, shards: () => shards }),
    circuits: new Circuits({ redis: link.main, prefix, shards: () => shards }),
    webhookMessages: new WebhookMessages({ redis: link.main, prefix, shards: () => shards }),
    webhookStatistics: new WebhookStatistics({ redis: link.main, prefix, clock, shards: () => shards }),
    allowsInsecureEndpoints: config.webhooks.allowsInsecureUrls,
    hasPublicUrl: config.publicUrl !== undefined,
    shards: () => shards,
    webhooks,
    sending,
    cronRuns: new CronRuns({ redis: link.main, prefix }),
    cronExecutions: new CronExecutions({ redis: link.main, prefix }),
    tasks: new RedisTaskCaller({ ...shared, blocking: link.blocking('tasks', taskBlockSeconds * 1000) }),
    streams,
    sandbox,
    keyring,
    allowsPlatformIdentity: config.warehouse.allowsPlatformIdentity,
    mailDomains: config.mailDomains,
    linkedPayloads: new LinkedPayloads({ redis: link.main, prefix, shards: () => shards }),
    mailRecipients: config.requiresMailConfirmation ? new MailRecipients(shared) : null,
    apiKeyUsage: new ApiKeyUsage(shared),
    signatureFailures: new SignatureFailures(shared),
    sessions: new SessionStore(shared),
    channelAlerts: new ChannelAlerts(shared),
    organizationLock: new OrganizationLock(shared),
    writeAheadLog,
    idempotentAnswers: new IdempotentAnswers({ redis: link.main, prefix }),
    rateLimiter: new RateLimiter(shared),
    clock,
    logger,
    metrics: registry,
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
  const signatureFailures = new SignatureFailureLog({ ...ingestRedis, logger });
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
      const isForeign = own.refusal !== null;
      if ((!isForeign && ingest(request, response)) || health(request, response)) return;
      if (isForeign) answerForeign(request, response);
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
  // Reads and what is sent need no resource store: they must not wait for one that is away.
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
 * Requests without credentials, in standalone with a console: of one port its ingest process judges them. Null where settings tell of a proxy, whose
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
