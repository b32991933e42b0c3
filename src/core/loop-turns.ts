/** Synchronous work within one turn of the event loop, in milliseconds; a piece that is begun is not broken off. */
const turnMs = 5;

/** Whether nobody waits for the result of some work any more; an `AbortSignal` says so. */
export type Abandonment = Pick<AbortSignal, 'aborted'>;

/** Work ended before its end, because nobody waits for its result. */
export class AbandonedError extends Error {}

/** Throws AbandonedError once `signal` is aborted. */
export function throwIfAbandoned(signal: Abandonment | undefined): void {
  if (signal?.aborted === true) throw new AbandonedError('nobody waits for the result');
}

/** The part of one piece of work in the turns of the event loop. */
export interface LoopTurn {
  /** How often it has waited for a turn: about 5 ms of work each. */
  readonly waits: number;
  /** To be awaited between two pieces: resolves at once while the turn lasts, else when the organization has its next one. */
  rest(): Promise<void>;
  /** The same where most have little to do: null while all together have not worked for long in this turn of the loop, as far as they `spend` it. */
  pause(): Promise<void> | null;
  /** Milliseconds that a piece has taken, for `pause`. */
  spend(ms: number): void;
  /** Runs to its end what rests wherever it yields, and before it begins. No piece begins once `signal` is aborted: rejects with AbandonedError. */
  run<T>(pieces: Generator<unknown, T>, signal?: Abandonment): Promise<T>;
  /**
   * Runs pieces that are mostly short. The first piece runs synchronously; if it is the last one, its result is returned without a promise. `spend`
   * counts the time of each piece. A later piece waits only when `pause` returns a promise. `signal`: as for `run`.
   */
  runShort<T>(pieces: Generator<unknown, T>, signal?: Abandonment): T | Promise<T>;
}

/**
 * Divides long synchronous work into turns of the event loop, of at most 5 ms and one piece. Between two turns the loop serves everything else. The
 * organizations that wait have their turns in the round, however many pieces of work each of them has: of one that waits beside others no two
 * turns follow each other.
 */
export class LoopTurns {
  /** What waits, by organization; the first one is next. */
  readonly #waiting = new Map<string, { turn: Turn; resume: () => void }[]>();
  readonly #now: () => number;
  /** Whose turn it is, and since when. */
  #holder: Turn | null = null;
  #startedMs = 0;
  /** Of those that `pause`, in this turn of the loop. */
  #spentMs = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  of(organization: string): LoopTurn {
    return new Turn({
      rest: (turn) => this.#rest(organization, turn),
      pause: (turn) =>
        this.#holder === null && this.#waiting.size === 0 && this.#spentMs < turnMs ? null : this.#rest(organization, turn),
      spend: (ms) => this.#spend(ms),
    });
  }

  #spend(ms: number): void {
    if (this.#spentMs === 0 && ms > 0)
      setImmediate(() => {
        this.#spentMs = 0;
      });
    this.#spentMs += ms;
  }

  /** Returns null while the turn may continue. */
  #rest(organization: string, turn: Turn): Promise<void> | null {
    if (this.#mayGoOn(turn)) return null;
    return new Promise((resume) => {
      if (this.#waiting.size === 0) setImmediate(() => this.#next());
      const others = this.#waiting.get(organization);
      if (others === undefined) this.#waiting.set(organization, [{ turn, resume }]);
      else others.push({ turn, resume });
    });
  }

  #mayGoOn(turn: Turn): boolean {
    if (this.#holder === turn) return this.#now() - this.#startedMs < turnMs;
    if (this.#holder !== null || this.#waiting.size > 0 || this.#spentMs >= turnMs) return false;
    this.#begin(turn);
    return true;
  }

  /** The turn ends with that of the event loop. */
  #begin(holder: Turn): void {
    const startedMs = this.#now();
    this.#startedMs = startedMs;
    this.#holder = holder;
    setImmediate(() => {
      if (this.#holder === holder && this.#startedMs === startedMs) this.#holder = null;
    });
  }

  #next(): void {
    const [entry] = this.#waiting;
    if (entry === undefined) return;
    const [organization, own] = entry;
    const first = own.shift();
    this.#waiting.delete(organization);
    if (own.length > 0) this.#waiting.set(organization, own);
    if (this.#waiting.size > 0) setImmediate(() => this.#next());
    if (first === undefined) return;
    this.#begin(first.turn);
    first.resume();
  }
}

const atOnce = Promise.resolve();

interface TurnSteps {
  rest(turn: Turn): Promise<void> | null;
  pause(turn: Turn): Promise<void> | null;
  spend(ms: number): void;
}

class Turn implements LoopTurn {
  readonly #steps: TurnSteps;
  waits = 0;

  constructor(steps: TurnSteps) {
    this.#steps = steps;
  }

  rest(): Promise<void> {
    return this.#counted(this.#steps.rest(this)) ?? atOnce;
  }

  pause(): Promise<void> | null {
    return this.#counted(this.#steps.pause(this));
  }

  spend(ms: number): void {
    this.#steps.spend(ms);
  }

  #counted(waiting: Promise<void> | null): Promise<void> | null {
    if (waiting !== null) this.waits++;
    return waiting;
  }

  async run<T>(pieces: Generator<unknown, T>, signal?: Abandonment): Promise<T> {
    for (;;) {
      const waiting = this.#counted(this.#steps.rest(this));
      if (waiting !== null) await waiting;
      throwIfAbandoned(signal);
      const { done, value } = pieces.next();
      if (done === true) return value;
    }
  }

  runShort<T>(pieces: Generator<unknown, T>, signal?: Abandonment): T | Promise<T> {
    throwIfAbandoned(signal);
    const { done, value } = this.#next(pieces);
    return done === true ? value : this.#runRest(pieces, signal);
  }

  async #runRest<T>(pieces: Generator<unknown, T>, signal: Abandonment | undefined): Promise<T> {
    for (;;) {
      const waiting = this.pause();
      if (waiting !== null) await waiting;
      throwIfAbandoned(signal);
      const { done, value } = this.#next(pieces);
      if (done === true) return value;
    }
  }

  #next<T>(pieces: Generator<unknown, T>): IteratorResult<unknown, T> {
    const startedMs = performance.now();
    const piece = pieces.next();
    this.spend(performance.now() - startedMs);
    return piece;
  }
}

/** Of this process, which has one event loop. */
export const loopTurns = new LoopTurns();
