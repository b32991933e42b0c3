import { Cluster, Command, type Redis } from 'ioredis';
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
  /** A connection of its own: while a replica is waited for, nothing else gets through. Its commands may take longer than `limitMs`. */
  redis: RedisClient;
  clock: Clock;
  logger: Logger;
  registry: Registry;
  /** How long an answer may be held up for a replica, in milliseconds; default 500. */
  limitMs?: number;
}

/** Counts the writes that `ReplicatedWrites` reports as done without a replica's acknowledgement. */
export function unreplicatedWrites(registry: Registry): Counter {
  return new Counter({
    name: 'posthorn_unreplicated_writes_total',
    help: 'Changes by the API that were acknowledged before a replica of Redis had them. A failover may lose such a change.',
    registers: [registry],
  });
}

/** State of one server. */
interface Following {
  /** How often the connection to it was closed: WAIT covers only what was written on the same one. */
  closes: number;
  /** A wait that has not begun. */
  coming: Promise<boolean> | null;
  /** One wait at a time: on one connection each would begin when the other ends, and hold up the writes behind them. */
  last: Promise<unknown>;
  doubtUntilMs: number;
}

/**
 * Runs scripts whose writes must reach a replica before they return, so that they outlive the loss of the primary. Where no replica
 * follows, and when none acknowledges in time, the write counts all the same: it has been made.
 */
export class ReplicatedWrites {
  readonly #redis: RedisClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #unacknowledged: Counter;
  readonly #limitMs: number;
  readonly #servers = new WeakMap<Redis, Following>();

  constructor({ redis, clock, logger, registry, limitMs = defaultLimitMs }: ReplicatedWritesOptions) {
    this.#redis = redis;
    this.#clock = clock;
    this.#logger = logger;
    this.#limitMs = limitMs;
    this.#unacknowledged = unreplicatedWrites(registry);
  }

  /** `Script.run`, and waits. The first key selects the server that has replicas. */
  async run(script: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    const [key = ''] = keys;
    const server = this.#serverOf(key);
    const closes = server?.closes;
    // Both are sent at once: where there is no replica nothing takes longer.
    const [reply, replicas] = await Promise.all([
      script.run(this.#redis, keys, args),
      replicasScript.run(this.#redis, [key], []).catch(() => null),
    ]);
    // Behind a new connection there may be another server, after a failover that has lost the write.
    const isSame = (): boolean => server !== undefined && server === this.#serverOf(key) && server.closes === closes;
    const isAcknowledged = isSame() && replicas !== null && (Number(replicas) === 0 || (await this.#acknowledged(server, key)));
    if (isAcknowledged && isSame()) return reply;
    this.#unacknowledged.inc();
    if (replicas === null || !isSame())
      this.#logger.warn({}, 'a change was acknowledged without knowing whether a replica of Redis has it');
    return reply;
  }

  /** Undefined while a Cluster has none for the key. */
  #serverOf(key: string): Following | undefined {
    const connection = this.#redis instanceof Cluster ? nodeOf(this.#redis, key) : this.#redis;
    if (connection === undefined) return undefined;
    const known = this.#servers.get(connection);
    if (known !== undefined) return known;
    const server: Following = { closes: 0, coming: null, last: Promise.resolve(), doubtUntilMs: 0 };
    connection.on('close', () => server.closes++);
    this.#servers.set(connection, server);
    return server;
  }

  /** Whether a replica has all that was written before; who comes while a wait is under way shares the next one. */
  async #acknowledged(server: Following | undefined, key: string): Promise<boolean> {
    if (server === undefined) return false;
    server.coming ??= server.last.then(() => {
      server.coming = null;
      return this.#wait(server, key);
    });
    server.last = server.coming;
    return server.coming;
  }

  async #wait(server: Following, key: string): Promise<boolean> {
    if (this.#clock.now() < server.doubtUntilMs) return false;
    const { closes } = server;
    // A Cluster sends the two where the key is; WAIT itself names none.
    const waiting = this.#redis.pipeline().exists(key).wait(1, this.#limitMs).exec();
    const [, [, replicas] = []] = (await waiting.catch(() => null)) ?? [];
    // Nor does it describe this server once the slot has moved.
    if (server.closes !== closes || server !== this.#serverOf(key)) return false;
    if (Number(replicas) > 0) return true;
    server.doubtUntilMs = this.#clock.now() + doubtMs;
    this.#logger.warn(
      { limitMs: this.#limitMs },
      'no replica of Redis acknowledged a change in time; the next changes do not wait for one',
    );
    return false;
  }
}

/** The connection on which a Cluster sends what is about the key. */
function nodeOf(cluster: Cluster, key: string): Redis | undefined {
  const [name] = cluster.slots[new Command('exists', [key]).getSlot()] ?? [];
  return cluster.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === name);
}
