import { accountOf } from '../../core/account.ts';
import type { AttemptDetailMode } from '../../core/attempt-detail-mode.ts';
import { withJitter } from '../../core/backoff.ts';
import { OrganizationBudget } from '../../core/organization-budget.ts';
import { leastLargeMebibytes } from '../../core/payload-sizes.ts';
import type { RedisWorkerDirectory } from '../../data/membership/worker-directory.ts';
import { workerLifetimeMs } from '../../data/membership/worker-directory.ts';
import type { Job, Settlement, Target, TurnOrder } from '../../data/queue/delivery-queue.ts';
import type { Doorbell } from '../../data/queue/doorbell.ts';
import type { AlertReport } from '../attempts/alert-attempt.ts';
import { type AttemptContext, attemptDelivery } from '../attempts/attempt.ts';
import { withWarning } from '../attempts/attempt-outcome.ts';
import { withKeptHeaders } from '../attempts/kept-event-headers.ts';
import { payloadMemoryMiB, withPayload } from '../attempts/large-payload.ts';
import { hasTransform } from '../attempts/transformed-event.ts';
import { countRejection } from '../metrics.ts';
import type { DeliveryPlan } from '../plans/delivery-plan.ts';
import { WorkerHeartbeat } from './duties/worker-heartbeat.ts';
import type { ShardConsumer } from './shard-consumer.ts';
import type { WorkerContext } from './worker-context.ts';

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
/** Between so many attempts that begin, what has come in meanwhile gets its turn. */
const jobsPerTick = 8;
/** Batches in memory: a quarter of the slots, and no more than this; an organization may have half of them. */
const maxUploads = 16;
/** Batches whose transforms are run; of an organization one, which keeps the sandbox busy. */
const maxTransformed = 8;

export interface WorkerOptions {
  context: WorkerContext;
  directory: RedisWorkerDirectory;
  consumers: readonly ShardConsumer[];
  doorbells: readonly Doorbell[];
  planOf: (target: Target) => Promise<DeliveryPlan>;
  userAgent: string;
  attemptDetail: AttemptDetailMode;
  onAlert: (report: AlertReport) => void;
}

