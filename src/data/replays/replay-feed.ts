import type { Clock } from '../../core/clock.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { shardOf } from '../../core/shard-of.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { type ReplayRow, replayRowFields } from '../feed/feed-row.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { skippedCount } from './replay-run.ts';
import type { ReplayState } from './replay-state.ts';

const feedScript = new ShardScript(new URL('./replay-feed.lua', import.meta.url));

/** Between two rows of a replay in the same phase. */
const minBetweenMs = 1000;

export interface ReplayFeedOptions {
  redis: RedisClient;
  prefix: string;
  /** How many there are. */
  shards: number;
  clock: Clock;
}

/**
 * The rows of replays in the live feed. The state of a replay is in the slot of its organization, and feeds are in shards: a row is written after the state was
 * stored, to the shard that belongs to the id of the replay. What cannot be written is left out.
 */
export class ReplayFeed {
  readonly #options: ReplayFeedOptions;
  /** By identity: the last row, whether or not a client watched. */
  readonly #told = new Map<string, { status: ReplayRow['status']; text: string; atMs: number }>();

  constructor(options: ReplayFeedOptions) {
    this.#options = options;
  }

  /** Forgets the last row of a replay that has ended. */
  forget(identity: string): void {
    this.#told.delete(identity);
  }

  /** Reports the stored state of a replay, if it is new: a new phase at once, anything else a second after the last row. The latter is left to the next call. */
  async publish(
    replay: Pick<ReplayRecord, 'org' | 'identity'> & Partial<Pick<ReplayRecord, 'isSuspended'>>,
    state: ReplayState,
  ): Promise<void> {
    const { redis, prefix, shards, clock } = this.#options;
    const { org, identity } = replay;
    const status = state.endedAtMs === null && replay.isSuspended === true ? 'Suspended' : state.phase;
    const fields = replayRowFields(rowOf(org, status, state));
    const text = fields.join(' ');
    const told = this.#told.get(identity);
    const atMs = clock.now();
    if (told?.text === text || (told?.status === status && atMs - told.atMs < minBetweenMs)) return;
    this.#told.set(identity, { status, text, atMs });
    const { declared } = shardKeys(prefix, shardOf(state.id, shards));
    await feedScript.run(redis, declared, fields).catch(() => undefined);
  }
}

function rowOf(org: string, status: ReplayRow['status'], state: ReplayState): Parameters<typeof replayRowFields>[0] {
  const { id, plan, queued, delivered, failed, endedOtherwise, waiting, failure } = state;
  const reason = status === 'Suspended' ? null : (waiting?.reason ?? failure?.reason ?? null);
  return {
    org,
    status,
    replayId: id,
    candidates: plan.candidates,
    queued,
    skipped: skippedCount(state.skipped),
    delivered,
    failed,
    endedOtherwise,
    reason,
  };
}
