import { accountOf } from '../../core/account.ts';
import { withJitter } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { OrganizationBudget } from '../../core/organization-budget.ts';
import type { Beat, WorkerDirectory } from '../../data/membership/worker-directory.ts';
import { workerLifetimeMs } from '../../data/membership/worker-directory.ts';
import type { Job, Settlement, Target, TurnOrder } from '../../data/queue/delivery-queue.ts';
import type { Ring } from '../../data/queue/doorbell.ts';
import type { AlertReport } from '../attempts/alert-attempt.ts';
import { attemptDelivery } from '../attempts/attempt.ts';
import { withWarning } from '../attempts/attempt-outcome.ts';
import { withKeptHeaders } from '../attempts/kept-event-headers.ts';
import { payloadRoomMiB, withPayload } from '../attempts/large-payload.ts';
import { type EventTransformer, hasTransform } from '../attempts/transformed-event.ts';
import type { RedisBackoffs } from '../loops/redis-backoff.ts';
import { Wakeup } from '../loops/wakeup.ts';
import type { DeliveryMetrics } from '../metrics.ts';
import type { DeliveryPlan } from '../plans/delivery-plan.ts';
import { RecentJobs } from './recent-jobs.ts';
import { ShardConsumer, type ShardParts } from './shard-consumer.ts';
import { SlotShares } from './slot-shares.ts';
import { WorkerHeartbeat } from './worker-heartbeat.ts';

const maxPerDequeue = 64;
/** Where many shards have work: one call for some messages costs Redis half of what many calls for one each do. */
const fewestPerDequeue = 16;
/** More of them would only wait in Redis, and everything else behind them. */
const dequeuesAtOnce = 2;
/** Below this share of free slots a dequeue waits a moment for more of them: fewer, larger script calls. */
const patientShare = 0.25;
const patienceMs = 1;
/** How often a worker whose free slots are kept asks for work that may have them; pressing work need not wait for it. */
const keptAskMs = 20;
/** How long a message whose records cannot be read stays here before it goes back. */
const planRetryMs = 1000;
/** Of Redis; above it all shards are looked at often. */
const tightMemoryShare = 0.5;
/** Between so many attempts that begin, what has come in meanwhile gets its turn. */
const jobsPerTick = 8;
/** Batches in memory: a quarter of the slots, and no more than this; an organization may have half of them. */
const maxUploads = 16;
/** Batches whose transforms are run; of an organization one, which keeps the sandbox busy. */
const maxTransformed = 8;

/** What a worker sleeps on: `wait` resolves to null after some silence; rejects when Redis is away. */
export interface WorkerDoorbell {
  wait(): Promise<Ring | null>;
  close(): void;
}

export interface WorkerOptions {
  directory: WorkerDirectory;
  shards: readonly ShardParts[];
  doorbells: readonly WorkerDoorbell[];
  planOf: (target: Target) => Promise<DeliveryPlan>;
  transformer: EventTransformer;
  id: string;
  /** Attempts at the same time. */
  slots: number;
  clock: Clock;
  logger: Logger;
  metrics: DeliveryMetrics;
  backoffs: RedisBackoffs;
  userAgent: string;
  retention: { finishedMs: number; deadLettersMs: number };
  onAlert: (report: AlertReport) => void;
}

