import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Clock } from '../core/clock.ts';
import { PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';

/**
 * Lock of leader candidates. Leadership is advisory: effects outside are fenced by an epoch.
 */
export interface LeaderLock {
  /** Takes or prolongs the lock for `leaseDurationMs`. False: another candidate holds it. Rejects when unknown. */
  hold(): Promise<boolean>;
  /** Gives the lock up when this candidate holds it. */
  release(): Promise<void>;
}

/** client-go's times: what the lock lasts, how long a leader tries to renew, how often everybody tries. */
export interface ElectionTimes {
  leaseDurationMs: number;
  renewDeadlineMs: number;
  retryPeriodMs: number;
}
export const electionTimes: ElectionTimes = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 };

/** One time of leading. */
export interface Term {
  /** Aborts when the lock went to another, or could not be renewed for `renewDeadlineMs`. */
  readonly lost: AbortSignal;
  /** Renews at once. Throws CONFLICT when the lock is no longer held, UNAVAILABLE when that is unknown. */
  renew(): Promise<void>;
  /** Stops renewing and gives the lock up, so that another candidate need not wait for its end. */
  release(): Promise<void>;
}

/** Name of this candidate, different for every process. */
export function candidateIdentity(): string {
  return `${hostname()}_${randomUUID()}`;
}

/** Competes for a lock with the promises of client-go's leaderelection. */
export class LeaderElector {
  readonly #lock: LeaderLock;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #times: ElectionTimes;

  constructor(lock: LeaderLock, options: { clock: Clock; logger: Logger; times?: ElectionTimes }) {
    this.#lock = lock;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#times = options.times ?? electionTimes;
  }

  /** Waits until this candidate leads; null when the signal aborts before. */
  async acquire(signal: AbortSignal): Promise<Term | null> {
    let complaint = '';
    while (!signal.aborted) {
      const startedAtMs = this.#clock.now();
      try {
        if (await this.#lock.hold()) {
          if (!signal.aborted) return this.#lead(startedAtMs);
          await this.#lock.release();
          return null;
        }
        complaint = '';
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (message !== complaint) this.#logger.warn({ error: message }, 'leader election: the lock is unreachable; retrying');
        complaint = message;
      }
      await this.#clock.sleep(this.#times.retryPeriodMs * (1 + Math.random() * 0.2), signal);
    }
    return null;
  }

  #lead(heldSinceMs: number): Term {
    const lost = new AbortController();
    const stopped = new AbortController();
    let cancelDeadline = (): void => {};
    let heldUntilMs = 0;
    const lose = (reason: string): void => {
      if (lost.signal.aborted || stopped.signal.aborted) return;
      cancelDeadline();
      this.#logger.warn({ reason }, 'leader election: leadership lost');
      lost.abort(new PosthornError('CONFLICT', reason));
    };
    // The deadline counts from before the request, as another candidate may have seen the lock change right then.
    const renewed = (requestedAtMs: number): void => {
      cancelDeadline();
      if (stopped.signal.aborted || lost.signal.aborted) return;
      heldUntilMs = requestedAtMs + this.#times.renewDeadlineMs;
      cancelDeadline = this.#clock.after(heldUntilMs - this.#clock.now(), () => lose('the lock could not be renewed in time'));
    };
    // A process that was stopped runs its timers in any order, so the deadline is checked here too.
    const refuseWhenLate = (): void => {
      if (this.#clock.now() >= heldUntilMs) lose('the lock was renewed too late');
      if (lost.signal.aborted) throw new PosthornError('CONFLICT', 'leadership is lost');
    };
    const renew = async (): Promise<void> => {
      refuseWhenLate();
      const requestedAtMs = this.#clock.now();
      let held: boolean;
      try {
        held = await this.#lock.hold();
      } catch (cause) {
        throw new PosthornError('UNAVAILABLE', 'the leader lock cannot be renewed', { cause });
      }
      if (!held) {
        lose('another candidate holds the lock');
        throw new PosthornError('CONFLICT', 'another candidate holds the lock');
      }
      refuseWhenLate();
      renewed(requestedAtMs);
    };
    const keep = async (): Promise<void> => {
      const ended = AbortSignal.any([lost.signal, stopped.signal]);
      for (;;) {
        await this.#clock.sleep(this.#times.retryPeriodMs, ended);
        if (ended.aborted) return;
        try {
          await renew();
        } catch (error) {
          this.#logger.debug({ err: error }, 'leader election: renewal failed');
        }
      }
    };
    renewed(heldSinceMs);
    const kept = keep();
    this.#logger.info({}, 'leader election: this process leads');
    return {
      lost: lost.signal,
      renew,
      release: async () => {
        stopped.abort();
        cancelDeadline();
        await kept;
        await this.#lock.release();
      },
    };
  }
}
