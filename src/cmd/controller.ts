import { type ControllerCaches, controllerCaches } from '../controllers/controller-caches.ts';
import { PoolEgressSource, sameEgressForAll } from '../controllers/delivery-pool/pool-egress.ts';
import { configurationKinds as podConfiguration } from '../controllers/delivery-pool/pool-environment.ts';
import { PoolMetrics } from '../controllers/delivery-pool/pool-metrics.ts';
import type { EventRecorder, ObjectEvent } from '../controllers/event-recorder.ts';
import { KubernetesEventRecorder } from '../controllers/kubernetes-event-recorder.ts';
import { LoggingEventRecorder } from '../controllers/logging-event-recorder.ts';
import { objectMetric } from '../controllers/object-metric.ts';
import { runControllers } from '../controllers/run-controllers.ts';
import { withJitter } from '../core/backoff.ts';
import { RefusedAddresses } from '../core/egress-policy.ts';
import { isPosthornError, PosthornError } from '../core/errors.ts';
import type { Keyring } from '../core/sealing.ts';
import { SpentMailBudgets } from '../data/alerts/mail-budget.ts';
import { MailRecipients } from '../data/alerts/mail-recipients.ts';
import { CronExecutions } from '../data/cron/cron-executions.ts';
import { CronRuns } from '../data/cron/cron-runs.ts';
import { ArchiveFailures } from '../data/history/archive-failures.ts';
import { IntentFinisher } from '../data/history/intent-finisher.ts';
import { OrganizationPools } from '../data/pools/organization-pools.ts';
import { RedisMessagePurger } from '../data/purge/message-purger.ts';
import { CircuitFeed, circuitFeedBlockMs } from '../data/queue/circuit-feed.ts';
import { Circuits } from '../data/queue/circuits.ts';
import { OwnEventLog } from '../data/queue/own-event-log.ts';
import { readHasOwnSource } from '../data/registry/own-sources.ts';
import { RedisRegistryPublisher } from '../data/registry/registry-publisher.ts';
import { RedisReplayRuns } from '../data/replays/redis-replay-runs.ts';
import { knownWebhooks } from '../data/webhooks/known-webhooks.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { WebhookSweeper } from '../data/webhooks/webhook-sweeper.ts';
import { blockingGroups } from '../redis/connection.ts';
import { configurationKinds } from '../resources/kinds.ts';
import { ControllerMetrics } from '../runtime/controller-metrics.ts';
import { candidateIdentity, LeaderElector, type LeaderLock, type Term } from '../runtime/elector.ts';
import { kubernetesLeaseApi } from '../runtime/lease-api.ts';
import { LeaseLock } from '../runtime/lease-elector.ts';
import { RedisLock } from '../runtime/redis-elector.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import { CronScheduler } from '../schedule/cron-scheduler.ts';
import { ResourceCache } from '../store/cache.ts';
import type { KubernetesObjects } from '../store/kubernetes/kubernetes-objects.ts';
import { createStoreMetrics, type StoreMetrics } from '../store/metrics.ts';
import { adminKeySource } from './admin-key-file.ts';
import { agreedShards } from './agreed-shards.ts';
import { apiServerClockMetric } from './api-server-clock.ts';
import { bootstrapInstallation, checkBootstrap } from './bootstrap.ts';
import type { BootstrapSource } from './bootstrap-check.ts';
import { BootstrapReport, bootstrapGauge } from './bootstrap-report.ts';
import type { Config } from './config.ts';
import { checkCrds } from './crd-check.ts';
import { leadDeliveryPools } from './lead-delivery-pools.ts';
import { leaderMetric } from './leader-metric.ts';
import { leaseNamespace } from './lease-namespace.ts';
import { closeServer } from './listen.ts';
import { metricsOf, opsHandler } from './ops-server.ts';
import { OwnStore, ownStoreCheck } from './own-store.ts';
import { publishedRecords } from './published-records.ts';
import { readableLayout } from './readable-layout.ts';
import { redisOf } from './redis-address.ts';
import { RedisLink } from './redis-link.ts';
import { checkRedisSettings } from './redis-settings.ts';
import { refuseOwn } from './refuse-own.ts';
import { reportProcess } from './report-process.ts';
import { clusterObjects, type OpenedStore, openResourceStore } from './resource-store.ts';
import { roleKeyring } from './role-keyring.ts';
import { type RoleContext, type RoleDefinition, startOpsServer } from './role-process.ts';
import { sweepStore } from './sweep-store.ts';
import { watchRedis } from './watch-redis.ts';

