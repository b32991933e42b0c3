import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import type { RegistryPublisher, RegistryReader } from '../../data/registry/registry.ts';
import type { RedisReplayRuns } from '../../data/replays/redis-replay-runs.ts';
import type { ReplaySteps, StepOptions } from '../../data/replays/replay-steps.ts';
import { Wakeup } from '../loops/wakeup.ts';

const leaseMs = 10_000;
const renewMs = 5000;
/** After that a replay whose lease another worker has is checked again. */
const othersMs = 2000;
const idleDelays = { firstMs: 50, maxMs: 5000 };
const maxPerStep = 200;
/** The same while several replays are due: steps are then short, for live traffic that waits for one, and there are enough of them. */
const maxPerSharedStep = 25;
/** How long the rest after a step is, as a multiple of the step. */
const rests = { ofOne: 1, ofSeveral: 2 };
/** Maximum steps per second of a replay with a low rate: a step costs about the same however little it queues. */
const stepsPerSecond = 10;
/** However little has changed: Redis may have been emptied, and replays whose objects are gone are ended. */
const reviewMs = 30_000;
const failureDelayMs = 1000;
/**
 * Concurrent steps that evaluate events or payloads, each of another organization: a slow evaluation delays no other organization while fewer than these are
 * slow. Steps without evaluation load the event loop and Redis all the time they take, so one of them is under way at a time, and the next one begins only after
 * a pause (`rests`), which is for live traffic.
 */
const maxJudging = 8;
/** However long a step took. */
const maxRestMs = 200;

export interface ReplayRunnerOptions {
  registry: Pick<RegistryReader, 'get' | 'getOfAny' | 'getOf' | 'onChange'>;
  published: Pick<RegistryPublisher, 'ids'>;
  runs: Pick<RedisReplayRuns, 'lease'>;
  steps: Pick<ReplaySteps, 'advance' | 'endGone'>;
  worker: string;
  clock: Clock;
  logger: Logger;
}

interface Entry {
  /** Null: not known yet. */
  org: string | null;
  /** Whether its steps evaluate events or payloads; false: or not known yet. */
  isEvaluating: boolean;
  dueAtMs: number;
  leasedUntilMs: number;
  idleMs: number;
  /** How many messages may be queued now, and when that was read. */
  tokens: number;
  tokensAtMs: number;
  /** Generation of the object at which the replay ended; null: it has not. */
  endedGeneration: number | null;
}

/**
 * Runs replays. A worker has one step of an organization under way at a time, and serves organizations round-robin, whatever number of replays each has. Any number
 * of workers may run it; a replay is leased to one of them.
 */
export class ReplayRunner {
  readonly #options: ReplayRunnerOptions;
  readonly #wakeup = new Wakeup();
  readonly #stopping = new AbortController();
  readonly #entries = new Map<string, Entry>();
  readonly #leased = new Map<string, Pick<ReplayRecord, 'org' | 'identity'>>();
  /** Step under way and identity of its replay, by organization. */
  readonly #busy = new Map<string, { identity: string; isEvaluating: boolean; step: Promise<void> }>();
  #restsUntilMs = 0;
  #mustLoad = true;
  #reviewedAtMs = 0;
  /** Organization of the last step, by whether the step evaluated filters. */
  readonly #lastOrganizations = new Map<boolean, string>();
  #loop: Promise<void> = Promise.resolve();
  #stopListening = (): void => undefined;

  constructor(options: ReplayRunnerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#stopListening = this.#options.registry.onChange((key) => this.#note(key));
    this.#loop = this.#run();
  }

