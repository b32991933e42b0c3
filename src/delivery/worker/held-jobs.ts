import type { Job } from '../../data/queue/delivery-queue.ts';
import type { WorkerContext } from './worker-context.ts';

/** A shard counts as active for so long after something has happened in it. */
const activeMs = 10_000;

/** The jobs of one shard that the worker holds, from dequeue until its settlement is written, and when it last had to do with the shard. */
export class HeldJobs {
  readonly #context: WorkerContext;
  readonly #jobs = new Map<string, Job>();
  #activeAtMs = Number.NEGATIVE_INFINITY;

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  get size(): number {
    return this.#jobs.size;
  }

  get handles(): string[] {
    return [...this.#jobs.keys()];
  }

  /** Returns those that were not held yet. */
  add(jobs: readonly Job[]): Job[] {
    const unknown = jobs.filter((job) => !this.#jobs.has(job.handle));
    for (const job of unknown) this.#jobs.set(job.handle, job);
    return unknown;
  }

  delete(job: Job): void {
    this.#jobs.delete(job.handle);
  }

  /** Has the shard checked within seconds, although it is idle. */
  noteActivity(): void {
    this.#activeAtMs = this.#context.clock.now();
  }

  get isActive(): boolean {
    return this.#jobs.size > 0 || this.#context.clock.now() - Math.max(this.#activeAtMs, this.#context.maintainAllAtMs) < activeMs;
  }
}