const leaseName = 'posthorn-controller';
const retryMs = 1000;
/** The controller manager checks every 30 seconds which kinds there are. */
const countedAfterMs = 60_000;

/**
 * Reconciles while it leads. Caches are filled before, so that a new leader starts at once. A Lease that is lost ends the process: what is
 * still under way must not continue, and a restart begins from nothing. A lock in Redis is lost whenever Redis is down: it
 * waits for what is under way, and competes again.
 */
export const controllerRole: RoleDefinition = {
  role: 'controller',
  checks: ['redis', 'resources'],
  // Every reconcile leaves some old garbage. V8 would let it grow to several times what lives before it collects: 400 MB for 20,000
  // objects instead of 260 (hack/bench/controllers.ts).
  heapGrowthPercent: 50,
  run: runControllerRole,
};

async function runControllerRole(given: RoleContext): Promise<void> {
  const { config, logger, clock, registry, readiness } = given;
  const ending = new AbortController();
  const check = ownStoreCheck(config, { claims: true });
  const link = new RedisLink(redisOf(config, logger), { name: 'controller', prefix: config.redisKeyPrefix, logger, readiness, check });
  const own = new OwnStore(link, given, check);
  const stopping = AbortSignal.any([given.stopping, own.refused]);
  const context = { ...given, stopping };
  void watchRedis(link, context, { settings: true });
  void reportProcess(link, context, 'controller');
  const storeMetrics = createStoreMetrics(registry);
  const keyring = roleKeyring(config, context);
  const opened = await openResourceStore(link, config, { clock, metrics: storeMetrics, keyring });
  apiServerClockMetric(registry, opened.kubernetes);
  const leading = leaderMetric(registry);
  const metrics = { controllers: new ControllerMetrics(registry), pools: new PoolMetrics(registry) };
  readiness.note('leadership', () => (leading.isLeading ? 'leading' : 'waiting for leadership'));
  const objects = await clusterObjects(opened, clock);
  const ownNamespace = objects === null ? null : leaseNamespace(config);
  const caches = controllerCaches({
    store: opened.store,
    clock,
    logger,
    metrics: storeMetrics,
    ownNamespace,
    servedInstallation: config.installation,
  });
  const recorder: EventRecorder =
    opened.kubernetes === null ? new LoggingEventRecorder(logger) : new KubernetesEventRecorder({ api: opened.kubernetes, clock, logger });
  const bootstrap = new BootstrapReport({
    gauge: bootstrapGauge(registry),
    readiness,
    recorder,
    subject: () => bootstrapConfigMap(objects, config),
  });
  const opsServer = await startOpsServer(context, opsHandler({ readiness, logger, metrics: metricsOf(registry) }));
  if (opened.kubernetes !== null) void checkCrds(opened.kubernetes, context);
  objectMetric(registry, { caches, isLeading: () => leading.isLeading });
  void caches.synced.then(() => readiness.set('resources', { ok: true }));
  const elector = new LeaderElector(lockOf(opened, link, context), { clock, logger });
  let following: Promise<unknown> = judgeBootstrap(context, bootstrap, ending.signal);
  try {
    if (!(await link.waitUntilReachable(clock, stopping))) return;
    await own.requireOwn();
    await checkRedisSettings(link.main, logger);
    await readableLayout(link, context);
    const shared = { redis: link.main, prefix: config.redisKeyPrefix, clock, logger };
    following = Promise.all([
      following,
      caches.run(ending.signal),
      scheduleCron(context, link, ending.signal),
      new WebhookSweeper(shared).run(ending.signal),
      new IntentFinisher(shared).run(ending.signal),
    ]);
    while (!stopping.aborted) {
      const term = await elector.acquire(stopping);
      if (term === null) break;
      leading.set(true);
      try {
        bootstrap.failed(null);
        await lead(term, { context, keyring, opened, objects, recorder, link, caches, storeMetrics, metrics, bootstrap });
      } catch (error) {
        if (opened.kubernetes !== null || !isLost(term, error)) throw error;
        logger.warn({ err: error }, 'leadership was lost; the process rejoins the election');
      } finally {
        leading.set(false);
        bootstrap.failed([]);
        await term.release().catch((error) => logger.debug({ err: error }, 'the leader lock could not be released; it expires by itself'));
      }
      await clock.sleep(withJitter(retryMs), stopping);
    }
    own.refused.throwIfAborted();
  } finally {
    ending.abort();
    await Promise.all([following, closeServer(opsServer, 1000)]);
    await opened.close();
    link.close();
  }
}

