import type { Clock } from '../core/clock.ts';
import { PosthornError } from '../core/errors.ts';
import { newTimedId } from '../core/ids.ts';
import type { RedisClient } from '../redis/connection.ts';
import { Script } from '../redis/script.ts';
import { redisUnavailable, throwUnavailable } from '../redis/unavailable.ts';
import { RedisMessageReader } from './message-reader.ts';
import { deadLetterReasons } from './message-view.ts';
import type { DeadLetterStats, DeliveryStatus, MessageReplayer } from './messages.ts';
import { homeShard, recordKey } from './record-key.ts';
import { shardKeys } from './shard-keys.ts';

const replayScript = new Script(new URL('./scripts/replay.lua', import.meta.url));
const archiveScript = new Script(new URL('./scripts/archive.lua', import.meta.url));
const ended: ReadonlySet<DeliveryStatus> = new Set(['delivered', 'failed', 'transform_failed', 'dlq']);
const betweenAttempts: ReadonlySet<DeliveryStatus> = new Set(['retrying', 'circuit_open']);
const topCount = 10;
const fullRetrySeconds = 10;

export class RedisMessageReplayer implements MessageReplayer {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #shards: () => number;
  readonly #reader: RedisMessageReader;

  /** `shards`: how many there are. */
  constructor({ redis, prefix, clock, shards = () => 1 }: { redis: RedisClient; prefix: string; clock: Clock; shards?: () => number }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#clock = clock;
    this.#shards = shards;
    this.#reader = new RedisMessageReader({ redis, prefix, shards });
  }

  async replay(org: string, id: string, { alsoBetweenAttempts = false }: { alsoBetweenAttempts?: boolean } = {}): Promise<string> {
    const delivery = await this.#reader.delivery(org, id);
    const shard = homeShard(id);
    if (delivery === null || shard === null) throw notFound();
    // What a route has filtered before it came to a destination cannot go anywhere.
    const isFilteredLate = delivery.status === 'filtered' && delivery.destinationId !== null;
    const isBetweenAttempts = alsoBetweenAttempts && delivery.attempts > 0 && betweenAttempts.has(delivery.status);
    if (!ended.has(delivery.status) && !isFilteredLate && !isBetweenAttempts) {
      const why = delivery.completedAtMs === null ? 'only an ended one can be replayed' : 'it never had a destination to be sent to again';
      throw new PosthornError('CONFLICT', `The delivery is ${delivery.status}: ${why}.`);
    }
    const replayed = newTimedId('msg_', shard, this.#clock.now());
    const answer = await this.#run(replayScript, shard, [recordKey(id, shard) ?? '', recordKey(replayed, shard) ?? '', id]);
    if (answer === 'gone') throw notFound();
    if (answer === 'payload') throw new PosthornError('PAYLOAD_NOT_FOUND', 'The payload of the delivery is gone.');
    if (answer === 'full') throw new PosthornError('UNAVAILABLE', 'Redis is nearly full', { retryAfterSeconds: fullRetrySeconds });
    return replayed;
  }

  async archive(org: string, id: string): Promise<void> {
    const place = await this.#reader.placeOf(org, id);
    if (place === null) throw notFound();
    if ((await this.#run(archiveScript, place, [recordKey(id, place) ?? ''])) !== 1)
      throw new PosthornError('CONFLICT', 'The delivery is no dead letter.');
  }

  async deadLetterStats(org: string): Promise<DeadLetterStats> {
    const counts = new Map<string, number>();
    const all = await Promise.all(Array.from({ length: this.#shards() }, (_, shard) => this.#deadLetters(shard, org)));
    for (const [field, count] of all.flat()) counts.set(field, (counts.get(field) ?? 0) + count);
    const byReason: DeadLetterStats['byReason'] = {};
    let total = 0;
    for (const reason of deadLetterReasons) {
      const count = counts.get(`r ${reason}`) ?? 0;
      total += count;
      if (count > 0) byReason[reason] = count;
    }
    const topDestinations = [...counts]
      .filter(([field]) => field.startsWith('d '))
      .map(([field, count]) => ({ destinationId: field.slice(2), count }))
      .sort((one, other) => other.count - one.count || (one.destinationId < other.destinationId ? -1 : 1))
      .slice(0, topCount);
    return { total, byReason, topDestinations };
  }

  async #deadLetters(shard: number, org: string): Promise<[string, number][]> {
    try {
      const stored = await this.#redis.hgetall(shardKeys(this.#prefix, shard).deadLetters(org));
      return Object.entries(stored).map(([field, count]) => [field, Number(count)]);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  async #run(script: Script, shard: number, args: readonly string[]): Promise<unknown> {
    return await script.run(this.#redis, shardKeys(this.#prefix, shard).declared, args).catch(throwUnavailable);
  }
}

function notFound(): PosthornError {
  return new PosthornError('RESOURCE_NOT_FOUND', 'There is no such delivery.');
}
