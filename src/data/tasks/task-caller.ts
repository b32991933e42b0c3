import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { type ErrorCode, errorCodes, PosthornError } from '../../core/errors.ts';
import { base32 } from '../../core/ids.ts';
import type { Logger } from '../../core/logger.ts';
import { parseJson } from '../../core/read-json.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { hasLivingWorker } from '../membership/worker-directory.ts';
import { maxTasksOfOrganization as maxOfOrganization, type TaskKind, taskBlockSeconds, taskKeys } from './task-kind.ts';

const offer = new Script(new URL('./task-offer.lua', import.meta.url));

const maxWaiting = 64;

/** A worker's reply. */
export const taskAnswer = z.union([
  z.object({ id: z.string(), result: z.unknown() }),
  z.object({ id: z.string(), error: z.object({ code: z.string(), message: z.string() }) }),
]);

interface Pending {
  resolve: (result: unknown) => void;
  reject: (error: PosthornError) => void;
}

export interface TaskCallerOptions {
  redis: RedisClient;
  /** Blocks for up to `taskBlockSeconds`; connected when the first task is called. */
  blocking: RedisClient;
  prefix: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Lets a delivery worker of the organization's pool do something now. One reader waits for the answers to all tasks of this process, and only while there
 * are some.
 */
export class RedisTaskCaller {
  readonly #options: TaskCallerOptions;
  readonly #keys: ReturnType<typeof taskKeys>;
  readonly #caller = base32(randomBytes(10));
  readonly #pending = new Map<string, Pending>();
  #isListening = false;

  constructor(options: TaskCallerOptions) {
    this.#options = options;
    this.#keys = taskKeys(options.prefix);
    // Errors reject the read under way; the event is redundant.
    options.blocking.on('error', () => undefined);
  }

  /**
   * Result of the worker's handler. `org` bounds how much one organization has open, and `credential` how much of that one credential has. `timeoutMs` counts from now: a task that is
   * older is not begun any more. Throws UNAVAILABLE when Redis, or every worker of its pool, is down or busy, and what the handler threw.
   */
  async call<Input, Result>(
    { name, result }: TaskKind<Input, Result>,
    { org, credential, input, timeoutMs }: { org: string; credential: string; input: Input; timeoutMs: number },
  ): Promise<Result> {
    const { redis, prefix } = this.#options;
    const mark = await this.#poolSuffixOf(org);
    if (!(await hasLivingWorker(redis, prefix, mark)))
      throw unavailable(`No delivery worker${mark === '' ? '' : ` of the pool ${mark.slice(1)}`} is running.`);
    const id = base32(randomBytes(10));
    const answered = this.#await(id, timeoutMs);
    // In this order: `task-take.lua` and `task-offer.lua` read the beginning.
    const task = JSON.stringify({ kind: name, org, credential, caller: this.#caller, input });
    try {
      await this.#offer({ id, org, credential, task, timeoutMs });
      void this.#listen();
      return result.parse(await answered);
    } finally {
      this.#pending.get(id)?.reject(unavailable('The task was not begun.'));
    }
  }

  async #poolSuffixOf(org: string): Promise<string> {
    try {
      return (await this.#options.redis.hget(this.#keys.pools, org)) ?? '';
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  #await(id: string, timeoutMs: number): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const seconds = Math.ceil(timeoutMs / 1000);
    const cancel = this.#options.clock.after(timeoutMs, () => reject(unavailable(`No delivery worker has answered within ${seconds} s.`)));
    this.#pending.set(id, { resolve, reject });
    const answered = promise.finally(() => {
      cancel();
      this.#pending.delete(id);
    });
    // No caller waits for it when the offer fails.
    answered.catch(() => undefined);
    return answered;
  }

  async #offer({ id, org, ...others }: { id: string; org: string; credential: string; task: string; timeoutMs: number }): Promise<void> {
    const { queue, bell, task: taskKey, organization, pools } = this.#keys;
    const keys = [queue, bell, taskKey(id), organization(org), pools, taskKey('')];
    const offered = namedArgument({ id, org, ...others, maxWaiting, maxOfOrganization });
    const outcome = await offer.run(this.#options.redis, keys, [offered]).catch((error) => {
      throw redisUnavailable(error);
    });
    if (outcome === 'busy')
      throw unavailable(`${maxOfOrganization} tests and triggers of this organization are under way: wait for one of them to end.`);
    if (outcome === 'reserved')
      throw unavailable(
        `Too many tests and triggers of this key or user are under way: the last of ${maxOfOrganization} are for others of the organization.`,
      );
    if (outcome === 'full') throw unavailable('The delivery workers are busy with other tests and triggers.');
  }

  async #listen(): Promise<void> {
    if (this.#isListening) return;
    this.#isListening = true;
    const { blocking, logger } = this.#options;
    try {
      while (this.#pending.size > 0) {
        if (blocking.status === 'wait' || blocking.status === 'end') await blocking.connect();
        const popped = await blocking.blpop(this.#keys.answers(this.#caller), taskBlockSeconds);
        if (popped !== null) this.#answer(popped[1]);
      }
    } catch (error) {
      logger.debug({ reason: error instanceof Error ? error.message : String(error) }, 'task results could not be read; retrying');
      for (const { reject } of this.#pending.values()) reject(redisUnavailable(error));
    } finally {
      this.#isListening = false;
    }
  }

  #answer(json: string): void {
    const answer = taskAnswer.parse(parseJson(json));
    const pending = this.#pending.get(answer.id);
    if (!('error' in answer)) pending?.resolve(answer.result);
    else pending?.reject(new PosthornError(knownCode(answer.error.code), answer.error.message));
  }
}

function knownCode(code: string): ErrorCode {
  return Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : 'INTERNAL';
}

function unavailable(message: string): PosthornError {
  return new PosthornError('UNAVAILABLE', message, { retryAfterSeconds: 5 });
}