/** Findings of every controller in the manifests of the bootstrap. */
async function judgeBootstrap({ config, logger, clock }: RoleContext, report: BootstrapReport, signal: AbortSignal): Promise<void> {
  const source = bootstrapSource(config);
  if (source === undefined) report.refused([]);
  else await checkBootstrap({ source, clock, logger, refused: (complaints) => report.refused(complaints) }, signal);
}

function bootstrapSource(config: Config): BootstrapSource | undefined {
  const directory = config.bootstrapDirectory;
  return directory === undefined ? undefined : { directory, namespace: leaseNamespace(config), installation: config.installation };
}

async function bootstrapConfigMap(objects: KubernetesObjects | null, config: Config): Promise<ObjectEvent['object'] | null> {
  const name = config.bootstrapConfigMap;
  if (objects === null || name === undefined) return null;
  const found = await objects.get(podConfiguration.ConfigMap, { namespace: leaseNamespace(config), name });
  return found === null ? null : { apiVersion: 'v1', kind: 'ConfigMap', metadata: found.metadata };
}

/** Without leadership the controllers may also find that Redis does not answer, or that another leader has begun. */
function isLost({ lost }: Term, error: unknown): boolean {
  return isPosthornError(error, 'CONFLICT') || (lost.aborted && isPosthornError(error, 'UNAVAILABLE'));
}

/** Cron needs Redis alone: it runs while the API server is down, without a leader. */
async function scheduleCron(context: RoleContext, link: RedisLink, signal: AbortSignal): Promise<void> {
  const { config, logger, clock } = context;
  const prefix = config.redisKeyPrefix;
  const redis = link.main;
  const records = publishedRecords(link, context);
  records.start();
  const scheduler = new CronScheduler({
    id: candidateIdentity(),
    registry: records,
    published: new RedisRegistryPublisher(redis, prefix),
    runs: new CronRuns({ redis, prefix }),
    executions: new CronExecutions({ redis, prefix }),
    clock,
    logger,
  });
  await scheduler.run(signal);
  await records.stop();
}

interface Leading {
  context: RoleContext;
  keyring: Keyring;
  opened: OpenedStore;
  objects: KubernetesObjects | null;
  recorder: EventRecorder;
  bootstrap: BootstrapReport;
  link: RedisLink;
  caches: ControllerCaches;
  storeMetrics: StoreMetrics;
  metrics: { controllers: ControllerMetrics; pools: PoolMetrics };
}

