import { newTimedId } from '../../src/core/ids.ts';
import type { Job, TargetSetting } from '../../src/data/queue/delivery-queue.ts';
import { OutboxCarrier } from '../../src/data/queue/outbox-carrier.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { hashFields } from '../../src/data/shard/hash-fields.ts';
import type { RedisClient } from '../../src/redis/connection.ts';
import { acceptOnly } from './accept-only.ts';
import { newEvent } from './new-event.ts';
import { takeFrom } from './queue-worker.ts';
import { targetSetting } from './target-setting.ts';

/** The worker `w1` on the queues of some shards, with messages of the route `rte_a` that fail over between them. */
export class FailoverQueues {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #queues: readonly RedisDeliveryQueue[];
  readonly #carrier: OutboxCarrier;

  constructor(redis: RedisClient, prefix: string, shards: number) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#queues = Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ redis, prefix, shard, tallyMs: 0 }));
    this.#carrier = new OutboxCarrier({ redis, prefix });
  }

  async begin(): Promise<void> {
    await this.#redis.flushall();
    for (const queue of this.#queues) await queue.refreshShard('w1', 1000);
  }

  of(shard: number): RedisDeliveryQueue {
    const queue = this.#queues[shard];
    if (queue === undefined) throw new Error(`there is no shard ${shard}`);
    return queue;
  }

  base(shard: number): string {
    return `${this.#prefix}{s${shard}}:`;
  }

  /** Accepts an event; returns the id of its only message. */
  async send(destinationId: string, shard: number): Promise<string> {
    const [messageId = ''] = await this.sendToAll([destinationId], shard);
    return messageId;
  }

  /** Accepts an event; returns the ids of its messages. */
  async sendToAll(destinationIds: readonly string[], shard: number): Promise<string[]> {
    const targets = destinationIds.map((destinationId) => {
      return { messageId: newTimedId('msg_', shard, Date.now()), routeId: 'rte_a', destinationId, shard, maxAttempts: 3 };
    });
    await acceptOnly(this.#redis, this.#prefix, newEvent({ id: newTimedId('evt_', shard, Date.now()), targets }));
    return targets.map(({ messageId }) => messageId);
  }

  take(shard: number, setting: Partial<TargetSetting> = {}): Promise<Job[]> {
    return takeFrom(this.of(shard), 'w1', 64, setting);
  }

  /** As a change of the destination, or of the route, does it: with the end of the waits for the next attempt. */
  async put(shard: number, destinationId: string, setting: Partial<TargetSetting>): Promise<void> {
    const { targets } = await this.of(shard).targets(1);
    for (const target of targets.filter((each) => each.destinationId === destinationId)) {
      if (!(await this.of(shard).configure(target, targetSetting(setting))).hasRetries) continue;
      for (let next: string | null = '0'; next !== null; ) ({ next } = await this.of(shard).endWaits([target], next));
    }
  }

  /** Opens the circuit for an hour, or closes it. */
  async setCircuit(shard: number, destinationId: string, state: 'open' | 'closed'): Promise<void> {
    const n = (await this.#redis.hget(`${this.base(shard)}tn:org_a`, `rte_a ${destinationId}`)) ?? '';
    const { circuitState, cooldownEndMs, outageBeganMs } = hashFields.target;
    if (state === 'closed') {
      await this.#redis.srem(`${this.base(shard)}broken`, n);
      return void (await this.#redis.hdel(`${this.base(shard)}t:${n}`, circuitState, cooldownEndMs, outageBeganMs));
    }
    await this.#redis.sadd(`${this.base(shard)}broken`, n);
    const endMs = Date.now() + 3_600_000;
    await this.#redis.hset(`${this.base(shard)}t:${n}`, { [circuitState]: 'o', [cooldownEndMs]: endMs, [outageBeganMs]: Date.now() });
    await this.#redis.zadd(`${this.base(shard)}waiting`, endMs, `!${n}`);
  }

  carry(shard: number): Promise<void> {
    return this.#carrier.carry(shard);
  }

  /** What the worker does by itself within some seconds, at each of the shards so often. Returns what it would send. */
  async looks(rounds = 4): Promise<Job[]> {
    const jobs: Job[] = [];
    for (let round = 0; round < rounds; round++) {
      for (const [shard, queue] of this.#queues.entries()) {
        const base = this.base(shard);
        for (const limiter of await this.#redis.zrange(`${base}waiting`, '0', '-1'))
          if (limiter.startsWith('!')) await this.#redis.zadd(`${base}waiting`, 'XX', Date.now() - 1, limiter);
        await queue.promote();
        jobs.push(...(await this.take(shard)));
        while ((await queue.endBatches()).hasEndedBatches);
        await this.carry(shard);
        // A second has passed since it called another shard.
        for (const key of await this.#redis.keys(`${base}asked:*`)) {
          const [entry = ''] = (await this.#redis.get(key))?.split(' ') ?? [];
          await this.#redis.set(key, `${entry} 1`, 'KEEPTTL');
        }
      }
    }
    return jobs;
  }
}
