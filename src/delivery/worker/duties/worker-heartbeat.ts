import { withJitter } from '../../../core/backoff.ts';
import type { Heartbeat, RedisWorkerDirectory } from '../../../data/membership/worker-directory.ts';
import type { ShardConsumer } from '../shard-consumer.ts';
import type { WorkerContext } from '../worker-context.ts';

const beatMs = 3000;

export interface WorkerHeartbeatOptions {
  context: WorkerContext;
  directory: RedisWorkerDirectory;
  consumers: readonly ShardConsumer[];
}

/** Duty of a worker: sends a heartbeat every 3 s, starts the consumers after the first one, and has the jobs of dead workers requeued. */
export class WorkerHeartbeat {
  readonly #options: WorkerHeartbeatOptions;
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #lastBeatAtMs: number | null = null;
  #lastTryAtMs: number | null = null;
  #hasBegun = false;
  #knowsOfMoreShards = false;

  constructor(options: WorkerHeartbeatOptions) {
    this.#options = options;
  }

  start(): void {
    this.#loop = this.#heartbeat();
  }

  /** Time of the last heartbeat that Redis accepted; null before the first. */
  get lastBeatAtMs(): number | null {
    return this.#lastBeatAtMs;
  }

  /** Time of the last attempt at a beat: long ago when the process was stopped for a while. */
  get lastTryAtMs(): number | null {
    return this.#lastTryAtMs;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #heartbeat(): Promise<void> {
    const { directory, context } = this.#options;
    const { id, slots, clock } = context;
    const { signal } = this.#stopping;
    const backoff = context.backoffs.watch();
    while (!signal.aborted) {
      try {
        this.#lastTryAtMs = clock.now();
        const heartbeat = await directory.heartbeat(id, slots);
        backoff.recordSuccess();
        this.#lastBeatAtMs = clock.now();
        this.#onBeat(heartbeat);
        if (heartbeat.dead.length > 0 && (await this.#reclaim(heartbeat.dead)))
          for (const dead of heartbeat.dead) await directory.forget(dead);
        await clock.sleep(withJitter(beatMs), signal);
      } catch (error) {
        await clock.sleep(backoff.recordFailure(error), signal);
      }
    }
  }

  #onBeat({ totalSlots, shards }: Heartbeat): void {
    const { context, consumers } = this.#options;
    context.totalSlots = totalSlots;
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      for (const consumer of consumers) consumer.start();
    }
    if (shards > consumers.length && !this.#knowsOfMoreShards) {
      this.#knowsOfMoreShards = true;
      context.logger.warn(
        { shards, served: consumers.length },
        'more shards exist than this worker serves; restart it with the same POSTHORN_SHARDS as the other processes',
      );
    }
  }

  /**
   * Returns false when jobs of the dead could not be reached in some shard, or there are more. Besides leases, dead workers may have had the doorbell,
   * and the timer of the next retry.
   */
  async #reclaim(dead: readonly string[]): Promise<boolean> {
    const { context, consumers } = this.#options;
    context.maintainAllSoon();
    return (await Promise.all(consumers.map((consumer) => consumer.reclaim(dead)))).every((isDone) => isDone);
  }
}
