import { pino } from 'pino';
import { Registry } from 'prom-client';
import { type ControllerCaches, controllerCaches } from '../../src/controllers/controller-caches.ts';
import type { ObjectEvent } from '../../src/controllers/event-recorder.ts';
import type { RunControllersOptions } from '../../src/controllers/run-controllers.ts';
import { runControllers } from '../../src/controllers/run-controllers.ts';
import type { Clock } from '../../src/core/clock.ts';
import { defaultInstallation } from '../../src/core/default-installation.ts';
import { Keyring } from '../../src/core/sealing.ts';
import { SpentMailBudgets } from '../../src/data/alerts/mail-budget.ts';
import { CronRuns } from '../../src/data/cron/cron-runs.ts';
import { ArchiveFailures } from '../../src/data/history/archive-failures.ts';
import { RedisMessagePurger } from '../../src/data/purge/message-purger.ts';
import { CircuitFeed, circuitFeedBlockMs } from '../../src/data/queue/circuit-feed.ts';
import { Circuits } from '../../src/data/queue/circuits.ts';
import { OwnEventLog } from '../../src/data/queue/own-event-log.ts';
import { readHasOwnSource } from '../../src/data/registry/own-sources.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { RedisReplayRuns } from '../../src/data/replays/redis-replay-runs.ts';
import { knownWebhooks } from '../../src/data/webhooks/known-webhooks.ts';
import { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import { ControllerMetrics } from '../../src/runtime/controller-metrics.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { Sandbox } from '../../src/sandbox/sandbox.ts';
import { createStoreMetrics } from '../../src/store/metrics.ts';
import type { CompleteStore } from '../../src/store/store.ts';
import { lenientBy } from './lenient-clock.ts';
import type { RedisServer } from './redis.ts';

export const testKeyring = new Keyring([{ id: 'k1', key: Buffer.alloc(32, 1) }]);

export interface RunningControllers {
  readonly registry: RedisRegistryPublisher;
  readonly caches: ControllerCaches;
  readonly events: ObjectEvent[];
  readonly metrics: Registry;
  /** How `runControllers` ended. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** The controllers as a leader runs them, in this process. */
export function startControllers(
  options: { store: CompleteStore; redis: RedisServer['client']; prefix: string; clock?: Clock; servedInstallation?: string } & Partial<
    Omit<RunControllersOptions, 'circuits' | 'feed'>
  >,
): RunningControllers {
  const { store, redis, prefix, clock = systemClock } = options;
  const logger = pino({ level: process.env['POSTHORN_TEST_LOG'] ?? 'silent' });
  const abort = new AbortController();
  const sandbox = new Sandbox({ clock: lenientBy(3), processes: 1 });
  const caches = controllerCaches({
    store,
    clock,
    logger,
    metrics: createStoreMetrics(new Registry()),
    servedInstallation: options.servedInstallation ?? defaultInstallation,
    ownNamespace: options.installation?.namespace ?? null,
  });
  const registry = new RedisRegistryPublisher(redis, prefix);
  const events: ObjectEvent[] = [];
  const metrics = new Registry();
  const blocking = redis.duplicate({ commandTimeout: undefined, blockingTimeout: circuitFeedBlockMs + 2000, maxRetriesPerRequest: 0 });
  blocking.on('error', () => {});
  const following = caches.run(abort.signal);
  const ended = runControllers(
    {
      caches,
      registry,
      purger: new RedisMessagePurger({ redis, prefix }),
      webhooks: (epoch) => new RedisWebhookStore({ redis, prefix, clock, logger, shards: () => 1, epoch }),
      knownWebhooks: knownWebhooks({ redis, prefix, clock, logger, shards: () => 1 }),
      circuits: new Circuits({ redis, prefix }),
      feed: new CircuitFeed({ redis, readers: [{ blocking, shards: [0] }], prefix }),
      archiveFailures: new ArchiveFailures({ redis, prefix }),
      mailBudgets: new SpentMailBudgets({ redis, prefix }),
      mailRecipients: null,
      cronRuns: new CronRuns({ redis, prefix }),
      replayRuns: new RedisReplayRuns({ redis, prefix }),
      leaderEvents: { notes: new OwnEventLog({ redis, prefix }), hasOwnSource: (org) => readHasOwnSource({ redis, prefix }, org) },
      keyring: testKeyring,
      allowsPlatformIdentity: true,
      mailDomains: [],
      requiresSecretConsent: false,
      allowsInsecureUrls: false,
      hasPublicUrl: true,
      egressSource: { of: () => null, onChange: () => () => {} },
      sandbox,
      clock,
      logger,
      recorder: { record: (event) => void events.push(event) },
      metrics: new ControllerMetrics(metrics),
      shards: 1,
      renewLeadership: async () => {},
      objects: null,
      installation: null,
      pools: null,
      countedAfterMs: 0,
      ...options,
    },
    abort.signal,
  );
  ended.catch(() => {});
  return {
    registry,
    caches,
    events,
    metrics,
    ended,
    stop: async () => {
      abort.abort();
      sandbox.close();
      await Promise.allSettled([following, ended]);
    },
  };
}
