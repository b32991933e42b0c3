import { isPosthornError } from '../../core/errors.ts';
import { RedisFullError } from '../../core/redis-full-error.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { type ReplayOutcome, replayId, replayMessages, replaysPerCall, type TargetObstacle } from '../history/replay-messages.ts';
import type { ByteShares } from '../queue/byte-shares.ts';
import { isCoolingDown } from '../queue/circuits.ts';
import type { OutboxCarrier } from '../queue/outbox-carrier.ts';
import { homeShard } from '../shard/record-key.ts';
import { copyIds } from './event-originals.ts';
import { EventQueueing, type EventQueueingOptions } from './event-queueing.ts';
import type { ReplayCandidates } from './replay-candidates.ts';
import type { ReplayState } from './replay-state.ts';

/** That are waiting at one target, whichever replay they are of. */
export const maxWaitingAtTarget = 200;

export interface ReplayQueueingOptions extends EventQueueingOptions {
  redis: RedisClient;
  prefix: string;
  candidates: ReplayCandidates;
  shares: Pick<ByteShares, 'refuseOver'>;
  /** Carries what goes to other shards. */
  carrier: Pick<OutboxCarrier, 'carry'>;
}

/** State of the destination to which a replay sends all. */
export interface OtherDestination {
  shard: number;
  isEnabled: boolean;
  /** Its messages go out in order: nothing is replayed to it. */
  isOrdered: boolean;
  /** Whether messages of the route are sent; those of one that is gone end at once. */
  isRouteEnabled: (routeId: string) => Promise<boolean>;
}

/** Why a replay waits. */
export type Waiting = Pick<NonNullable<ReplayState['waiting']>, 'reason' | 'message'>;

/** Queues the new messages of replays. */
export class ReplayQueueing {
  readonly #options: ReplayQueueingOptions;
  readonly #events: EventQueueing;

  constructor(options: ReplayQueueingOptions) {
    this.#options = options;
    this.#events = new EventQueueing(options);
  }

  /**
   * The outcome of each; those without one are to be tried again. `obstacle`: why they cannot be queued. Rejects with UNAVAILABLE when none has
   * one.
   */
  async replay(
    record: ReplayRecord,
    idTimeMs: number,
    ids: readonly string[],
    other: OtherDestination | null | undefined,
  ): Promise<{ outcomes: Map<string, ReplayOutcome>; obstacle: Waiting | null }> {
    if (other?.isOrdered === true) return { outcomes: new Map(ids.map((id) => [id, 'ordered'])), obstacle: null };
    const outcomes = new Map<string, ReplayOutcome>();
    try {
      const obstacle = await this.#obstacleElsewhere(record, ids, other);
      if (obstacle !== null) return { outcomes, obstacle };
      if (record.what === 'events') await this.#events.replayInto(outcomes, record, idTimeMs, ids);
      else await this.#replayInto(outcomes, record, idTimeMs, ids, other?.shard);
    } catch (error) {
      if (isPosthornError(error, 'QUEUE_FULL')) return { outcomes, obstacle: { reason: 'QueueFull', message: `${error.message}.` } };
      if (error instanceof RedisFullError) return { outcomes, obstacle: { reason: 'RedisFull', message: `${error.message}.` } };
      if (outcomes.size === 0) throw error;
    }
    return { outcomes, obstacle: null };
  }

  async #replayInto(
    outcomes: Map<string, ReplayOutcome>,
    record: ReplayRecord,
    idTimeMs: number,
    ids: readonly string[],
    otherShard: number | undefined,
  ): Promise<void> {
    const { shares, carrier } = this.#options;
    const { destinationId } = record;
    const elsewhere = destinationId === undefined || otherShard === undefined ? undefined : { destinationId, shard: otherShard };
    const byShard = Map.groupBy(ids, (id) => homeShard(id) ?? 0);
    await shares.refuseOver(record.org, [...byShard.keys()]);
    const done = await Promise.allSettled(
      [...byShard].map(async ([shard, group]) => {
        for (let first = 0; first < group.length; first += replaysPerCall) {
          const some = group.slice(first, first + replaysPerCall);
          const pairs = some.map((id) => ({ id, newId: newIdOf(record, idTimeMs, id) }));
          const each = await replayMessages(this.#options, shard, pairs, { maxWaiting: maxWaitingAtTarget, elsewhere });
          for (const [i, id] of some.entries()) outcomes.set(id, each[i] ?? 'gone');
        }
        if (elsewhere !== undefined) await carrier.carry(shard);
      }),
    );
    for (const each of done) if (each.status === 'rejected') throw each.reason;
  }

  /** Why the other destination takes nothing now; null: it does, or there is none. */
  async #obstacleElsewhere(
    record: ReplayRecord,
    ids: readonly string[],
    elsewhere: OtherDestination | null | undefined,
  ): Promise<Waiting | null> {
    const { candidates, circuits, clock } = this.#options;
    const { org, destinationId } = record;
    if (destinationId === undefined) return null;
    if (elsewhere == null) return { reason: 'TargetDisabled', message: `Destination ${destinationId} does not exist.` };
    if (!elsewhere.isEnabled) return { reason: 'TargetDisabled', message: `Destination ${destinationId} is disabled.` };
    const views = await candidates.views(record, ids);
    for (const routeId of new Set([...views.values()].map((view) => view.routeId))) {
      if (!(await elsewhere.isRouteEnabled(routeId))) return { reason: 'TargetDisabled', message: `Route ${routeId} is disabled.` };
      const circuit = await circuits.ofTarget(elsewhere.shard, org, { routeId, destinationId });
      if (isCoolingDown(circuit, clock.now()))
        return { reason: 'CircuitOpen', message: `The circuit of destination ${destinationId} of ${routeId} is not closed.` };
    }
    return null;
  }
}

/** The id of the message by which a replay sends an original again. */
export function newIdOf(record: Pick<ReplayRecord, 'identity' | 'what'>, idTimeMs: number, original: string): string {
  if (record.what === 'events') return copyIds(record, idTimeMs, original).messageId;
  return replayId({ id: record.identity, beganAtMs: idTimeMs }, original);
}

export function isObstacle(outcome: ReplayOutcome | undefined): outcome is TargetObstacle {
  return outcome === 'disabled' || outcome === 'circuit' || outcome === 'target_full';
}
