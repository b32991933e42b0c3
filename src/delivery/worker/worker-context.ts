import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RecentOrganizations } from '../../core/recent-organizations.ts';
import type { RedisBackoffs } from '../loops/redis-backoff.ts';
import { Wakeup } from '../loops/wakeup.ts';
import type { DeliveryMetrics } from '../metrics.ts';
import type { SlotShares } from './slot-shares.ts';

export interface WorkerContextOptions {
  /** Id of the worker. */
  id: string;
  /** Attempts at the same time. */
  slots: number;
  shares: SlotShares;
  /** Whose jobs were taken, by account. */
  organizations: RecentOrganizations;
  clock: Clock;
  logger: Logger;
  metrics: DeliveryMetrics;
  backoffs: RedisBackoffs;
  retention: { finishedMs: number; deadLettersMs: number };
}

/** State that all parts of one worker share. It is made before them; a part writes here what others need. */
export class WorkerContext {
  readonly id: string;
  readonly slots: number;
  readonly shares: SlotShares;
  readonly organizations: RecentOrganizations;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: DeliveryMetrics;
  readonly backoffs: RedisBackoffs;
  readonly retention: { finishedMs: number; deadLettersMs: number };
  /** Signalled when a take may make sense in some shard, or an attempt has ended. */
  readonly wakeup = new Wakeup();
  /** Slots of all living workers of the pool, by the last heartbeat. */
  totalSlots: number;
  #maintainAllAtMs = Number.NEGATIVE_INFINITY;

  constructor({ id, slots, shares, organizations, clock, logger, metrics, backoffs, retention }: WorkerContextOptions) {
    this.id = id;
    this.slots = slots;
    this.totalSlots = slots;
    this.shares = shares;
    this.organizations = organizations;
    this.clock = clock;
    this.logger = logger;
    this.metrics = metrics;
    this.backoffs = backoffs;
    this.retention = retention;
  }

  /** Has every shard looked at within seconds, although nothing happens there. */
  maintainAllSoon(): void {
    this.#maintainAllAtMs = this.clock.now();
  }

  get maintainAllAtMs(): number {
    return this.#maintainAllAtMs;
  }
}
