import { withJitter } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import type { Beat, WorkerDirectory } from '../../data/membership/worker-directory.ts';
import type { RedisTrouble } from '../loops/redis-trouble.ts';

const beatMs = 3000;

export interface HeartOptions {
  directory: WorkerDirectory;
  worker: string;
  slots: number;
  clock: Clock;
  trouble: RedisTrouble;
  onBeat: (beat: Beat) => void;
  /** Puts back what dead workers held; false: some of it could not be reached, or there is more. */
  reclaim: (dead: readonly string[]) => Promise<boolean>;
}

/** Says every 3 s that the worker lives, and has put back what dead ones held. */
export class Heart {
  readonly #options: HeartOptions;
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #lastBeatAtMs: number | null = null;
  #lastTryAtMs: number | null = null;

  constructor(options: HeartOptions) {
    this.#options = options;
  }

  start(): void {
    this.#loop = this.#beat();
  }

  /** Time of the last beat that Redis took; null: none yet. */
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
    const { directory, worker, slots, clock, trouble, onBeat, reclaim } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#lastTryAtMs = clock.now();
        const beat = await directory.beat(worker, slots);
        trouble.over();
        this.#lastBeatAtMs = clock.now();
        onBeat(beat);
        if (beat.dead.length > 0 && (await reclaim(beat.dead))) for (const dead of beat.dead) await directory.forget(dead);
        await clock.sleep(withJitter(beatMs), signal);
      } catch (error) {
        await clock.sleep(trouble.met(error), signal);
      }
    }
  }
}
