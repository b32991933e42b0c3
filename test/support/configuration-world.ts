import { setTimeout as sleep } from 'node:timers/promises';
import { SpentMailBudgets } from '../../src/data/alerts/mail-budget.ts';
import { CronRuns } from '../../src/data/cron/cron-runs.ts';
import { ArchiveFailures } from '../../src/data/history/archive-failures.ts';
import { RedisMessagePurger } from '../../src/data/purge/message-purger.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { RedisReplayRuns } from '../../src/data/replays/redis-replay-runs.ts';
import { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import { configurationKinds } from '../../src/resources/kinds.ts';
import type { ObjectMeta } from '../../src/resources/metadata.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import type { CompleteStore } from '../../src/store/store.ts';
import { type RunningControllers, startControllers } from './controllers.ts';
import {
  type CallFault,
  CrashingProcess,
  type CrashPoint,
  crashingStore,
  mortal,
  purgerWrites,
  readsOnly,
  registryWrites,
  webhookWrites,
} from './crashing-process.ts';
import { namespace as organizationNamespace } from './every-kind.ts';
import { FakeClock } from './fake-clock.ts';
import { silentLogger } from './logger.ts';
import type { RedisServer } from './redis.ts';

export interface ConfigurationWorldOptions {
  redis: RedisServer['client'];
  prefix: string;
  /** Shared by many worlds, as a process takes time to start. */
  sandbox: Sandbox;
  /** Default: one that begins where all do. */
  clock?: FakeClock;
  /** Default: a store in memory. */
  openStore?: (clock: FakeClock) => CompleteStore;
  /** How long an event of a watch may take to come, in milliseconds of real time. Default 0: it is there at once. */
  watchLagMs?: number;
  /** The store as the controllers see it, such as one whose watches break. */
  seenAs?: (store: CompleteStore, clock: FakeClock) => CompleteStore;
  /** How the n-th process of the controllers dies, from 0; null: it lives. */
  deathOf?: (life: number) => CrashPoint | null;
  /** What goes wrong with a call of the controllers. */
  trouble?: () => CallFault;
}

const stepMs = 500;
/** More than any wait between a cause and its effect, but for resyncs and long backoffs. */
const quietMs = 6500;
/** More than any period of a full resync, and than the longest backoff. */
const resyncMs = 725_000;
/** Real time. */
const answerLimitMs = 60_000;
/** Until they converge: some ten times what they need when they die at every change. */
const maxPasses = 2000;
const maxLives = 1000;

/** Resources, their controllers and what these publish, in a time of their own. Controllers that die are restarted. */
export class ConfigurationWorld {
  readonly clock: FakeClock;
  readonly store: CompleteStore;
  readonly redis: RedisServer['client'];
  readonly prefix: string;
  readonly #options: ConfigurationWorldOptions;
  readonly #seen: CompleteStore;
  readonly #revisions = new Map<string, number>();
  #life: { process: CrashingProcess; controllers: RunningControllers; hasEnded: boolean } | null = null;
  #lives = 0;
  #changes = 0;
  #passes = 0;
  #writesOfTheDead = 0;

  constructor(options: ConfigurationWorldOptions) {
    const { openStore = (clock) => new MemoryStore(clock), seenAs = (store) => store, redis, prefix } = options;
    this.#options = options;
    this.clock = options.clock ?? new FakeClock();
    this.redis = redis;
    this.prefix = prefix;
    this.store = openStore(this.clock);
    this.#seen = seenAs(this.store, this.clock);
  }

  /** How many processes of the controllers there have been. */
  get lives(): number {
    return this.#lives;
  }

  /** How many writes the controllers have begun. */
  get writes(): number {
    return this.#writesOfTheDead + (this.#life?.process.writes ?? 0);
  }

  start(): void {
    const { redis, prefix, clock } = this;
    const { sandbox, deathOf = () => null, trouble = () => null } = this.#options;
    if (this.#lives >= maxLives) throw new Error('the controllers die again and again, and nothing is done');
    const process = new CrashingProcess({ death: deathOf(this.#lives++), onChange: () => void this.#changes++, trouble });
    const controllers = startControllers({
      store: crashingStore(this.#seen, process),
      redis,
      prefix,
      clock,
      registry: mortal(new RedisRegistryPublisher(redis, prefix), process, registryWrites),
      webhooks: (epoch) =>
        mortal(new RedisWebhookStore({ redis, prefix, clock, logger: silentLogger, epoch }), process, webhookWrites(this.#revisions)),
      purger: mortal(new RedisMessagePurger({ redis, prefix }), process, purgerWrites),
      cronRuns: mortal(new CronRuns({ redis, prefix }), process, readsOnly),
      replayRuns: mortal(new RedisReplayRuns({ redis, prefix }), process, readsOnly),
      archiveFailures: mortal(new ArchiveFailures({ redis, prefix }), process, readsOnly),
      mailBudgets: mortal(new SpentMailBudgets({ redis, prefix }), process, readsOnly),
      sandbox: mortal(sandbox, process, readsOnly),
    });
    const life = { process, controllers, hasEnded: false };
    const end = (): void => {
      life.hasEnded = true;
    };
    controllers.ended.then(end, end);
    this.#life = life;
  }

  async stop(): Promise<void> {
    const life = this.#life;
    this.#life = null;
    await life?.controllers.stop();
    this.#writesOfTheDead += life?.process.writes ?? 0;
  }

  /** Ends the controllers in the middle of their work, and restarts them. */
  async restart(): Promise<void> {
    await this.stop();
    this.start();
  }

  /** Lets time pass until nothing has changed for a while and through two full resyncs. */
  async settle(): Promise<void> {
    const lastPass = this.#passes + maxPasses;
    let unchangedPasses = 0;
    await this.#quiet(lastPass);
    while (unchangedPasses < 2) {
      const before = this.#changes;
      await this.#lookAtEverything(lastPass);
      unchangedPasses = this.#changes === before ? unchangedPasses + 1 : 0;
    }
  }

  /** Lets time pass by so many full resyncs. */
  async resync(passes: number): Promise<void> {
    const lastPass = this.#passes + maxPasses;
    for (let pass = 0; pass < passes; pass++) await this.#lookAtEverything(lastPass);
  }

  /** Lets time pass until the check passes; throws its last error. */
  async until(check: () => Promise<unknown>): Promise<void> {
    const lastPass = this.#passes + maxPasses;
    for (;;) {
      try {
        await check();
        return;
      } catch (error) {
        if (this.#passes > lastPass) throw error;
      }
      await this.pass(stepMs);
    }
  }

  /** Lets time pass. Controllers that have died in it are restarted. */
  async pass(ms: number): Promise<void> {
    this.#passes++;
    await this.clock.advance(ms);
    await this.#answered();
    if (this.#life?.process.died.aborted === true || this.#life?.hasEnded === true) await this.restart();
  }

  async #lookAtEverything(lastPass: number): Promise<void> {
    this.clock.jump(resyncMs);
    await this.pass(1);
    await this.#quiet(lastPass);
  }

  async #quiet(lastPass: number): Promise<void> {
    for (let passedMs = 0; passedMs < quietMs || !(await this.#isToldOfEverything()); ) {
      const [changes, lives] = [this.#changes, this.#lives];
      await this.pass(stepMs);
      passedMs = changes === this.#changes && lives === this.#lives ? passedMs + stepMs : 0;
      if (this.#passes > lastPass) throw new Error(`the controllers go on writing: ${this.#changes} changes in ${this.#lives} lives`);
    }
  }

  /** Whether the caches of the controllers hold what is in the store, however late events of watches come. */
  async #isToldOfEverything(): Promise<boolean> {
    const caches = this.#life?.controllers.caches;
    if (caches === undefined) return true;
    const hasOrganization = caches.Organization.list().some(({ metadata }) => metadata.deletionTimestamp === undefined);
    // Secrets are watched in namespaces of organizations.
    const kinds = [...configurationKinds, 'Namespace' as const, ...(hasOrganization ? ['Secret' as const] : [])];
    const compared = kinds.map(async (kind) => {
      const namespace = kind === 'Secret' ? organizationNamespace : undefined;
      const { items } = await this.store.list(kind, namespace === undefined ? {} : { namespace });
      return versionsOf(items) === versionsOf(caches[kind].list(namespace));
    });
    return (await Promise.all(compared)).every(Boolean);
  }

  /** Until the controllers wait for no answer. */
  async #answered(): Promise<void> {
    const { watchLagMs = 0 } = this.#options;
    if (watchLagMs > 0) await sleep(watchLagMs);
    const endsAt = performance.now() + answerLimitMs;
    for (let turns = 0; turns < 5; ) {
      const isBusy = this.#life?.process.isBusy === true;
      await (isBusy ? sleep(1) : new Promise((resolve) => setImmediate(resolve)));
      turns = isBusy ? 0 : turns + 1;
      if (performance.now() > endsAt) throw new Error('the controllers wait for an answer that does not come');
    }
  }
}

function versionsOf(objects: readonly { metadata: ObjectMeta }[]): string {
  return objects
    .map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`)
    .sort()
    .join();
}
