import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script, type ScriptArgument } from '../../redis/script.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';
import { integer, list, text } from '../shard/script-reply.ts';

const heartbeatScript = new Script(new URL('./heartbeat.lua', import.meta.url));
const leaveScript = new Script(new URL('./worker-leave.lua', import.meta.url));
const aliveScript = new Script(new URL('./workers-alive.lua', import.meta.url));
const knownScript = new Script(new URL('./workers-known.lua', import.meta.url));

/** A worker that has not beaten for so long is dead. */
export const workerLifetimeMs = 10_000;

export interface Heartbeat {
  /** Concurrency of all living workers of its pool. */
  totalSlots: number;
  /** Number of shards: the maximum over all processes. */
  shards: number;
  dead: string[];
}

/** Keys of the workers, which share one slot; see `heartbeat.lua`. */
export function workerKeys(prefix: string): { alive: string; slots: string; shards: string; pulse: string; versions: string } {
  const base = `${prefix}{workers}:`;
  const [alive, slots, shards, pulse, versions] = [`${base}alive`, `${base}slots`, `${base}shards`, `${base}pulse`, `${base}versions`];
  return { alive, slots, shards, pulse, versions };
}

/** Whether a worker of the pool with this suffix is alive: a killed one counts for its lifetime. Throws UNAVAILABLE when Redis does not answer. */
export async function hasLivingWorker(redis: RedisClient, prefix: string, mark: string): Promise<boolean> {
  try {
    return integer(await aliveScript.run(redis, [workerKeys(prefix).alive], [mark])) > 0;
  } catch (error) {
    throw redisUnavailable(error);
  }
}

export interface KnownWorker {
  id: string;
  /** Null: it is ending. */
  slots: number | null;
  /** Null: its release omits it. */
  version: string | null;
  /** Milliseconds since the epoch; null: it has left, and others requeue what it may hold. */
  seenAtMs: number | null;
}

export interface KnownWorkers {
  /** All of them. */
  total: number;
  /** Workers, the last seen first. */
  workers: KnownWorker[];
  /** How many of all workers that live run each version. */
  versions: { version: string | null; workers: number }[];
  /** Time of Redis in milliseconds since the epoch, by which they live. */
  nowMs: number;
}

/** At most `most` of the workers that live or are yet to be forgotten. Throws UNAVAILABLE when Redis does not answer. */
export async function knownWorkers({ redis, prefix }: { redis: RedisClient; prefix: string }, most: number): Promise<KnownWorkers> {
  const { alive, slots, versions } = workerKeys(prefix);
  const [now, total, found, living] = list(await knownScript.run(redis, [alive, slots, versions], [most]).catch(throwUnavailable));
  return {
    total: Number(total),
    workers: inGroups(found, 4).map(([id = '', endMs, own, version = '']) => ({
      id,
      slots: own === '' ? null : Number(own),
      version: versionOf(version),
      seenAtMs: Number(endMs) === 0 ? null : Number(endMs) - workerLifetimeMs,
    })),
    versions: inGroups(living, 2).map(([version = '', count]) => ({ version: versionOf(version), workers: Number(count) })),
    nowMs: Number(now),
  };
}

function inGroups(reply: unknown, size: number): string[][] {
  const all = list(reply).map(text);
  return Array.from({ length: all.length / size }, (_, k) => all.slice(size * k, size * (k + 1)));
}

function versionOf(field: string): string | null {
  return field === '' ? null : field;
}

/** Which workers there are. Throws UNAVAILABLE when Redis does not answer. */
export class RedisWorkerDirectory {
  readonly #redis: RedisClient;
  readonly #shards: number;
  readonly #version: string;
  readonly #keys: ReturnType<typeof workerKeys>;

  /** `shards`: the number that this process has; `version`: of its release. */
  constructor({ redis, prefix, shards, version }: { redis: RedisClient; prefix: string; shards: number; version: string }) {
    this.#redis = redis;
    this.#shards = shards;
    this.#version = version;
    this.#keys = workerKeys(prefix);
  }

  async heartbeat(worker: string, slots: number): Promise<Heartbeat> {
    const { alive, slots: slotsKey, shards: shardsKey, pulse, versions } = this.#keys;
    const keys = [alive, slotsKey, shardsKey, pulse, versions];
    const heartbeat = namedArgument({ id: worker, slots, version: this.#version, lifetimeMs: workerLifetimeMs, shards: this.#shards });
    const [total, shards, dead] = list(await this.#run(heartbeatScript, keys, [heartbeat]));
    return { totalSlots: integer(total), shards: integer(shards), dead: list(dead).map(text) };
  }

  /** The worker ends; others requeue its leases. */
  async leave(worker: string, { mayHoldWork }: { mayHoldWork: boolean }): Promise<void> {
    await this.#leave(worker, mayHoldWork ? 'held' : 'end');
  }

  /** The leases of a dead worker were requeued in all shards. */
  async forget(worker: string): Promise<void> {
    await this.#leave(worker, 'dead');
  }

  async #leave(worker: string, why: 'held' | 'end' | 'dead'): Promise<void> {
    const { alive, slots, versions } = this.#keys;
    await this.#run(leaveScript, [alive, slots, versions], [worker, why]);
  }

  async #run(script: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return await script.run(this.#redis, keys, args).catch(throwUnavailable);
  }
}
