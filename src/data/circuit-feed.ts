import type { RedisClient } from '../redis/connection.ts';
import { redisUnavailable } from '../redis/unavailable.ts';
import { type CircuitTransition, circuitStateOf } from './circuits.ts';
import { shardKeys } from './shard-keys.ts';

/** How long a read waits for the next transition. */
export const circuitFeedBlockMs = 30_000;
const entriesPerRead = 500;

/** The stream of circuit transitions of one shard, for one reader. Throws UNAVAILABLE when Redis does not answer. */
export class CircuitFeed {
  readonly #blocking: RedisClient;
  readonly #key: string;

  /** `blocking`: a connection of this reader alone; ended by `close`. */
  constructor({ blocking, prefix, shard = 0 }: { blocking: RedisClient; prefix: string; shard?: number }) {
    this.#blocking = blocking;
    this.#key = shardKeys(prefix, shard).circuits;
  }

  /** Position after the newest transition. */
  async head(): Promise<string> {
    try {
      if (this.#blocking.status === 'wait' || this.#blocking.status === 'end') await this.#blocking.connect();
      const [newest] = await this.#blocking.xrevrange(this.#key, '+', '-', 'COUNT', 1);
      return newest?.[0] ?? '0-0';
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /**
   * What came after `position`; waits for it, and answers nothing after `circuitFeedBlockMs`. `isBehind`: there is so much that
   * some of it may have been trimmed before it was read.
   */
  async after(position: string): Promise<{ transitions: CircuitTransition[]; position: string; isBehind: boolean }> {
    try {
      const reply = await this.#blocking.xread('COUNT', entriesPerRead, 'BLOCK', circuitFeedBlockMs, 'STREAMS', this.#key, position);
      const entries = reply?.[0]?.[1] ?? [];
      return {
        transitions: entries.map(([, fields]) => transitionOf(fields)),
        position: entries.at(-1)?.[0] ?? position,
        isBehind: entries.length === entriesPerRead,
      };
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  close(): void {
    this.#blocking.disconnect();
  }
}

function transitionOf(flat: readonly string[]): CircuitTransition {
  const field = (name: string): string => flat[flat.indexOf(name) + 1] ?? '';
  return {
    routeId: field('r'),
    destinationId: field('d'),
    state: circuitStateOf(field('s')),
    atMs: Number(field('at')),
    consecutiveFailures: Number(field('f')),
  };
}
