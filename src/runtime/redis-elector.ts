import type { RedisClient } from '../redis/connection.ts';
import { Script } from '../redis/script.ts';
import { type ElectionTimes, electionTimes, type LeaderLock } from './elector.ts';

const holdScript = new Script(new URL('./scripts/leadership-hold.lua', import.meta.url));
const releaseScript = new Script(new URL('./scripts/leadership-release.lua', import.meta.url));

/** A leader lock in Redis: a key with the holder's identity that ends by its own time to live. */
export class RedisLock implements LeaderLock {
  readonly #redis: RedisClient;
  readonly #key: string;
  readonly #identity: string;
  readonly #times: ElectionTimes;

  constructor(redis: RedisClient, options: { key: string; identity: string; times?: ElectionTimes }) {
    this.#redis = redis;
    this.#key = options.key;
    this.#identity = options.identity;
    this.#times = options.times ?? electionTimes;
  }

  async hold(): Promise<boolean> {
    return (await holdScript.run(this.#redis, [this.#key], [this.#identity, this.#times.leaseDurationMs])) === 1;
  }

  async release(): Promise<void> {
    await releaseScript.run(this.#redis, [this.#key], [this.#identity]);
  }
}
