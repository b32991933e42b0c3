import type { Counter } from 'prom-client';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { OpenShares } from '../../core/open-shares.ts';
import { maxTasksOfOrganization } from '../../data/tasks/task-kind.ts';
import type { Task, TaskQueue } from '../../data/tasks/task-queue.ts';
import type { RedisBackoff } from '../loops/redis-backoff.ts';
import { lookMs, Wakeup } from '../loops/wakeup.ts';
import { lookingUpFor } from '../targets/http/name-lookups.ts';
import type { TaskHandler } from './task-handler.ts';

/** Tasks at the same time in one worker, besides its deliveries. */
const slots = 32;

export interface TaskRunnerOptions {
  queue: TaskQueue;
  handlers: readonly TaskHandler[];
  /** Of the worker; makes the tokens of this runner its own. */
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
  readonly #wakeup = new Wakeup();
  readonly #stopping = new AbortController();
  readonly #breakingOff = new AbortController();
  readonly #shares = new OpenShares({ all: slots, ofOwner: maxTasksOfOrganization });
  #loop: Promise<void> = Promise.resolve();

  constructor(options: TaskRunnerOptions) {
    this.#options = options;
    this.#handlers = new Map(options.handlers.map((handler) => [handler.kind, handler]));
  }

  start(): void {
    this.#loop = this.#take();
  }

  /** Takes no more tasks; those under way are aborted, and reported so, after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    this.#options.queue.close();
    this.#wakeup.signal();
    await this.#loop;
    const cancelGrace = this.#options.clock.after(graceMs, () => this.#breakingOff.abort());
    while (this.#shares.open > 0) await this.#wakeup.wait();
    cancelGrace();
  }

  async #take(): Promise<void> {
    const { queue, worker, clock, backoff } = this.#options;
    const { signal } = this.#stopping;
    let mayHaveTasks = true;
    for (let takes = 1; !signal.aborted; ) {
      try {
        if (this.#shares.open >= slots) {
          await this.#wakeup.wait();
          continue;
        }
        if (!mayHaveTasks) await (this.#shares.full.length === 0 ? queue.wait() : this.#rest());
        if (signal.aborted) return;
        const { full } = this.#shares;
        const { task, hasMore } = await queue.take(`${worker}.${takes}`, full);
        backoff.recordSuccess();
        takes++;
        // Waiting tasks may be of organizations that get no more here.
        mayHaveTasks = hasMore && (task !== null || full.length === 0);
        if (task !== null) this.#begin(task);
      } catch (error) {
        if (signal.aborted) return;
        mayHaveTasks = true;
        await clock.sleep(backoff.recordFailure(error), signal);
      }
    }
  }

  async #rest(): Promise<void> {
    const cancel = this.#options.clock.after(lookMs, () => this.#wakeup.signal());
    await this.#wakeup.wait();
    cancel();
  }

  #begin(task: Task): void {
    this.#shares.add(task.org);
    void this.#run(task).finally(() => {
      this.#shares.giveBack(task.org);
      this.#wakeup.signal();
    });
  }

  async #run(task: Task): Promise<void> {
    const { queue, clock, logger, metrics } = this.#options;
    const handler = this.#handlers.get(task.kind);
    const deadline = new AbortController();
    const cancelDeadline = clock.after(task.remainingMs, () => deadline.abort());
    const context = {
      org: task.org,
      remainingMs: task.remainingMs,
      signal: AbortSignal.any([deadline.signal, this.#breakingOff.signal]),
    };
    const outcome = await lookingUpFor(task.org, () => handler?.run(task.input, context) ?? Promise.reject(unknownKind())).then(
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
