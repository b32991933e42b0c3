import { withJitter } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import type { Beat, WorkerDirectory } from '../../data/membership/worker-directory.ts';
import type { RedisBackoff } from '../loops/redis-backoff.ts';

const beatMs = 3000;

export interface WorkerHeartbeatOptions {
  directory: WorkerDirectory;
  worker: string;
  slots: number;
  clock: Clock;
  backoff: RedisBackoff;
  onBeat: (beat: Beat) => void;
  /** Requeues the jobs of dead workers; returns false when some could not be reached, or there are more. */
  reclaim: (dead: readonly string[]) => Promise<boolean>;
}

/** Sends a heartbeat every 3 s, and has the jobs of dead workers requeued. */
export class WorkerHeartbeat {
  readonly #options: WorkerHeartbeatOptions;
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #lastBeatAtMs: number | null = null;
  #lastTryAtMs: number | null = null;

  constructor(options: WorkerHeartbeatOptions) {
    this.#options = options;
  }

  start(): void {
    this.#loop = this.#beat();
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

  async #beat(): Promise<void> {
    const { directory, worker, slots, clock, backoff, onBeat, reclaim } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#lastTryAtMs = clock.now();
        const beat = await directory.beat(worker, slots);
        backoff.recordSuccess();
        this.#lastBeatAtMs = clock.now();
        onBeat(beat);
        if (beat.dead.length > 0 && (await reclaim(beat.dead))) for (const dead of beat.dead) await directory.forget(dead);
        await clock.sleep(withJitter(beatMs), signal);
      } catch (error) {
        await clock.sleep(backoff.recordFailure(error), signal);
      }
    }
  }
}
