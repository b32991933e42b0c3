import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { type ReplayOutcome, replayId, replayMessages, type TargetObstacle } from '../history/replay-messages.ts';
import type { ByteShares } from '../queue/byte-shares.ts';
import type { Circuits } from '../queue/circuits.ts';
import type { OutboxCarrier } from '../queue/outbox-carrier.ts';
import { homeShard } from '../shard/record-key.ts';
import type { ReplayCandidates } from './replay-candidates.ts';
import type { ReplayState } from './replay-state.ts';

/** That are waiting at one target, whichever replay they are of. */
export const maxWaitingAtTarget = 200;

export interface ReplayQueueingOptions {
  redis: RedisClient;
  prefix: string;
  candidates: ReplayCandidates;
  shares: Pick<ByteShares, 'refuseOver'>;
  circuits: Pick<Circuits, 'ofTarget'>;
  /** Carries what goes to other shards. */
  carrier: Pick<OutboxCarrier, 'carry'>;
  clock: Clock;
}

/** What is known of the destination to which a replay sends all. */
export interface OtherDestination {
  shard: number;
  isEnabled: boolean;
}

/** Why a replay waits. */
export type Waiting = Pick<NonNullable<ReplayState['waiting']>, 'reason' | 'message'>;

/** Queues the new messages of replays. */
export class ReplayQueueing {
  readonly #options: ReplayQueueingOptions;

  constructor(options: ReplayQueueingOptions) {
    this.#options = options;
  }

  /** What becomes of each, or why there is no room for any. */
  async replay(
    record: ReplayRecord,
    beganAtMs: number,
    ids: readonly string[],
    other: OtherDestination | null | undefined,
  ): Promise<Map<string, ReplayOutcome> | Waiting> {
    const obstacle = await this.#obstacleElsewhere(record, ids, other);
    if (obstacle !== null) return obstacle;
    const { shares, carrier } = this.#options;
    const { destinationId } = record;
    const elsewhere = destinationId === undefined || other == null ? undefined : { destinationId, shard: other.shard };
    const byShard = Map.groupBy(ids, (id) => homeShard(id) ?? 0);
    try {
      await shares.refuseOver(record.org, [...byShard.keys()]);
      const outcomes = await Promise.all(
        [...byShard].map(async ([shard, group]) => {
          const pairs = group.map((id) => ({ id, newId: newIdOf(record, beganAtMs, id) }));
          const each = await replayMessages(this.#options, shard, pairs, { maxWaiting: maxWaitingAtTarget, elsewhere });
          if (elsewhere !== undefined) await carrier.carry(shard);
          return group.map((id, i) => [id, each[i] ?? 'gone'] as const);
        }),
      );
      return new Map(outcomes.flat());
    } catch (error) {
      if (isPosthornError(error, 'QUEUE_FULL')) return { reason: 'QueueFull', message: `${error.message}.` };
      if (isPosthornError(error, 'UNAVAILABLE') && error.retryAfterSeconds !== undefined)
        return { reason: 'RedisFull', message: `${error.message}.` };
      throw error;
    }
  }

  /** Why the other destination takes nothing now; null: it does, or there is none. */
  async #obstacleElsewhere(
    record: ReplayRecord,
    [first]: readonly string[],
    elsewhere: OtherDestination | null | undefined,
  ): Promise<Waiting | null> {
    const { candidates, circuits, clock } = this.#options;
    const { org, destinationId } = record;
    if (destinationId === undefined || first === undefined) return null;
    if (elsewhere == null) return { reason: 'TargetDisabled', message: `Destination ${destinationId} does not exist.` };
    if (!elsewhere.isEnabled) return { reason: 'TargetDisabled', message: `Destination ${destinationId} is disabled.` };
    const view = (await candidates.views(record, [first])).get(first);
    const circuit = view && (await circuits.ofTarget(elsewhere.shard, org, { routeId: view.routeId, destinationId }));
    if (circuit?.state !== 'open' || (circuit.cooldownEndsAtMs ?? 0) <= clock.now()) return null;
    return { reason: 'CircuitOpen', message: `The circuit of destination ${destinationId} of ${circuit.routeId} is not closed.` };
  }
}

/** The id of the message by which a replay sends an original again. */
export function newIdOf({ identity }: Pick<ReplayRecord, 'identity'>, beganAtMs: number, original: string): string {
  return replayId({ id: identity, beganAtMs }, original);
}

export function isObstacle(outcome: ReplayOutcome | undefined): outcome is TargetObstacle {
  return outcome === 'disabled' || outcome === 'circuit' || outcome === 'target_full';
}
