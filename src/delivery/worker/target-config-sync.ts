import { withJitter } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { DeletedTarget, ShardHints, Target } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import type { DeliveryPlan } from '../plans/delivery-plan.ts';
import type { ShardSignals } from './shard-signals.ts';

/** Changes are processed together, so that a thousand deletions cost one search. */
const gatherMs = 200;
const retryMs = 2000;
/** Delay until a missing record is read again; a change of a route triggers a read at once. */
const awaitedMs = 30_000;
/** Targets of one walk over retries. */
const targetsPerWalk = 100;
/** Anything may have changed: the changes were not followed for a while. */
const anything = '*';

export interface TargetConfigSyncOptions {
  queue: RedisDeliveryQueue;
  registry: RegistryReader;
  clock: Clock;
  logger: Logger;
  planOf: (target: Target) => Promise<DeliveryPlan>;
  /** Where it reports what it has left to do in the shard. */
  signals: ShardSignals;
}

/**
 * Synchronizes the settings of targets in Redis with their records: throttle, circuit, failover and pause. Messages of a target that does not serve move to
 * its failover destinations; the queue of a deleted one moves there or to the dead letters. Errors reject or, in the background, wait for the next review.
 */
export class TargetConfigSync {
  readonly #options: TargetConfigSyncOptions;
  readonly #configuring = new Map<string, Promise<void>>();
  /** Targets by number whose messages must not wait for their next attempt any longer. */
  readonly #waitsToEnd = new Map<string, Target>();
  /** The walk under way over the retries, with the numbers of its targets. */
  #walk: { numbers: ReadonlySet<string>; done: Promise<void> } | null = null;
  readonly #changed = new Set<string>();
  #isEndingWaits = false;
  #isReviewing = false;
  #cancelReview: (() => void) | null = null;
  #unsubscribe: () => void = () => {};
  #isStopped = false;

  constructor(options: TargetConfigSyncOptions) {
    this.#options = options;
  }

