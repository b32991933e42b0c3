import { setTimeout as pause } from 'node:timers/promises';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import type { CancelResult, DeliveryStatus } from '../shard/messages.ts';
import { recordKey } from '../shard/record-key.ts';
import { list, text } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { RedisMessageReader } from './message-reader.ts';

const cancelScript = new ShardScript(new URL('./cancel.lua', import.meta.url));
const findScript = new ShardScript(new URL('./find-entries.lua', import.meta.url));

/** Messages per script call: Redis serves others between two calls. */
const messagesPerCall = 50;
const entriesPerCall = 1000;
/** Maximum searches for a message: it may move during a search. */
const maxRounds = 5;
const roundPauseMs = 50;
/** Longest time of looking through long lanes. */
const longestSearchMs = 5000;
const maxNameLength = 128;
/** As no message ends that is cancelled. */
const endedOtherwise: ReadonlySet<DeliveryStatus> = new Set(['delivered', 'failed', 'filtered', 'schema_failed', 'transform_failed']);

interface Options {
  redis: RedisClient;
  prefix: string;
  /** How many there are. */
  shards?: () => number;
}

/** A message that waits in a lane whose entry is not known. */
interface Sought {
  id: string;
  shard: number;
  lanes: string[];
}

/** Result of `cancel.lua` for a message: a result, or where to search for it. */
type StepResult = CancelResult | { lanes: string[] };

/**
 * Cancels messages in steps of one shard each. A message in a lane is found by its stored entry, if it expires, or near its last stamp. Where neither leads to
 * the entry, a search reads the lane from its newest entry on, in pieces and for all messages of the lane at once.
 *
 * Throws UNAVAILABLE when Redis does not answer; a part may be done then, and all of it may be repeated.
 */
export class RedisMessageCanceller {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #reader: RedisMessageReader;

  constructor({ redis, prefix, shards = () => 1 }: Options) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#reader = new RedisMessageReader({ redis, prefix, shards });
  }

  /** At most 100 messages; `by`: name of who cancels. Has a result for each. */
  async cancel(org: string, ids: readonly string[], by: string): Promise<Map<string, CancelResult>> {
    const who = by.replace(/\s+/g, ' ').slice(0, maxNameLength);
    const results = new Map<string, CancelResult>();
    const untilMs = performance.now() + longestSearchMs;
    let open: readonly string[] = [...new Set(ids)];
    for (let round = 0; open.length > 0 && round < maxRounds; round++) {
      if (round > 0) await pause(roundPauseMs);
      const located = await this.#reader.located(org, open);
      for (const id of open) results.set(id, atFirst(located.get(id)?.view.status));
      const byShard = Map.groupBy(
        [...located].filter(([id]) => results.get(id) === 'moving'),
        ([, { shard }]) => shard,
      );
      await Promise.all(
        [...byShard].map(async ([shard, found]) => {
          const keys = found.map(([id]) => id);
          for (const [id, result] of await this.#cancelIn(org, shard, keys, { who, untilMs })) results.set(id, result);
        }),
      );
      open = open.filter((id) => results.get(id) === 'moving');
    }
    return results;
  }

  /** By the clock of message creation, in milliseconds since the epoch. */
  async now(): Promise<number> {
    const [seconds, microseconds] = await this.#redis.time().catch(throwUnavailable);
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  /** Cancels messages that are in the shard. */
  async #cancelIn(
    org: string,
    shard: number,
    ids: readonly string[],
    { who, untilMs }: { who: string; untilMs: number },
  ): Promise<Map<string, CancelResult>> {
    const results = await this.#run(org, shard, ids, { who, places: new Map() });
    const sought = [...results].flatMap(([id, each]): Sought[] => (typeof each === 'object' ? [{ id, shard, lanes: each.lanes }] : []));
    if (sought.length > 0) {
      const places = await this.#find(shard, sought, untilMs);
      for (const [id, each] of await this.#run(org, shard, [...places.keys()], { who, places })) results.set(id, each);
    }
    return new Map([...results].map(([id, each]) => [id, typeof each === 'object' ? 'moving' : each]));
  }

  async #run(
    org: string,
    shard: number,
    ids: readonly string[],
    { who, places }: { who: string; places: ReadonlyMap<string, string> },
  ): Promise<Map<string, StepResult>> {
    const results = new Map<string, StepResult>();
    for (let first = 0; first < ids.length; first += messagesPerCall) {
      const some = ids.slice(first, first + messagesPerCall);
      const messages = some.map((id) => ({ id: recordKey(id, shard) ?? '', place: places.get(id) ?? '' }));
      const reply = await cancelScript
        .run(this.#redis, shardKeys(this.#prefix, shard).declared, [namedArgument({ org, who, messages })])
        .catch(throwUnavailable);
      for (const [i, each] of list(reply).entries()) results.set(some[i] ?? '', resultOf(text(each)));
    }
    return results;
  }

  /** `<lane>/<entry>` by message; what is not found by `untilMs` is left out. */
  async #find(shard: number, sought: readonly Sought[], untilMs: number): Promise<Map<string, string>> {
    const places = new Map<string, string>();
    for (const lane of new Set(sought.flatMap(({ lanes }) => lanes))) {
      let before = '+';
      do {
        const open = sought.filter(({ id, lanes }) => lanes.includes(lane) && !places.has(id));
        if (open.length === 0 || performance.now() > untilMs) break;
        const byKey = new Map(open.map(({ id }) => [recordKey(id, shard) ?? '', id]));
        const args = [namedArgument({ lane, before, count: entriesPerCall, messages: [...byKey.keys()] })];
        const [last, ...found] = list(
          await findScript.run(this.#redis, shardKeys(this.#prefix, shard).declared, args).catch(throwUnavailable),
        ).map(text);
        for (let k = 0; k < found.length; k += 2) places.set(byKey.get(found[k] ?? '') ?? '', `${lane}/${found[k + 1] ?? ''}`);
        before = last ?? '';
      } while (before !== '');
    }
    return places;
  }
}

/** `status`: undefined of a message that is not there. */
function atFirst(status: DeliveryStatus | undefined): CancelResult {
  if (status === undefined) return 'not_found';
  return endedOtherwise.has(status) ? 'ended' : 'moving';
}

const resultByReply: ReadonlyMap<string, CancelResult> = new Map([
  ['done', 'cancelled'],
  ['noted', 'cancelling'],
  ['ended', 'ended'],
  // It was there just before.
  ['gone', 'moving'],
  ['moved', 'moving'],
]);

function resultOf(reply: string): StepResult {
  const [, target, hasRetries] = /^seek (\d+)( r)?$/.exec(reply) ?? [];
  if (target !== undefined) return { lanes: hasRetries === undefined ? [target] : [`${target}r`, target] };
  const result = resultByReply.get(reply);
  if (result === undefined) throw new Error(`cancel.lua replied ${reply}`);
  return result;
}
