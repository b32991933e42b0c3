import { pino } from 'pino';
import { Registry } from 'prom-client';
import type { WorkerEgress } from '../../compile/outgoing-address.ts';
import { type ControllerCaches, controllerCaches } from '../../controllers/controller-caches.ts';
import { FencedPublisher } from '../../controllers/fenced-publisher.ts';
import { type Reconcilers, reconcilersOf } from '../../controllers/reconcilers.ts';
import { SecretReader } from '../../controllers/secret-reader.ts';
import { StatusWriter } from '../../controllers/status-writer.ts';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { Keyring } from '../../core/sealing.ts';
import { byKind, type ConfigurationKind, configurationKinds, type PosthornObject } from '../../resources/kinds.ts';
import { targetsFirst } from '../../resources/references.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { WorkQueue } from '../../runtime/work-queue.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { createStoreMetrics } from '../../store/metrics.ts';
import type { CompleteStore } from '../../store/store.ts';
import { MemoryRegistry } from './memory-registry.ts';
import { allKnown, memoryWebhookSinks } from './memory-sinks.ts';

export interface OfflineOptions {
  keyring: Keyring;
  /** Rules for addresses that no worker reaches. */
  rules: WorkerEgress;
  allowsPlatformIdentity: boolean;
  mailDomains: readonly string[];
  requiresSecretConsent: boolean;
  allowsInsecureUrls: boolean;
  hasPublicUrl: boolean;
}

/** More rounds change nothing: a chain of references is no longer. */
const maxRounds = 5;
const deadlineMs = 60_000;
const lookMs = 5;
/** A clock that is ahead: the controllers report missing references of a new object only some seconds after its creation. */
const later: Clock = { ...systemClock, now: () => systemClock.now() + 3_600_000 };

/**
 * The objects of the store with the status that the controllers of a cluster would write, where nothing else is. Runs the reconcilers over the store
 * in memory until no status changes. Throws UNAVAILABLE when that takes longer than a minute.
 */
export async function reconcileOffline(store: CompleteStore, options: OfflineOptions): Promise<PosthornObject<ConfigurationKind>[]> {
  const logger = pino({ level: 'silent' });
  const stopping = new AbortController();
  const sandbox = new Sandbox({ clock: systemClock, processes: 1 });
  const caches = controllerCaches({
    store,
    servedInstallation: null,
    clock: systemClock,
    logger,
    metrics: createStoreMetrics(new Registry()),
  });
  const following = caches.run(stopping.signal);
  try {
    await caches.synced;
    const publisher = new FencedPublisher(new MemoryRegistry(), 1, caches.owners);
    const reconcilers = reconcilersOf({
      ...options,
      caches,
      store,
      egressOf: () => options.rules,
      publisher,
      sandbox,
      logger,
      webhooks: memoryWebhookSinks(publisher),
      knownWebhooks: allKnown,
      queues: byKind(configurationKinds, () => new WorkQueue({ clock: systemClock })),
      status: new StatusWriter({ store, clock: systemClock, recorder: unheard }),
      secrets: new SecretReader({ store, keyring: options.keyring, requiresConsent: options.requiresSecretConsent }),
      recorder: unheard,
      purger: { purgeOrganization: async () => {}, removeDeletedCounters: async () => 0 },
      clock: later,
      objects: null,
      quotas: null,
      rights: null,
      installation: null,
      pools: null,
      shards: 1,
      leaderEvents: null,
    });
    await settle(caches, reconcilers, store);
    return targetsFirst.flatMap((kind): PosthornObject<ConfigurationKind>[] => caches[kind].list());
  } finally {
    stopping.abort();
    sandbox.close();
    await following;
  }
}

const unheard = { record: (): void => {} };

async function settle(caches: ControllerCaches, reconcilers: Reconcilers, store: CompleteStore): Promise<void> {
  const endMs = systemClock.now() + deadlineMs;
  let before = '';
  for (let round = 0; round < maxRounds; round++) {
    for (const kind of targetsFirst) {
      for (const { metadata } of caches[kind].list())
        await reconcileOne(() => reconcilers[kind].reconcile(metadata, AbortSignal.timeout(deadlineMs)), endMs);
      await untilFollowed(caches, store, endMs);
    }
    const versions = targetsFirst.flatMap((kind) => caches[kind].list().map(({ metadata }) => metadata.resourceVersion)).join();
    if (versions === before) return;
    before = versions;
  }
}

/** A cache may be behind what this process has just written. */
async function reconcileOne(reconcile: () => Promise<unknown>, endMs: number): Promise<void> {
  for (;;) {
    try {
      await reconcile();
      return;
    } catch (error) {
      if (!isPosthornError(error, 'CONFLICT') || systemClock.now() > endMs) throw error;
      await systemClock.sleep(lookMs);
    }
  }
}

async function untilFollowed(caches: ControllerCaches, store: CompleteStore, endMs: number): Promise<void> {
  for (const kind of ['Namespace', ...configurationKinds] as const) {
    for (;;) {
      const { items } = await store.list(kind, { limit: Number.MAX_SAFE_INTEGER });
      const isFollowed = items.every(({ metadata }) => caches[kind].get(metadata)?.metadata.resourceVersion === metadata.resourceVersion);
      if (isFollowed) break;
      if (systemClock.now() > endMs) throw new PosthornError('UNAVAILABLE', 'the manifests were not checked within a minute');
      await systemClock.sleep(lookMs);
    }
  }
}
