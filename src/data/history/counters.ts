import type { DestinationCounters, EventCounters } from '../shard/messages.ts';
import type { ShardReader } from '../shard/shard-reader.ts';

/**
 * Reads what `../shard/includes/count.lua` has counted since an object was made. Keys of one read, such as for the rows of a
 * page, is one command per shard.
 */
export class CounterReader {
  readonly #shards: () => readonly ShardReader[];
  readonly #gathering = new Map<string, { ids: Set<string>; answer: Promise<ReadonlyMap<string, number[][]>> }>();

  constructor(shards: () => readonly ShardReader[]) {
    this.#shards = shards;
  }

  async destination(org: string, id: string): Promise<DestinationCounters> {
    const sum = { deliveries: 0, successes: 0, latencyMs: 0, attempts: 0, lastMs: 0 };
    for (const [deliveries = 0, successes = 0, latencyMs = 0, lastMs = 0, attempts = 0] of await this.#of(org, id)) {
      sum.deliveries += deliveries;
      sum.successes += successes;
      sum.latencyMs += latencyMs;
      sum.attempts += attempts;
      sum.lastMs = Math.max(sum.lastMs, lastMs);
    }
    return {
      deliveries: sum.deliveries,
      successes: sum.successes,
      averageLatencyMs: sum.attempts === 0 ? null : sum.latencyMs / sum.attempts,
      lastDeliveryAtMs: sum.lastMs === 0 ? null : sum.lastMs,
    };
  }

  async events(org: string, id: string): Promise<EventCounters> {
    const counted = await this.#of(org, id);
    const lastMs = Math.max(0, ...counted.map(([, ms = 0]) => ms));
    return { events: counted.reduce((sum, [events = 0]) => sum + events, 0), lastEventAtMs: lastMs === 0 ? null : lastMs };
  }

  /** The current numbers of each shard that has any. */
  async #of(org: string, id: string): Promise<readonly number[][]> {
    const gathered = this.#gathering.get(org) ?? this.#gather(org);
    gathered.ids.add(id);
    return (await gathered.answer).get(id) ?? [];
  }

  #gather(org: string) {
    const ids = new Set<string>();
    const answer = Promise.resolve().then(() => {
      this.#gathering.delete(org);
      return this.#read(org, [...ids]);
    });
    const gathered = { ids, answer };
    this.#gathering.set(org, gathered);
    return gathered;
  }

  async #read(org: string, ids: readonly string[]): Promise<ReadonlyMap<string, number[][]>> {
    const shards = await Promise.all(this.#shards().map((shard) => shard.counters(org, ids)));
    return new Map(ids.map((id, i) => [id, shards.map((counters) => counters[i] ?? []).filter(({ length }) => length > 0)]));
  }
}