/** Runs the controllers until the process is to stop. Throws CONFLICT when leadership is lost. */
async function lead(
  term: Term,
  { context, keyring, opened, objects, recorder, bootstrap, link, caches, storeMetrics, metrics }: Leading,
): Promise<void> {
  const { config, logger, clock, stopping } = context;
  const prefix = config.redisKeyPrefix;
  const signal = AbortSignal.any([stopping, term.lost]);
  const shards = await agreedShards(link, context);
  const sandbox = new Sandbox({ clock, processes: 1 });
  const poolCache = objects === null ? null : new ResourceCache('DeliveryPool', { logger });
  const feed = new CircuitFeed({
    redis: link.main,
    readers: blockingGroups(link.main, shards).map((group) => ({ blocking: link.blocking('circuits', circuitFeedBlockMs), shards: group })),
    prefix,
  });
  const refused = new RefusedAddresses();
  // Names are refused at once. A slow DNS server is not waited for: their addresses only change the message.
  void refuseOwn(refused, link.main, config);
  const poolEgress = poolCache === null ? null : new PoolEgressSource({ pools: poolCache, organizations: caches.Organization, refused });
  const assignments = new OrganizationPools({ redis: link.main, prefix, shards });
  const options = {
    caches,
    store: opened.store,
    objects,
    pools: poolCache === null ? null : { cache: poolCache, assign: (org: string, pool: string) => assignments.assign(org, pool) },
    installation: objects === null ? null : { name: config.installationName, namespace: leaseNamespace(config) },
    countedAfterMs,
    registry: new RedisRegistryPublisher(link.main, prefix),
    purger: new RedisMessagePurger({ redis: link.main, prefix, shards }),
    webhooks: (epoch: number) => new RedisWebhookStore({ redis: link.main, prefix, clock, logger, shards: () => shards, epoch }),
    knownWebhooks: knownWebhooks({ redis: link.main, prefix, clock, logger, shards: () => shards }),
    circuits: new Circuits({ redis: link.main, prefix, shards: () => shards }),
    feed,
    archiveFailures: new ArchiveFailures({ redis: link.main, prefix, shards }),
    mailBudgets: new SpentMailBudgets({ redis: link.main, prefix }),
    mailRecipients: config.requiresMailConfirmation ? new MailRecipients({ redis: link.main, prefix }) : null,
    cronRuns: new CronRuns({ redis: link.main, prefix }),
    replayRuns: new RedisReplayRuns({ redis: link.main, prefix }),
    leaderEvents: {
      notes: new OwnEventLog({ redis: link.main, prefix }),
      hasOwnSource: (org: string) => readHasOwnSource({ redis: link.main, prefix }, org),
    },
    keyring,
    allowsPlatformIdentity: config.warehouse.allowsPlatformIdentity,
    mailDomains: config.mailDomains,
    requiresSecretConsent: config.requiresSecretConsent,
    allowsInsecureUrls: config.webhooks.allowsInsecureUrls,
    hasPublicUrl: config.publicUrl !== undefined,
    egressSource: poolEgress ?? sameEgressForAll({ egress: config.egress, endpoints: config.warehouse.endpoints, refused }),
    sandbox,
    clock,
    logger,
    recorder,
    metrics: metrics.controllers,
    shards,
    renewLeadership: () => term.renew(),
  };
  const ended = new AbortController();
  const endingSignal = AbortSignal.any([signal, ended.signal]);
  const beside = Promise.all([
    bootstrapInstallation(
      {
        store: opened.store,
        source: bootstrapSource(config),
        installation: config.installation,
        adminKey: adminKeySource({ key: config.apiKey, file: config.apiKeyFile }),
        changes: [...configurationKinds.map((kind) => caches[kind]), ...(poolCache === null ? [] : [poolCache])],
        clock,
        logger,
        recorder,
        report: (complaints) => bootstrap.failed(complaints),
      },
      endingSignal,
    ),
    leadDeliveryPools(
      {
        ...options,
        context,
        opened,
        cache: poolCache,
        poolEgress,
        link,
        organizations: caches.Organization,
        namespaces: caches.Namespace,
        storeMetrics,
        poolMetrics: metrics.pools,
      },
      endingSignal,
    ),
    sweepStore(opened, { clock, logger }, endingSignal),
  ]);
  try {
    while (!signal.aborted) {
      try {
        await runControllers(options, signal);
      } catch (error) {
        if (!isPosthornError(error, 'UNAVAILABLE') || signal.aborted) throw error;
        logger.warn({ err: error }, 'the controllers failed to start; retrying');
        await clock.sleep(withJitter(retryMs), signal);
      }
    }
  } finally {
    ended.abort();
    await beside;
    feed.close();
    sandbox.close();
  }
  if (term.lost.aborted) throw new PosthornError('CONFLICT', 'leadership is lost');
}

function lockOf({ kubernetes }: OpenedStore, link: RedisLink, { config, clock }: RoleContext): LeaderLock {
  const identity = candidateIdentity();
  if (kubernetes === null) return new RedisLock(link.command('elector'), { key: `${config.redisKeyPrefix}{cfg}:leader`, identity });
  return new LeaseLock(kubernetesLeaseApi(kubernetes), { namespace: leaseNamespace(config), name: leaseName, identity, clock });
}
