import type { Counter } from 'prom-client';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { maxTasksOfOrganization } from '../../data/tasks/task-kind.ts';
import type { Task, TaskQueue } from '../../data/tasks/task-queue.ts';
import type { RedisBackoff } from '../loops/redis-backoff.ts';
import { SlotLoop } from '../loops/slot-loop.ts';
import { withLookupShare } from '../targets/http/name-lookups.ts';
import type { TaskHandler } from './task-handler.ts';

/** Tasks at the same time in one worker, besides its deliveries. */
const slots = 32;

export interface TaskRunnerOptions {
  queue: TaskQueue;
  handlers: readonly TaskHandler[];
  /** Id of the worker. It makes the tokens of this runner unique. */
  worker: string;
  clock: Clock;
  logger: Logger;
  backoff: RedisBackoff;
  metrics: { tasks: Counter<'kind' | 'outcome'> };
}

/** Runs tasks and returns their results, with slots of its own, shared by organization: they take none from deliveries. Sleeps on a doorbell. */
export class TaskRunner {
  readonly #options: TaskRunnerOptions;
  readonly #handlers: ReadonlyMap<string, TaskHandler>;
  readonly #loop: SlotLoop<Task>;

  constructor(options: TaskRunnerOptions) {
    this.#options = options;
    this.#handlers = new Map(options.handlers.map((handler) => [handler.kind, handler]));
    const { queue, worker, clock, backoff } = options;
    this.#loop = new SlotLoop({
      slots,
      slotsOfOrganization: maxTasksOfOrganization,
      bell: queue,
      take: async (token, _room, full) => {
        const { task, hasMore } = await queue.take(token, full);
        return { items: task === null ? [] : [task], hasMore };
      },
      run: (task, signal) => this.#run(task, signal),
      worker,
      clock,
      backoff,
    });
  }

  start(): void {
    this.#loop.start();
  }

  /** Takes no more tasks; those under way are aborted, and reported so, after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    await this.#loop.stop(graceMs);
  }

  async #run(task: Task, breakingOff: AbortSignal): Promise<void> {
    const { queue, clock, logger, metrics } = this.#options;
    const handler = this.#handlers.get(task.kind);
    const deadline = new AbortController();
    const cancelDeadline = clock.after(task.remainingMs, () => deadline.abort());
    const context = {
      org: task.org,
      remainingMs: task.remainingMs,
      signal: AbortSignal.any([deadline.signal, breakingOff]),
    };
    const outcome = await withLookupShare(task.org, () => handler?.run(task.input, context) ?? Promise.reject(unknownKind())).then(
      (result) => ({ result }),
      (error: unknown) => ({ error: this.#forCaller(task, error) }),
    );
    cancelDeadline();
    try {
      const isWanted = await queue.answer(task, outcome);
      metrics.tasks.inc({ kind: handler?.kind ?? 'unknown', outcome: isWanted ? ('error' in outcome ? 'error' : 'ok') : 'late' });
    } catch (error) {
      logger.warn({ reason: error instanceof Error ? error.message : String(error), task: task.id }, 'a task result could not be returned');
    }
  }

  #forCaller(task: Task, error: unknown): PosthornError {
    if (isPosthornError(error)) return error;
    this.#options.logger.error({ err: error, task: task.id, kind: task.kind }, 'a task failed with an internal error');
    return new PosthornError('INTERNAL', 'The request failed with an internal error.');
  }
}

function unknownKind(): PosthornError {
  return new PosthornError('UNAVAILABLE', 'The release of the delivery worker does not support this.', { retryAfterSeconds: 30 });
}
