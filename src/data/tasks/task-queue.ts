import { z } from 'zod';
import { defaultPool } from '../../core/default-pool.ts';
import type { PosthornError } from '../../core/errors.ts';
import { parseJson } from '../../core/read-json.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { poolSuffix } from '../shard/pool-suffix.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { ringBell } from './ring-bell.ts';
import type { taskAnswer } from './task-caller.ts';
import { taskBlockSeconds, taskKeys } from './task-kind.ts';

const take = new Script(new URL('./task-take.lua', import.meta.url));
const answer = new Script(new URL('./task-answer.lua', import.meta.url));

const maxScanned = 100;
/** Replies are kept this long for a caller that does not read them. */
const answersKeptMs = 120_000;

const storedTask = z.object({ kind: z.string(), org: z.string(), caller: z.string(), input: z.unknown() });

/** A task that a worker has taken. */
export interface Task extends z.output<typeof storedTask> {
  id: string;
  /** Time from the take to the deadline. */
  remainingMs: number;
}

/** The tasks as a worker of a pool sees them. Throws UNAVAILABLE when Redis does not answer. */
export class TaskQueue {
  readonly #redis: RedisClient;
  readonly #blocking: RedisClient;
  readonly #keys: ReturnType<typeof taskKeys>;
  readonly #poolSuffix: string;

  /** `blocking` is this queue's own: it blocks for up to `taskBlockSeconds`, and `close` ends it. */
  constructor({
    redis,
    blocking,
    prefix,
    pool = defaultPool,
  }: { redis: RedisClient; blocking: RedisClient; prefix: string; pool?: string }) {
    this.#redis = redis;
    this.#blocking = blocking;
    this.#keys = taskKeys(prefix);
    this.#poolSuffix = poolSuffix(pool);
    // Errors reject the wait under way; the event is redundant.
    blocking.on('error', () => undefined);
  }

  /** Resolves on a signal, or after a timeout. Rejects when the queue was closed. */
  async wait(): Promise<void> {
    if (this.#blocking.status === 'wait' || this.#blocking.status === 'end') await this.#blocking.connect();
    await this.#blocking.blpop(`${this.#keys.bell}${this.#poolSuffix}`, taskBlockSeconds);
  }

  /** Wakes another worker of the pool. */
  async ring(): Promise<void> {
    await ringBell(this.#redis, `${this.#keys.bell}${this.#poolSuffix}`);
  }

  /**
   * Takes the oldest task of an organization that is not `full`. A repeated call after an error passes the same `token` and gets the same task; every other call
   * needs a new token. `hasMore`: whether tasks of any organization wait.
   */
  async take(token: string, full: readonly string[] = []): Promise<{ task: Task | null; hasMore: boolean }> {
    const { queue, bell, take: takeKey, task } = this.#keys;
    const reply = list(await this.#run(take, [queue, bell, takeKey(token), task('')], [maxScanned, this.#poolSuffix, ...full]));
    const [more, id, remaining, json] = reply;
    const hasMore = integer(more) === 1;
    if (id === undefined) return { task: null, hasMore };
    return { task: { ...storedTask.parse(parseJson(text(json))), id: text(id), remainingMs: integer(remaining) }, hasMore };
  }

  /** Sends a result, or an error. Returns false if the caller no longer waits. */
  async answer({ id, org, caller }: Task, outcome: { result: unknown } | { error: PosthornError }): Promise<boolean> {
    const { task, answers, organization } = this.#keys;
    const reply: z.input<typeof taskAnswer> =
      'error' in outcome ? { id, error: { code: outcome.error.code, message: outcome.error.message } } : { id, result: outcome.result };
    const keys = [task(id), answers(caller), organization(org)];
    return integer(await this.#run(answer, keys, [id, JSON.stringify(reply), answersKeptMs])) === 1;
  }

  close(): void {
    this.#blocking.disconnect();
  }

  async #run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return await script.run(this.#redis, keys, args).catch(throwUnavailable);
  }
}