  /** Ends with the steps under way, and gives the leases back. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stopListening();
    this.#wakeup.signal();
    await this.#loop;
    await Promise.all([...this.#busy.values()].map(({ step }) => step));
    const { runs, worker } = this.#options;
    await Promise.allSettled([...this.#leased.values()].map(({ org, identity }) => runs.lease(org, identity, worker, 0)));
  }

  #note(key: string): void {
    if (key === '*') this.#mustLoad = true;
    else if (key.startsWith('replay:')) this.#renew(key.slice('replay:'.length));
    else return;
    this.#wakeup.signal();
  }

  /** The replay is due; what is known of it may have changed, but for its organization. */
  #renew(id: string): void {
    this.#entries.set(id, { ...newEntry(), org: this.#entries.get(id)?.org ?? null });
  }

  async #run(): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (this.#mustLoad || clock.now() - this.#reviewedAtMs >= reviewMs) await this.#load();
        await this.#round();
        await this.#sleep();
      } catch (error) {
        logger.debug({ err: error }, 'replays could not be continued; retrying');
        await clock.sleep(failureDelayMs, signal);
      }
    }
  }

  async #load(): Promise<void> {
    const { published, registry, clock } = this.#options;
    this.#mustLoad = false;
    const ids = new Set(await published.ids('replay'));
    for (const id of this.#entries.keys()) if (!ids.has(id)) this.#renew(id);
    const organizations = new Set<string>();
    for (const id of ids) {
      if (!this.#entries.has(id)) this.#entries.set(id, newEntry());
      const record = await registry.getOfAny('replay', id);
      if (record !== null) organizations.add(record.org);
    }
    this.#reviewedAtMs = clock.now();
    for (const org of organizations) await this.#endGone(org);
  }

  /**
   * Begins a step of the replay that is due first in each organization that has none under way. The two kinds of steps take separate rounds.
   */
  async #round(): Promise<void> {
    const { registry, clock } = this.#options;
    const due: { id: string; entry: Entry; record: ReplayRecord }[] = [];
    for (const [id, entry] of this.#entries) {
      if (entry.dueAtMs > clock.now() || this.#isBusy(entry)) continue;
      const record = await registry.getOfAny('replay', id);
      if (record === null) await this.#forget(id);
      else if (entry.endedGeneration === record.generation) entry.dueAtMs = Number.POSITIVE_INFINITY;
      else {
        Object.assign(entry, { org: record.org, isEvaluating: isEvaluating(record) });
        due.push({ id, entry, record });
      }
    }
    const firsts = firstOfEach(due.filter(({ record }) => !this.#busy.has(record.org)));
    for (const kind of [true, false]) {
      const last = this.#lastOrganizations.get(kind) ?? '';
      const alike = firsts.filter(({ entry }) => entry.isEvaluating === kind);
      const inOrder = alike.toSorted((one, other) => (one.record.org < other.record.org ? -1 : 1));
      const [before, after] = [inOrder.filter(({ record }) => record.org <= last), inOrder.filter(({ record }) => record.org > last)];
      for (const first of [...after, ...before]) {
        if (this.#stopping.signal.aborted || this.#mayBeginAtMs(first.entry) > clock.now()) break;
        this.#lastOrganizations.set(kind, first.record.org);
        this.#begin({ ...first, isOneOfSeveral: due.length > 1 });
      }
    }
  }

  #begin({ id, entry, record, isOneOfSeveral }: { id: string; entry: Entry; record: ReplayRecord; isOneOfSeveral: boolean }): void {
    const { clock } = this.#options;
    const { org } = record;
    const beganAtMs = clock.now();
    const step = this.#serve(id, entry, record, isOneOfSeveral ? maxPerSharedStep : maxPerStep).finally(() => {
      this.#busy.delete(org);
      const endedAtMs = clock.now();
      const restMs = (endedAtMs - beganAtMs) * (isOneOfSeveral ? rests.ofSeveral : rests.ofOne);
      if (!entry.isEvaluating) this.#restsUntilMs = endedAtMs + Math.min(maxRestMs, restMs);
      this.#wakeup.signal();
    });
    this.#busy.set(org, { identity: record.identity, isEvaluating: entry.isEvaluating, step });
  }

  /** When a step may begin as far as other steps are concerned, in ms since the epoch; infinite: when one of these has ended. */
  #mayBeginAtMs({ isEvaluating }: Entry): number {
    const alike = [...this.#busy.values()].filter((each) => each.isEvaluating === isEvaluating).length;
    if (alike >= (isEvaluating ? maxJudging : 1)) return Number.POSITIVE_INFINITY;
    return isEvaluating ? 0 : this.#restsUntilMs;
  }

  #isBusy({ org }: Entry): boolean {
    return org !== null && this.#busy.has(org);
  }

  /** Ends a replay whose object is gone, if this worker has carried it on. */
  async #forget(id: string): Promise<void> {
    const carried = this.#leased.get(id);
    if (carried !== undefined) await this.#endGone(carried.org);
    this.#leased.delete(id);
    this.#entries.delete(id);
  }

  async #endGone(org: string): Promise<void> {
    const { registry, steps, worker } = this.#options;
    // A replay whose step is under way is ended after it.
    const underWay = this.#busy.get(org)?.identity;
    const isThere = async (id: string, identity: string): Promise<boolean> =>
      identity === underWay || (await registry.getOf(org, 'replay', id))?.identity === identity;
    await steps.endGone(org, worker, isThere);
  }

  async #serve(id: string, entry: Entry, record: ReplayRecord, maximum: number): Promise<void> {
    const { registry, steps, clock, logger } = this.#options;
    try {
      if (!(await this.#isLeased(id, entry, record))) return;
      const organization = await registry.get('organization', record.org);
      if (organization === null || organization.retained !== undefined) {
        entry.dueAtMs = clock.now() + idleDelays.maxMs;
        return;
      }
      const most = Math.min(maximum, this.#allowance(entry, record));
      const monthlyMessages = organization.monthlyMessages ?? null;
      const elsewhere = await this.#elsewhere(record);
      const { outcome, queued, pauseMs } = await steps.advance(record, { most, monthlyMessages, ...elsewhere });
      entry.tokens -= queued;
      if (outcome === 'ended') {
        this.#leased.delete(id);
        Object.assign(entry, { endedGeneration: record.generation, dueAtMs: Number.POSITIVE_INFINITY });
      } else if (outcome === 'progress') {
        const wanted = Math.min(maxPerStep / 2, Math.max(1, record.ratePerSecond / stepsPerSecond));
        // Tokens are earned while a step is under way, too.
        const tokensByMs = entry.tokensAtMs + (1000 * Math.max(0, wanted - entry.tokens)) / record.ratePerSecond;
        Object.assign(entry, { idleMs: 0, dueAtMs: Math.max(clock.now() + (pauseMs ?? 0), queued > 0 ? tokensByMs : 0) });
      } else if (pauseMs !== undefined) {
        entry.dueAtMs = clock.now() + pauseMs;
      } else {
        entry.idleMs = Math.min(idleDelays.maxMs, Math.max(idleDelays.firstMs, entry.idleMs * 2));
        entry.dueAtMs = clock.now() + entry.idleMs;
      }
    } catch (error) {
      entry.dueAtMs = clock.now() + failureDelayMs;
      const level = isPosthornError(error, 'UNAVAILABLE') ? 'debug' : 'error';
      logger[level]({ err: error, replay: id }, 'a step of a replay could not be completed; retrying');
    }
  }

  async #elsewhere({ org, destinationId }: ReplayRecord): Promise<Pick<StepOptions, 'elsewhere'>> {
    if (destinationId === undefined) return {};
    const destination = await this.#options.registry.getOf(org, 'destination', destinationId);
    const isRouteEnabled = async (routeId: string): Promise<boolean> =>
      (await this.#options.registry.getOf(org, 'route', routeId))?.enabled !== false;
    if (destination === null) return { elsewhere: null };
    const { shard, enabled, ordered = false } = destination;
    return { elsewhere: { shard, isEnabled: enabled, isOrdered: ordered, isRouteEnabled } };
  }

  async #isLeased(id: string, entry: Entry, { org, identity }: ReplayRecord): Promise<boolean> {
    const { runs, worker, clock } = this.#options;
    if (entry.leasedUntilMs - clock.now() > leaseMs - renewMs) return true;
    const askedAtMs = clock.now();
    if (await runs.lease(org, identity, worker, leaseMs)) {
      entry.leasedUntilMs = askedAtMs + leaseMs;
      this.#leased.set(id, { org, identity });
      return true;
    }
    this.#leased.delete(id);
    entry.dueAtMs = clock.now() + othersMs;
    return false;
  }

  /** How many messages the next step may queue: at most what a second allows. */
  #allowance(entry: Entry, { ratePerSecond }: ReplayRecord): number {
    const nowMs = this.#options.clock.now();
    const earned = ((nowMs - entry.tokensAtMs) * ratePerSecond) / 1000;
    entry.tokens = Math.min(Math.max(1, ratePerSecond), entry.tokens + earned);
    entry.tokensAtMs = nowMs;
    return Math.min(maxPerStep, Math.floor(entry.tokens));
  }

  async #sleep(): Promise<void> {
    const { clock } = this.#options;
    // The end of a step wakes it.
    const open = [...this.#entries.values()].filter((entry) => !this.#isBusy(entry)).map((entry) => ({ entry }));
    const nextMs = Math.min(
      reviewMs,
      ...firstOfEach(open).map(({ entry }) => Math.max(entry.dueAtMs, this.#mayBeginAtMs(entry)) - clock.now()),
    );
    if (nextMs <= 0 || this.#stopping.signal.aborted) return;
    const cancel = clock.after(nextMs, () => this.#wakeup.signal());
    await this.#wakeup.wait();
    cancel();
  }
}

function newEntry(): Entry {
  return { org: null, isEvaluating: false, dueAtMs: 0, leasedUntilMs: 0, idleMs: 0, tokens: 0, tokensAtMs: 0, endedGeneration: null };
}

/** Returns the first due entry of each organization. Its other entries wait for that one, even if another step keeps it from beginning. */
function firstOfEach<T extends { entry: Entry }>(all: readonly T[]): T[] {
  return [...Map.groupBy(all, ({ entry }) => entry.org).values()].map((ofOne) =>
    ofOne.reduce((first, each) => (each.entry.dueAtMs < first.entry.dueAtMs ? each : first)),
  );
}

function isEvaluating({ what, filter }: ReplayRecord): boolean {
  return what === 'events' || filter.where !== undefined;
}
