import { Cluster } from 'ioredis';
import { Counter, type Registry } from 'prom-client';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { RedisClient } from './connection.ts';
import { Script, type ScriptArgument } from './script.ts';

const replicasScript = new Script(new URL('./scripts/online-replicas.lua', import.meta.url));
const defaultLimitMs = 500;
/** After a replica has been silent for the limit, so that it does not hold up one write after the other. */
const doubtMs = 5000;

export interface ReplicatedWritesOptions {
  /** Of its own: while a replica is waited for, nothing else gets through. Its commands may take longer than `limitMs`. */
  redis: RedisClient;
  clock: Clock;
  logger: Logger;
  registry: Registry;
  /** How long an answer may be held up for a replica, in milliseconds; default 500. */
  limitMs?: number;
}

/**
 * Runs scripts whose writes a replica shall have before they are answered, so that they outlive the loss of the primary. Where no replica
 * follows, and when none acknowledges in time, the write counts all the same: it has been made.
 */
export class ReplicatedWrites {
  readonly #redis: RedisClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #unacknowledged: Counter;
  readonly #limitMs: number;
  /** Waits that have not begun, by server. */
  readonly #coming = new Map<string, Promise<boolean>>();
  /** One wait at a time: on one connection each would begin when the other ends, and hold up the writes behind them. */
  #last: Promise<unknown> = Promise.resolve();
  #doubtUntilMs = 0;

  constructor({ redis, clock, logger, registry, limitMs = defaultLimitMs }: ReplicatedWritesOptions) {
    this.#redis = redis;
    this.#clock = clock;
    this.#logger = logger;
    this.#limitMs = limitMs;
    this.#unacknowledged = new Counter({
      name: 'posthorn_unreplicated_writes_total',
      help: 'Changes by the API that were answered before a replica of Redis had them.',
      registers: [registry],
    });
  }

  /** `Script.run`, and waits. The first key says which server it is that has replicas. */
  async run(script: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    const [key = ''] = keys;
    // Both are sent at once: where there is no replica nothing takes longer.
    const [reply, replicas] = await Promise.all([
      script.run(this.#redis, keys, args),
      replicasScript.run(this.#redis, [key], []).catch(() => 0),
    ]);
    if (Number(replicas) > 0 && !(await this.#acknowledged(key))) this.#unacknowledged.inc();
    return reply;
  }

  /** Whether a replica has all that was written before; who comes while a wait is under way shares the next one. */
  #acknowledged(key: string): Promise<boolean> {
    const server = this.#redis instanceof Cluster ? key : '';
    const coming =
      this.#coming.get(server) ??
      this.#last.then(() => {
        this.#coming.delete(server);
        return this.#wait(key);
      });
    this.#coming.set(server, coming);
    this.#last = coming;
    return coming;
  }

  async #wait(key: string): Promise<boolean> {
    if (this.#clock.now() < this.#doubtUntilMs) return false;
    // A Cluster sends the two where the key is; WAIT itself names none.
    const waiting = this.#redis.pipeline().exists(key).wait(1, this.#limitMs).exec();
    const [, [, replicas] = []] = (await waiting.catch(() => null)) ?? [];
    if (Number(replicas) > 0) return true;
    this.#doubtUntilMs = this.#clock.now() + doubtMs;
    this.#logger.warn({ limitMs: this.#limitMs }, 'no replica of Redis acknowledges changes in time: the next ones are not held up for it');
    return false;
  }
}
