import { mkdtempSync, rmSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { workerKeys } from '../../src/data/membership/worker-directory.ts';
import { hashFields } from '../../src/data/shard/hash-fields.ts';
import { recordId } from '../../src/data/shard/record-key.ts';
import { shardBase } from '../../src/data/shard/shard-keys.ts';
import type { RedisClient } from '../../src/redis/connection.ts';
import { eventually } from '../../test/support/eventually.ts';
import { startRedis } from '../../test/support/redis.ts';
import type { Sink } from '../bench/lib/sink.ts';

/** A request of a worker that is dead has arrived by then; the worker's leases are requeued later. */
const longestWayMs = 5000;
const pageSize = 5000;

/** State of Redis and of the receivers at a kill, or when workers are cut off, for the messages that it may cause to arrive once more. */
interface Kill {
  /** Events sent before it. */
  sent: number;
  hasNoOutcome: (messageId: string) => boolean;
  receivedByMs: number;
}

/** Determines which deliveries were in flight at the kills of workers and of Redis: requests received whose outcome Redis lacks. */
export class InFlight {
  readonly #prefix: string;
  readonly #shards: readonly number[];
  readonly #kills: Kill[] = [];
  readonly #others = new Set<string>();
  /** In the order in which they came, which is that in which they are killed. */
  readonly #workers: string[] = [];
  #killedWorkers = 0;
  /** When each message came for the first time. */
  readonly #receivedAtMs = new Map<string, number>();

  constructor({ prefix, shards }: { prefix: string; shards: number }) {
    this.#prefix = prefix;
    this.#shards = Array.from({ length: shards }, (_, shard) => shard);
  }

  received(messageId: string): void {
    if (!this.#receivedAtMs.has(messageId)) this.#receivedAtMs.set(messageId, performance.now());
  }

  /** To be called before the first worker comes: who is there already is none of them. */
  async begin(redis: RedisClient): Promise<void> {
    for (const worker of await redis.zrange(workerKeys(this.#prefix).alive, '0', '-1')) this.#others.add(worker);
  }

  /** Waits until so many workers have come since the beginning, the last of them alone: by that it is known which is which. */
  async workersCame(redis: RedisClient, count: number): Promise<void> {
    await eventually('the worker to come', 60_000, async () => {
      const alive = await redis.zrange(workerKeys(this.#prefix).alive, '0', '-1').catch(() => []);
      this.#workers.push(...alive.filter((worker) => !this.#others.has(worker) && !this.#workers.includes(worker)));
      return this.#workers.length >= count;
    });
  }

  /** To be called when the oldest worker has been killed: what it held has no outcome. */
  async workerKilled(redis: RedisClient, sent: number): Promise<void> {
    const worker = this.#workers[this.#killedWorkers++];
    const held = worker === undefined ? new Set() : await this.#heldBy([worker], redis);
    this.#kills.push({ sent, hasNoOutcome: (id) => held.has(id), receivedByMs: performance.now() + longestWayMs });
  }

  /** `disturb`: workers cannot reach Redis meanwhile, so their leases before or after it may be requeued like those of a dead one. */
  async workersCutOff(redis: RedisClient, sent: () => number, disturb: () => Promise<void>): Promise<void> {
    const held = new Set<string>();
    const look = (): Promise<boolean> =>
      eventually('what workers hold', 60_000, async () => {
        const killed = this.#workers.slice(0, this.#killedWorkers);
        const alive = await redis.zrange(workerKeys(this.#prefix).alive, '0', '-1');
        for (const id of await this.#heldBy(
          alive.filter((worker) => !killed.includes(worker)),
          redis,
        ))
          held.add(id);
        return true;
      });
    await Promise.all([look(), disturb()]);
    await look();
    this.#kills.push({ sent: sent(), hasNoOutcome: (id) => held.has(id), receivedByMs: performance.now() + longestWayMs });
  }

  async #heldBy(workers: readonly string[], redis: RedisClient): Promise<Set<string>> {
    const held = new Set<string>();
    for (const worker of workers)
      for (const shard of this.#shards)
        for (const key of await redis.hvals(`${shardBase(this.#prefix, shard)}held:${worker}`)) held.add(recordId('msg_', shard, key));
    return held;
  }

  /** To be called while Redis is down; `start` starts it. What its disk does not show as ended has no outcome. */
  async redisKilled(directory: string, sent: number, start: () => Promise<void>): Promise<void> {
    const copy = mkdtempSync(join(tmpdir(), 'posthorn-copy-'));
    // Not at once: senders and receivers are this process.
    await cp(directory, copy, { recursive: true });
    const back = start().then(() => performance.now());
    const [ended, receivedByMs] = await Promise.all([this.#endedOnDisk(copy), back]);
    rmSync(copy, { recursive: true });
    this.#kills.push({ sent, hasNoOutcome: (id) => !ended.has(id), receivedByMs });
  }

  /**
   * `inFlight`: deliveries in flight, for each kill; `repeated`: arrivals beyond the first; `unexplained`: those of them of messages that had an
   * outcome at every kill but as many as explain the others.
   */
  count(sinks: readonly Sink[]): { inFlight: number; repeated: number; unexplained: number } {
    const counts = { inFlight: 0, repeated: 0, unexplained: 0 };
    for (const { arrivals, webhookIds } of sinks) {
      for (const [number, times] of arrivals) {
        const ids = [...(webhookIds.get(number) ?? [])];
        const kills = this.#kills.filter(({ sent, hasNoOutcome }) => number < sent && ids.some(hasNoOutcome));
        const receivedAtMs = Math.min(...ids.map((id) => this.#receivedAtMs.get(id) ?? Number.POSITIVE_INFINITY));
        counts.inFlight += kills.filter(({ receivedByMs }) => receivedAtMs <= receivedByMs).length;
        counts.repeated += times - 1;
        counts.unexplained += Math.max(0, times - 1 - kills.length);
      }
    }
    return counts;
  }

  async #endedOnDisk(directory: string): Promise<Set<string>> {
    const ended = new Set<string>();
    const { client, stop } = await startRedis(['--dir', directory, '--save', '', '--appendonly', 'yes']);
    try {
      for (const shard of this.#shards) {
        for (const history of ['fin', 'dead']) {
          for (let from = '-'; from !== ''; ) {
            const entries = await client.xrange(`${shardBase(this.#prefix, shard)}${history}`, from, '+', 'COUNT', pageSize);
            for (const [, [kind, key = '']] of entries) if (kind === hashFields.entry.message) ended.add(recordId('msg_', shard, key));
            from = entries.length < pageSize ? '' : `(${entries.at(-1)?.[0]}`;
          }
        }
      }
    } finally {
      await stop();
    }
    return ended;
  }
}