  start(): void {
    this.#unsubscribe = this.#options.registry.onChange((changeKey) => {
      this.#changed.add(changeKey);
      this.review();
    });
    this.reviewAll();
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#cancelReview?.();
  }

  /**
   * Puts the target's plan in force. Calls for one target at the same time are one call. Where its messages wait for their next attempt and are to move on,
   * they have done so when it resolves; walks for other targets only are neither waited for, nor do they reject it.
   */
  async configure(target: Target): Promise<void> {
    await this.#configureOne(target);
    await this.#endWaitsOf(target.number);
  }

  #configureOne(target: Target): Promise<void> {
    const key = target.number;
    const known = this.#configuring.get(key);
    if (known !== undefined) return known;
    const work = this.#configure(target).finally(() => this.#configuring.delete(key));
    this.#configuring.set(key, work);
    return work;
  }

  /** Schedules a review of paused targets and of what was deleted. */
  review(): void {
    this.#reviewIn(gatherMs);
  }

  /** The same, and reviews what waits by its setting: any change may have been missed. */
  reviewAll(): void {
    this.#changed.add(anything);
    this.review();
  }

  #reviewIn(ms: number): void {
    if (this.#isStopped || this.#isReviewing || this.#cancelReview !== null) return;
    this.#cancelReview = this.#options.clock.after(ms, () => {
      this.#cancelReview = null;
      void this.#review();
    });
  }

  async #configure(target: Target): Promise<void> {
    const { queue, planOf, signals } = this.#options;
    const plan = await planOf(target);
    if (plan.setting === null) await this.#drop([{ target, reason: plan.reason, failover: plan.failover }]);
    else {
      const found = await queue.configure(target, plan.setting);
      if (found.hasRetries) this.#waitsToEnd.set(target.number, target);
      signals.report(found);
    }
    signals.reportWork();
  }

  async #endWaitsOf(number: string): Promise<void> {
    while (this.#waitsToEnd.has(number) || this.#walk?.numbers.has(number) === true) await this.#walkWith(number);
  }

  /** Runs in the background, because a walk over many retries is long. The next review repeats a walk that failed. */
  async #endAllWaits(): Promise<void> {
    if (this.#isEndingWaits) return;
    this.#isEndingWaits = true;
    try {
      for (let [number] = this.#waitsToEnd.keys(); number !== undefined; [number] = this.#waitsToEnd.keys()) await this.#walkWith(number);
    } catch {
      // Redis is down, which the worker reports.
    } finally {
      this.#isEndingWaits = false;
    }
  }

  /** Waits for the walk under way, or else for a new one; rejects only with a failure of a walk that is for this target, too. */
  async #walkWith(number: string): Promise<void> {
    this.#walk ??= this.#walkRetries();
    const { numbers, done } = this.#walk;
    await done.catch((error: unknown) => {
      if (numbers.has(number)) throw error;
    });
  }

  /**
   * Retries at targets that do not serve move on now. They are found by a walk over all retries, so one walk is for all targets that
   * have come before it begins. What is left when Redis fails is done by the next review.
   */
  #walkRetries(): { numbers: ReadonlySet<string>; done: Promise<void> } {
    const targets = [...this.#waitsToEnd.values()].slice(0, targetsPerWalk);
    for (const { number } of targets) this.#waitsToEnd.delete(number);
    const walk = async (): Promise<void> => {
      try {
        for (let cursor: string | null = '0'; cursor !== null && !this.#isStopped; )
          cursor = (await this.#options.queue.endWaits(targets, cursor)).next;
      } catch (error) {
        for (const target of targets) this.#waitsToEnd.set(target.number, target);
        this.#reviewIn(withJitter(retryMs));
        throw error;
      }
      this.#options.signals.reportWork();
    };
    const done = walk().finally(() => {
      this.#walk = null;
    });
    return { numbers: new Set(targets.map(({ number }) => number)), done };
  }

  async #review(): Promise<void> {
    this.#isReviewing = true;
    let waitMs = gatherMs;
    const changed = [...this.#changed];
    this.#changed.clear();
    try {
      for (let cursor: string | null = '0'; cursor !== null; ) {
        const step: { targets: Target[]; next: string | null } = await this.#options.queue.pausedTargets(cursor);
        for (const target of step.targets) if (isToConfigure(target, await this.#options.planOf(target))) await this.#configureOne(target);
        cursor = step.next;
      }
      await this.#configureChanged(changed);
      const awaited = await this.#dropDeleted(changed);
      if (awaited.length > 0 && this.#changed.size === 0) waitMs = awaitedMs;
      for (const changeKey of awaited) this.#changed.add(changeKey);
    } catch {
      // Redis is down, which the worker reports.
      for (const changeKey of changed) this.#changed.add(changeKey);
      waitMs = withJitter(retryMs);
    } finally {
      this.#isReviewing = false;
      if (this.#changed.size > 0) this.#reviewIn(waitMs);
      void this.#endAllWaits();
    }
  }

  /** Without this, messages that wait by an earlier setting, a limit or an open circuit would see the new one only later. */
  async #configureChanged(changed: readonly string[]): Promise<void> {
    const { queue, registry } = this.#options;
    if (changed.includes(anything)) {
      for (let first: number | null = 1; first !== null && !this.#isStopped; ) {
        const step: { targets: Target[]; next: number | null } = await queue.targets(first, { onlyBound: true });
        await this.#configureOutdated(step.targets);
        first = step.next;
      }
    }
    const ids = new Map<string, string[]>();
    for (const changeKey of changed) {
      const [kind, id] = changeKey.split(':');
      if (id === undefined || (kind !== 'route' && kind !== 'destination')) continue;
      const record = await registry.getOfAny(kind, id);
      if (record !== null) ids.set(record.org, [...(ids.get(record.org) ?? []), id]);
    }
    for (const [org, changedIds] of ids) {
      for (let cursor: string | null = '0'; cursor !== null; ) {
        const step: { targets: Target[]; next: string | null } = await queue.targetsOf(org, changedIds, cursor);
        await this.#configureOutdated(step.targets);
        cursor = step.next;
      }
    }
  }

  async #configureOutdated(targets: readonly Target[]): Promise<void> {
    for (const target of targets) {
      // Running attempts may have the plan before the change.
      await this.#configuring.get(target.number)?.catch(() => {});
      const { setting } = await this.#options.planOf(target);
      if (setting !== null && setting.revision !== target.revision) await this.#configureOne(target);
    }
  }

  /** Returns the change keys of what is deleted while a route still names it: that may be a record on its way. */
  async #dropDeleted(changed: readonly string[]): Promise<string[]> {
    const { queue, registry, planOf } = this.#options;
    const gone = new Set<string>();
    for (const changeKey of changed) {
      const [kind, id] = changeKey.split(':');
      if (id === undefined) continue;
      if (kind !== 'route' && kind !== 'notificationChannel' && kind !== 'destination') continue;
      if ((await registry.getOfAny(kind, id)) === null) gone.add(id);
    }
    if (gone.size === 0) return [];
    const found: DeletedTarget[] = [];
    const awaited = new Set<string>();
    for (let first: number | null = 1; first !== null; ) {
      const step: { targets: Target[]; next: number | null } = await queue.targets(first);
      for (const target of step.targets.filter(({ routeId, destinationId }) => gone.has(routeId) || gone.has(destinationId))) {
        const plan = await planOf(target);
        if (plan.setting === null) found.push({ target, reason: plan.reason, failover: plan.failover });
        else {
          awaited.add(`destination:${target.destinationId}`);
          if (plan.setting.movesOn !== 'nobody') await this.#configureOutdated([target]);
        }
      }
      first = step.next;
    }
    if (found.length > 0) await this.#drop(found);
    return [...awaited];
  }

  async #drop(found: readonly DeletedTarget[]): Promise<void> {
    const { queue, logger, signals } = this.#options;
    let dropped = 0;
    const withRetries: DeletedTarget[] = [];
    for (const gone of found) {
      for (let hasMore = true; hasMore; ) {
        const step = await queue.drop(gone);
        dropped += step.dropped;
        hasMore = step.hasMore;
        signals.report(step);
        if (step.hasRetries && !withRetries.includes(gone)) withRetries.push(gone);
      }
    }
    for (let cursor: string | null = withRetries.length === 0 ? null : '0'; cursor !== null; ) {
      const step: ShardHints & { dropped: number; next: string | null } = await queue.dropRetries(withRetries, cursor);
      dropped += step.dropped;
      signals.report(step);
      cursor = step.next;
    }
    signals.reportWork();
    if (dropped > 0)
      logger.info({ messages: dropped, targets: found.length }, 'queued messages of deleted routes or destinations became dead letters');
  }
}

/** Whether a paused target was resumed, is paused for another reason, or has messages that could not move on and now may. */
function isToConfigure({ revision }: Target, plan: DeliveryPlan): boolean {
  return plan.state !== 'paused' || plan.setting.movesOn !== 'nobody' || plan.setting.revision !== revision;
}