/**
 * Takes messages from all shards in turn, delivers them, settles them. Sleeps on the doorbells when there is nothing to do;
 * whatever Redis does, it waits and goes on.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #backoffs: RedisBackoffs;
  readonly #heart: WorkerHeartbeat;
  readonly #lines: readonly ShardConsumer[];
  readonly #wakeup = new Wakeup();
  readonly #recentJobs: RecentJobs;
  readonly #shares: SlotShares;
  /** Beside other organizations the busiest one is served at it. */
  readonly #rooms: { uploadRoom: OrganizationBudget; transformRoom: OrganizationBudget };
  readonly #payloadRoom: OrganizationBudget;
  readonly #stopping = new AbortController();
  readonly #breakingOff = new AbortController();
  /** Slots that dequeues under way may fill. */
  #reserved = 0;
  #dequeues = 0;
  /** The line after the one that had its turn last. */
  #next = 0;
  #totalSlots: number;
  #knowsOfMoreShards = false;
  #hasBegun = false;
  #nextAskAtMs = 0;
  #loops: Promise<void>[] = [];

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { directory, id: worker, clock, backoffs, slots, shards } = options;
    this.#backoffs = backoffs;
    this.#totalSlots = slots;
    this.#recentJobs = new RecentJobs(clock);
    this.#shares = new SlotShares(slots);
    const places = Math.max(1, Math.min(maxUploads, Math.floor(slots / 4)));
    this.#rooms = {
      uploadRoom: new OrganizationBudget({ places, placesOfOrganization: Math.max(1, Math.floor(places / 2)), clock }),
      transformRoom: new OrganizationBudget({ places: Math.min(maxTransformed, places), placesOfOrganization: 1, clock }),
    };
    this.#payloadRoom = new OrganizationBudget({ places: payloadRoomMiB.all, placesOfOrganization: payloadRoomMiB.ofOrganization, clock });
    this.#lines = shards.map(
      (parts) =>
        new ShardConsumer({
          ...options,
          ...parts,
          worker,
          backoff: backoffs.watch(),
          totalSlots: () => this.#totalSlots,
          onWork: () => this.#wakeup.signal(),
          onMemoryShare: (share) => this.#onMemoryShare(share),
        }),
    );
    this.#heart = new WorkerHeartbeat({
      directory,
      worker,
      slots,
      clock,
      backoff: backoffs.watch(),
      onBeat: (beat) => this.#onBeat(beat),
      reclaim: (dead) => this.#reclaim(dead),
    });
  }

  start(): void {
    this.#heart.start();
    this.#loops = [this.#takeLoop(), ...this.#options.doorbells.map((doorbell) => this.#doorbellLoop(doorbell))];
  }

  /** Says that there may be work in a shard. */
  wake(shard: number): void {
    this.#lines.find((line) => line.shard === shard)?.wake();
  }

  /** Others are served beside an organization with very much work. */
  get hasOthersBesideBusiest(): boolean {
    return this.#recentJobs.busiestBesideOthers !== null;
  }

  get inFlight(): number {
    return this.#shares.inFlight;
  }

  /** Time at which Redis last took a heartbeat; null: never yet. */
  get lastBeatAtMs(): number | null {
    return this.#heart.lastBeatAtMs;
  }

  /** Takes no more work, lets attempts finish for `graceMs`, and puts back what is not done then. */
  async stop(graceMs: number): Promise<void> {
    const { clock, doorbells, directory, id } = this.#options;
    this.#stopping.abort();
    this.#wakeup.signal();
    for (const doorbell of doorbells) doorbell.close();
    await Promise.all(this.#loops);
    const cancelGrace = clock.after(graceMs, () => this.#breakingOff.abort());
    while (this.inFlight > 0 || this.#reserved > 0) await this.#wakeup.wait();
    cancelGrace();
    const giveUp = new AbortController();
    const cancelGiveUp = clock.after(5000, () => giveUp.abort());
    await Promise.all(this.#lines.map((line) => line.stop(giveUp.signal)));
    cancelGiveUp();
    await this.#heart.stop();
    // Without Redis the worker is found dead after its lifetime.
    await directory.leave(id, { mayHoldWork: this.#lines.some(({ holdsWork }) => holdsWork) }).catch(() => undefined);
  }

  async #takeLoop(): Promise<void> {
    const { slots, clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const wanting = this.#lines.filter(({ wantsToTake }) => wantsToTake);
      const isPressing = wanting.some((line) => line.isPressing);
      if (wanting.length === 0 || this.#free <= 0 || !(isPressing || this.#mayTakeMore())) {
        await this.#wakeup.wait();
        continue;
      }
      if (this.#mayCountAsDead()) {
        await clock.sleep(patienceMs, signal);
        continue;
      }
      if (!isPressing && this.#hasOnlyKept && !(await this.#mayTakeKept())) continue;
      if (this.#free < slots * patientShare && !isPressing) await clock.sleep(patienceMs, signal);
      const share = Math.min(maxPerDequeue, Math.max(fewestPerDequeue, Math.ceil(this.#free / wanting.length)));
      for (const line of this.#inTurn()) {
        if (this.#free <= 0) break;
        if (!line.isPressing) {
          if (!this.#mayTakeMore() || (this.#hasOnlyKept && this.#reserved > 0)) break;
          this.#next = (this.#lines.indexOf(line) + 1) % this.#lines.length;
        }
        void this.#take(line, share);
      }
    }
  }

  get #free(): number {
    return this.#options.slots - this.inFlight - this.#reserved;
  }

  /** How many a dequeue may take. The last slots are kept for accounts that hold few: it takes either none of them, or for such accounts alone. */
  get #room(): number {
    const shared = this.#free - this.#shares.kept;
    return shared > 0 ? shared : this.#free;
  }

  get #hasOnlyKept(): boolean {
    return this.#free <= this.#shares.kept;
  }

  /** When only slots are left that are kept: whether it is known who holds the others, and time to ask for work that may have them. */
  async #mayTakeKept(): Promise<boolean> {
    const { clock } = this.#options;
    if (this.#reserved > 0) {
      await this.#wakeup.wait();
      return false;
    }
    if (clock.now() >= this.#nextAskAtMs) {
      this.#nextAskAtMs = clock.now() + keptAskMs;
      return true;
    }
    const cancel = clock.after(this.#nextAskAtMs - clock.now(), () => this.#wakeup.signal());
    await this.#wakeup.wait();
    cancel();
    return false;
  }

  /** Work that is not pressing. */
  #mayTakeMore(): boolean {
    return this.#dequeues < dequeuesAtOnce;
  }

  /** Those that want to take: first where others than the busiest organization wait, then round the shards. */
  #inTurn(): ShardConsumer[] {
    const round = [...this.#lines.slice(this.#next), ...this.#lines.slice(0, this.#next)].filter(({ wantsToTake }) => wantsToTake);
    return [...round.filter(({ isPressing }) => isPressing), ...round.filter(({ isPressing }) => !isPressing)];
  }

  /** After a stop of this process others may have put back what it held: it must say that it lives before it takes more. */
  #mayCountAsDead(): boolean {
    const { lastTryAtMs } = this.#heart;
    return lastTryAtMs === null || this.#options.clock.now() - lastTryAtMs > workerLifetimeMs;
  }

  async #take(line: ShardConsumer, share: number): Promise<void> {
    const count = Math.min(share, this.#room);
    const order = this.#orderOf(line);
    this.#dequeues++;
    this.#reserved += count;
    const jobs = await line.take(count, this.#shares.slow, order);
    this.#dequeues--;
    for (const { target } of jobs) this.#recentJobs.add(accountOf(target.org));
    this.#wakeup.signal();
    const plans = new Map<Target, Promise<DeliveryPlan>>();
    for (const [i, job] of jobs.entries()) {
      if (i > 0 && i % jobsPerTick === 0) await new Promise((resolve) => setImmediate(resolve));
      if (job.target.isSlow && !this.#shares.hasRoomForSlow(job.target.org)) {
        line.settle({ job, outcome: { type: 'back' }, maxAttempts: null });
        continue;
      }
      const planned = plans.get(job.target) ?? this.#options.planOf(job.target);
      plans.set(job.target, planned);
      this.#begin(line, job, planned);
    }
    this.#reserved -= count;
    this.#wakeup.signal();
  }

  /** Who goes first, and who gets nothing: the busiest account of what is taken out of turn, those with large shares of the last slots. */
  #orderOf({ isPressing }: ShardConsumer): TurnOrder {
    const { busiest } = this.#recentJobs;
    const outOfTurn = isPressing && busiest !== null && this.hasOthersBesideBusiest ? [busiest] : [];
    const large = this.#hasOnlyKept ? this.#shares.large : [];
    return { busiest: busiest ?? this.#shares.largest, without: [...new Set([...outOfTurn, ...large])] };
  }

  async #doorbellLoop(doorbell: WorkerDoorbell): Promise<void> {
    const { clock, slots } = this.#options;
    const { signal } = this.#stopping;
    const backoff = this.#backoffs.watch();
    while (!signal.aborted) {
      try {
        const rang = await doorbell.wait();
        backoff.recordSuccess();
        const line = this.#lines.find(({ shard }) => shard === rang?.shard);
        if (line === undefined) continue;
        line.wake({ isPressing: rang?.isFirst === true });
        // A full worker passes the bell on: promote rings when there is work.
        if (this.inFlight >= slots) {
          await line.passBellOn();
          while (this.inFlight >= slots && !signal.aborted) await clock.sleep(20, signal);
        }
      } catch (error) {
        if (signal.aborted) return;
        await clock.sleep(backoff.recordFailure(error), signal);
        // It may have rung: a bell that was taken with the lost answer does not ring again.
        for (const line of this.#lines) line.wake();
      }
    }
  }

  #begin(line: ShardConsumer, job: Job, planned: Promise<DeliveryPlan>): void {
    const { logger, metrics, clock } = this.#options;
    this.#shares.begin(job.target);
    void this.#deliver(line, job, planned)
      .catch(async (error: unknown): Promise<Settlement> => {
        logger.debug(
          { reason: error instanceof Error ? error.message : String(error), messageId: job.messageId },
          'an attempt could not be made; the message is requeued',
        );
        await clock.sleep(withJitter(planRetryMs), this.#stopping.signal);
        return { job, outcome: { type: 'back' }, maxAttempts: null };
      })
      .then((settlement) => {
        this.#shares.end(job.target);
        metrics.outcomes.inc({ outcome: settlement.outcome.type });
        line.settle(settlement);
        if (this.#stopping.signal.aborted || this.#lines.some(({ wantsToTake }) => wantsToTake)) this.#wakeup.signal();
      });
  }

  async #deliver(line: ShardConsumer, taken: Job, planned: Promise<DeliveryPlan>): Promise<Settlement> {
    const { clock, metrics, userAgent, onAlert } = this.#options;
    const signal = this.#breakingOff.signal;
    const context = { clock, metrics, userAgent, onAlert, signal, batches: line.batches, ...this.#rooms };
    const plan = await planned;
    const job = withHeadersKeptToday(taken, plan);
    switch (plan.state) {
      case 'ready':
        if (plan.setting.revision !== job.target.revision) void line.configure(job.target);
        return await withPayload(job, plan, { queue: line.batches.queue, clock, room: this.#payloadRoom }, async (whole, isLate) => {
          if (whole.event === null || !hasTransform(whole, plan)) return await attemptDelivery(whole, plan, context);
          const { event, warning, unsent } = await line.transformed(whole, whole.event, plan);
          if (unsent !== undefined) return { job, outcome: unsent, maxAttempts: null };
          if (isLate()) return { job, outcome: { type: 'back' }, maxAttempts: null };
          return withWarning(await attemptDelivery({ ...whole, event }, plan, context), warning);
        });
      case 'paused':
        // First the pause, or the message would come straight back.
        await line.keeper.configure(job.target);
        return { job, outcome: { type: 'back' }, maxAttempts: null };
      case 'impossible':
        if (plan.setting === null && plan.failover !== null) {
          // What is queued there has another destination, or becomes a dead letter; so does this one then.
          await line.keeper.configure(job.target);
          return { job, outcome: { type: 'back' }, maxAttempts: null };
        }
        if (plan.setting?.revision !== job.target.revision) void line.configure(job.target);
        return { job, outcome: { type: 'dead', attempt: null, reason: plan.reason }, maxAttempts: null };
      default:
        return plan satisfies never;
    }
  }

  /** Memory that gets scarce concerns every shard: they say at the door that no more fits. */
  #onMemoryShare(share: number | null): void {
    if (share !== null && share >= tightMemoryShare) for (const line of this.#lines) line.lookSoon();
  }

  /** Besides what they held, dead workers may have had a bell, and have known when a retry is due. */
  async #reclaim(dead: readonly string[]): Promise<boolean> {
    for (const line of this.#lines) line.lookSoon();
    return (await Promise.all(this.#lines.map((line) => line.reclaim(dead)))).every((isDone) => isDone);
  }

  #onBeat({ totalSlots, shards }: Beat): void {
    this.#totalSlots = totalSlots;
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      for (const line of this.#lines) line.start();
    }
    if (shards > this.#lines.length && !this.#knowsOfMoreShards) {
      this.#knowsOfMoreShards = true;
      this.#options.logger.warn(
        { shards, served: this.#lines.length },
        'more shards exist than this worker serves; restart it with the same POSTHORN_SHARDS as the other processes',
      );
    }
  }
}

/** Those of a batch are read by who writes it. */
function withHeadersKeptToday(job: Job, plan: DeliveryPlan): Job {
  if (plan.state !== 'ready' || plan.type !== 'http' || job.event === null) return job;
  const event = withKeptHeaders(job.event);
  return event === job.event ? job : { ...job, event };
}