/**
 * Takes messages from all shards in turn, delivers them, settles them. Sleeps on the doorbells when there is nothing to do;
 * whatever Redis does, it waits and goes on.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #context: WorkerContext;
  readonly #consumers: readonly ShardConsumer[];
  readonly #heartbeat: WorkerHeartbeat;
  readonly #budgets: { uploadBudget: OrganizationBudget; transformBudget: OrganizationBudget };
  /** Memory for large payloads, shared by targets instead of sources. */
  readonly #payloadBudget: OrganizationBudget;
  readonly #attemptContexts = new Map<ShardConsumer, AttemptContext>();
  readonly #stopping = new AbortController();
  readonly #breakingOff = new AbortController();
  /** Slots that dequeues under way may fill. */
  #reserved = 0;
  #dequeues = 0;
  /** The consumer after the one that had its turn last. */
  #next = 0;
  #nextAskAtMs = 0;
  #loops: Promise<void>[] = [];

  constructor(options: WorkerOptions) {
    const { context, directory, consumers } = options;
    const { slots, clock } = context;
    this.#options = options;
    this.#context = context;
    this.#consumers = consumers;
    const places = Math.max(1, Math.min(maxUploads, Math.floor(slots / 4)));
    this.#budgets = {
      uploadBudget: new OrganizationBudget({ places, placesOfOrganization: Math.max(1, Math.floor(places / 2)), clock }),
      transformBudget: new OrganizationBudget({ places: Math.min(maxTransformed, places), placesOfOrganization: 1, clock }),
    };
    this.#payloadBudget = new OrganizationBudget({
      places: payloadMemoryMiB.all,
      placesOfOrganization: payloadMemoryMiB.ofOrganization,
      placesOfSource: payloadMemoryMiB.ofTarget,
      leastPlaces: leastLargeMebibytes,
      clock,
    });
    this.#heartbeat = new WorkerHeartbeat({ context, directory, consumers });
  }

  start(): void {
    this.#heartbeat.start();
    this.#loops = [this.#takeLoop(), ...this.#options.doorbells.map((doorbell) => this.#doorbellLoop(doorbell))];
  }

  /** Time at which Redis last took a heartbeat; null: never yet. */
  get lastBeatAtMs(): number | null {
    return this.#heartbeat.lastBeatAtMs;
  }

  /** Takes no more work, lets attempts finish for `graceMs`, and requeues what is not done then. */
  async stop(graceMs: number): Promise<void> {
    const { doorbells, directory } = this.#options;
    const { clock, id, shares, wakeup } = this.#context;
    this.#stopping.abort();
    wakeup.signal();
    for (const doorbell of doorbells) doorbell.close();
    await Promise.all(this.#loops);
    const cancelGrace = clock.after(graceMs, () => this.#breakingOff.abort());
    while (shares.inFlight > 0 || this.#reserved > 0) await wakeup.wait();
    cancelGrace();
    const giveUp = new AbortController();
    const cancelGiveUp = clock.after(5000, () => giveUp.abort());
    await Promise.all(this.#consumers.map((consumer) => consumer.stop(giveUp.signal)));
    cancelGiveUp();
    await this.#heartbeat.stop();
    // Without Redis the worker is found dead after its lifetime.
    await directory.leave(id, { mayHoldWork: this.#consumers.some(({ holdsWork }) => holdsWork) }).catch(() => undefined);
  }

  async #takeLoop(): Promise<void> {
    const { slots, clock, wakeup } = this.#context;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const wanting = this.#consumers.filter(({ wantsToTake }) => wantsToTake);
      const isPressing = wanting.some((consumer) => consumer.isPressing);
      if (wanting.length === 0 || this.#free <= 0 || !(isPressing || this.#mayTakeMore())) {
        await wakeup.wait();
        continue;
      }
      if (this.#mayCountAsDead()) {
        await clock.sleep(patienceMs, signal);
        continue;
      }
      if (!isPressing && this.#hasOnlyKept && !(await this.#mayTakeKept())) continue;
      if (this.#free < slots * patientShare && !isPressing) await clock.sleep(patienceMs, signal);
      const share = Math.min(maxPerDequeue, Math.max(fewestPerDequeue, Math.ceil(this.#free / wanting.length)));
      for (const consumer of this.#inTurn()) {
        if (this.#free <= 0) break;
        if (!consumer.isPressing) {
          if (!this.#mayTakeMore() || (this.#hasOnlyKept && this.#reserved > 0)) break;
          this.#next = (this.#consumers.indexOf(consumer) + 1) % this.#consumers.length;
        }
        void this.#take(consumer, share);
      }
    }
  }

  get #free(): number {
    return this.#context.slots - this.#context.shares.inFlight - this.#reserved;
  }

  /** How many a dequeue may take. The last slots are kept for accounts that hold few: it takes either none of them, or half of them for such accounts alone. */
  get #room(): number {
    const shared = this.#free - this.#context.shares.kept;
    return shared > 0 ? shared : Math.ceil(this.#free / 2);
  }

  get #hasOnlyKept(): boolean {
    return this.#free <= this.#context.shares.kept;
  }

  /** When only slots are left that are kept: whether it is known who holds the others, and time to ask for work that may have them. */
  async #mayTakeKept(): Promise<boolean> {
    const { clock, wakeup } = this.#context;
    if (this.#reserved > 0) {
      await wakeup.wait();
      return false;
    }
    if (clock.now() >= this.#nextAskAtMs) {
      this.#nextAskAtMs = clock.now() + keptAskMs;
      return true;
    }
    const cancel = clock.after(this.#nextAskAtMs - clock.now(), () => wakeup.signal());
    await wakeup.wait();
    cancel();
    return false;
  }

  /** Work that is not pressing. */
  #mayTakeMore(): boolean {
    return this.#dequeues < dequeuesAtOnce;
  }

  /** Those that want to take: first where others than the dominant organization wait, then round the shards. */
  #inTurn(): ShardConsumer[] {
    const round = [...this.#consumers.slice(this.#next), ...this.#consumers.slice(0, this.#next)].filter(({ wantsToTake }) => wantsToTake);
    return [...round.filter(({ isPressing }) => isPressing), ...round.filter(({ isPressing }) => !isPressing)];
  }

  /** After a stop of this process others may have requeued its leases: it must send a heartbeat before it takes more. */
  #mayCountAsDead(): boolean {
    const { lastTryAtMs } = this.#heartbeat;
    return lastTryAtMs === null || this.#context.clock.now() - lastTryAtMs > workerLifetimeMs;
  }

  async #take(consumer: ShardConsumer, share: number): Promise<void> {
    const count = Math.min(share, this.#room);
    const order = this.#orderOf(consumer);
    this.#dequeues++;
    this.#reserved += count;
    const jobs = await consumer.take(count, this.#context.shares.slow, order);
    this.#dequeues--;
    for (const { target } of jobs) this.#context.organizations.add(accountOf(target.org));
    this.#context.wakeup.signal();
    const plans = new Map<Target, Promise<DeliveryPlan>>();
    for (const [i, job] of jobs.entries()) {
      if (i > 0 && i % jobsPerTick === 0) await new Promise((resolve) => setImmediate(resolve));
      if (job.target.isSlow && !this.#context.shares.hasRoomForSlow(job.target.org)) {
        this.#context.metrics.outcomes.inc({ outcome: 'back' });
        consumer.settle({ job, outcome: { type: 'back' }, maxAttempts: null });
        continue;
      }
      const planned = plans.get(job.target) ?? this.#options.planOf(job.target);
      plans.set(job.target, planned);
      this.#begin(consumer, job, planned);
    }
    this.#reserved -= count;
    this.#context.wakeup.signal();
  }

  /** The dominant account goes last. It gets nothing of what is taken out of turn beside others, and those with large shares nothing of the last slots. */
  #orderOf({ isPressing }: ShardConsumer): TurnOrder {
    const { organizations, shares } = this.#context;
    const { dominant } = shares;
    const outOfTurn = isPressing && dominant !== null && organizations.hasSeveral ? [dominant] : [];
    const large = this.#hasOnlyKept ? shares.large(this.#free) : [];
    return { dominant, without: [...new Set([...outOfTurn, ...large])] };
  }

  async #doorbellLoop(doorbell: Doorbell): Promise<void> {
    const { clock, slots, shares, backoffs } = this.#context;
    const { signal } = this.#stopping;
    const backoff = backoffs.watch();
    while (!signal.aborted) {
      try {
        const rang = await doorbell.wait();
        backoff.recordSuccess();
        const consumer = this.#consumers.find(({ shard }) => shard === rang?.shard);
        if (consumer === undefined) continue;
        if (signal.aborted) {
          // It takes nothing more: another worker hears of the work.
          await consumer.passBellOn();
          return;
        }
        consumer.wake({ isPressing: rang?.isFirst === true });
        // A full worker passes the bell on: promote rings when there is work.
        if (shares.inFlight >= slots) {
          await consumer.passBellOn();
          while (shares.inFlight >= slots && !signal.aborted) await clock.sleep(20, signal);
        }
      } catch (error) {
        if (signal.aborted) return;
        await clock.sleep(backoff.recordFailure(error), signal);
        // It may have rung: a bell that was taken with the lost answer does not ring again.
        for (const consumer of this.#consumers) consumer.wake();
      }
    }
  }

  #begin(consumer: ShardConsumer, job: Job, planned: Promise<DeliveryPlan>): void {
    const { logger, metrics, clock, shares, wakeup } = this.#context;
    shares.begin(job.target);
    void this.#deliver(consumer, job, planned)
      .catch(async (error: unknown): Promise<Settlement> => {
        logger.debug(
          { reason: error instanceof Error ? error.message : String(error), messageId: job.messageId },
          'an attempt could not be made; the message is requeued',
        );
        await clock.sleep(withJitter(planRetryMs), this.#stopping.signal);
        return { job, outcome: { type: 'back' }, maxAttempts: null };
      })
      .then((settlement) => {
        shares.end(job.target);
        metrics.outcomes.inc({ outcome: settlement.outcome.type });
        countRejection(metrics, settlement);
        consumer.settle(settlement);
        if (this.#stopping.signal.aborted || this.#consumers.some(({ wantsToTake }) => wantsToTake)) wakeup.signal();
      });
  }

  #attemptContextOf(consumer: ShardConsumer): AttemptContext {
    const known = this.#attemptContexts.get(consumer);
    if (known !== undefined) return known;
    const { userAgent, attemptDetail, onAlert } = this.#options;
    const { clock, metrics } = this.#context;
    const signal = this.#breakingOff.signal;
    const made = { clock, metrics, userAgent, attemptDetail, onAlert, signal, batches: consumer.batches, ...this.#budgets };
    this.#attemptContexts.set(consumer, made);
    return made;
  }

  async #deliver(consumer: ShardConsumer, taken: Job, planned: Promise<DeliveryPlan>): Promise<Settlement> {
    const { clock } = this.#context;
    const context = this.#attemptContextOf(consumer);
    const plan = await planned;
    const job = withHeadersKeptToday(taken, plan);
    switch (plan.state) {
      case 'ready':
        if (plan.setting.inOrder && !job.target.isInOrder) {
          // The setting by which it was taken gives out several at once: it would overtake an earlier one.
          await consumer.keeper.configure(job.target);
          return { job, outcome: { type: 'back' }, maxAttempts: null };
        }
        if (plan.setting.revision !== job.target.revision) void consumer.configure(job.target);
        return await withPayload(job, plan, { queue: consumer.batches.queue, clock, room: this.#payloadBudget }, async (whole, isLate) => {
          if (whole.event === null || !hasTransform(whole, plan)) return await attemptDelivery(whole, plan, context);
          const { event, warning, unsent } = await consumer.transformed(whole, whole.event, plan);
          if (unsent !== undefined) return { job, outcome: unsent, maxAttempts: null };
          if (isLate()) return { job, outcome: { type: 'back' }, maxAttempts: null };
          return withWarning(await attemptDelivery({ ...whole, event }, plan, context), warning);
        });
      case 'paused':
        // First the pause, or the message would come straight back.
        await consumer.keeper.configure(job.target);
        return { job, outcome: { type: 'back' }, maxAttempts: null };
      case 'impossible':
        if (plan.setting === null && plan.failover !== null) {
          // What is queued there has another destination, or becomes a dead letter; so does this one then.
          await consumer.keeper.configure(job.target);
          return { job, outcome: { type: 'back' }, maxAttempts: null };
        }
        if (plan.setting?.revision !== job.target.revision) void consumer.configure(job.target);
        return { job, outcome: { type: 'dead', attempt: null, reason: plan.reason }, maxAttempts: null };
      default:
        return plan satisfies never;
    }
  }
}

/** Those of a batch are read by who writes it. */
function withHeadersKeptToday(job: Job, plan: DeliveryPlan): Job {
  if (plan.state !== 'ready' || plan.type !== 'http' || job.event === null) return job;
  const event = withKeptHeaders(job.event);
  return event === job.event ? job : { ...job, event };
}
