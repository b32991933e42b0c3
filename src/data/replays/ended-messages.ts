import type { Clock } from '../../core/clock.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import type { DeliveryView, MessageEnd } from '../shard/messages.ts';
import type { KnownReplay, RedisReplayRuns } from './redis-replay-runs.ts';
import type { ReplayCandidates } from './replay-candidates.ts';
import type { Waiting } from './replay-queueing.ts';
import type { ReplayState } from './replay-state.ts';
import { waitOfQueued } from './replay-waits.ts';

/** Most messages of one replay that are queued and have not ended. */
const maxOpen = 10_000;
/** The same of one whose messages share the lane of fresh messages with live traffic. */
const maxOpenInFreshLane = 50;
const defaultLookEveryMs = 200;

interface EndedMessagesOptions {
  runs: Pick<RedisReplayRuns, 'open'>;
  candidates: Pick<ReplayCandidates, 'views' | 'ends'>;
  clock: Clock;
  /** Interval of checks for ended messages; default 200. */
  lookEveryMs?: number;
}

/** The result of a check. */
interface Look {
  /** With the ends counted. */
  state: ReplayState;
  /** Ids of the messages that have ended. */
  ended: string[];
  /** Why none of the others is sent now; absent: not all of them were read, or not all is queued. */
  held?: Waiting | null;
  /** The next look is due then. */
  lookInMs?: number;
}

/** Searches for messages of replays that have ended. */
export class EndedMessages {
  readonly #options: EndedMessagesOptions;
  /** By identity: cursor of the next search and time of the last one. */
  readonly #looks = new Map<string, { cursor: string; atMs: number }>();

  constructor(options: EndedMessagesOptions) {
    this.#options = options;
  }

  forget(identity: string): void {
    this.#looks.delete(identity);
  }

  /** Counts messages that have ended since the last look. */
  async see(record: ReplayRecord, { state, open }: KnownReplay): Promise<Look> {
    const { runs, clock, lookEveryMs = defaultLookEveryMs } = this.#options;
    const { cursor, atMs } = this.#looks.get(record.identity) ?? { cursor: '0', atMs: Number.NEGATIVE_INFINITY };
    if (open === 0) return { state, ended: [] };
    // A check of few messages costs little, and few may be queued before it.
    const lookInMs = atMs - clock.now() + (maxOpenOf(record) === maxOpen ? lookEveryMs : lookEveryMs / 4);
    if (lookInMs > 0) return { state, ended: [], lookInMs };
    const { next, ids } = await runs.open(record.org, record.identity, cursor);
    const areAll = cursor === '0' && next === '0';
    // The reasons of waits are read once all is queued and all are checked. The ends alone cost far less to read.
    const { ends, others } = areAll && state.queuedAtMs !== null ? await this.#views(record, ids) : await this.#ends(ids);
    const seen = { ...state };
    for (const end of ends.values()) {
      if (end?.status === 'delivered') seen.delivered++;
      else if (end === null || end.status === 'filtered' || end.deadLetterReason === 'cancelled') seen.endedOtherwise++;
      else seen.failed++;
    }
    const ended = [...ends.keys()];
    // A set with more pages is read on at once, as long as that is of use.
    const isToGoOn = next !== '0' && ended.length > 0;
    this.#looks.set(record.identity, { cursor: next, atMs: isToGoOn ? Number.NEGATIVE_INFINITY : clock.now() });
    return { state: seen, ended, ...(others !== null && { held: waitOfQueued(others) }) };
  }

  async #ends(ids: readonly string[]): Promise<{ ends: Map<string, MessageEnd | null>; others: null }> {
    return { ends: await this.#options.candidates.ends(ids), others: null };
  }

  /** Reads whole records. Returns the ends, and in `others` the messages that have not ended. */
  async #views(record: ReplayRecord, ids: readonly string[]): Promise<{ ends: Map<string, MessageEnd | null>; others: DeliveryView[] }> {
    const views = await this.#options.candidates.views(record, ids);
    const others = [...views.values()].filter(({ completedAtMs }) => completedAtMs === null);
    const open = new Set(others.map(({ id }) => id));
    const ends = new Map(ids.filter((id) => !open.has(id)).map((id) => [id, views.get(id) ?? null]));
    return { ends, others };
  }
}

/** How many messages of the replay may be queued and not ended. */
export function maxOpenOf({ destinationId, what }: Pick<ReplayRecord, 'destinationId' | 'what'>): number {
  return destinationId === undefined && what !== 'events' ? maxOpen : maxOpenInFreshLane;
}
