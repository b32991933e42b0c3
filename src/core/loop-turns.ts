import { accountOf } from './account.ts';
import { Round } from './round.ts';

/** Synchronous work within one turn of the event loop, in milliseconds; a chunk that has begun is not interrupted. */
const turnMs = 5;

/** Whether the result of some work is no longer needed; given as an `AbortSignal`. */
export type Abandonment = Pick<AbortSignal, 'aborted'>;

interface WaitingTurn {
  turn: LoopTurn;
  resume: () => void;
}

/** Work ended before its end, because its result is not needed. */
export class AbandonedError extends Error {}

/** Throws AbandonedError once `signal` is aborted. */
export function throwIfAbandoned(signal: Abandonment | undefined): void {
  if (signal?.aborted === true) throw new AbandonedError('nobody waits for the result');
}

/**
 * Divides synchronous work into turns of the event loop, of at most 5 ms and one chunk. Between two turns the loop serves everything else. Waiting
 * organizations, each with its webhooks and alerts, are served round-robin, however many chunks of work each of them has: of one that waits
 * beside others no two turns follow each other. The parts of an organization, such as its sources, share its turns in the same way.
 */
export class LoopTurns {
  /** Waiting parts of each account; the first one is next. */
  readonly #waiting = new Map<string, Round<WaitingTurn>>();
  readonly #now: () => number;
  /** The current holder, and its start. */
  #holder: LoopTurn | null = null;
  #startedMs = 0;
  /** Time that work which has ended, and work with `pause`, has taken in this turn of the loop. */
  #spentMs = 0;
  /** The turn that began last. */
  #last: LoopTurn | null = null;
  /** Whether `#newTurn` is scheduled: it is once something has begun, taken time or waits. */
  #isScheduled = false;
  readonly #steps: TurnSteps = {
    rest: (turn) => this.#rest(turn),
    pause: (turn) => (this.#isFree ? null : this.#rest(turn)),
    spend: (ms) => this.#spend(ms),
    holds: (turn) => this.#holder === turn,
    end: (turn) => this.#end(turn),
  };

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  of(organization: string, part = ''): LoopTurn {
    return new LoopTurn(this.#steps, organization, part);
  }

  /** Whether work may begin at once. */
  get #isFree(): boolean {
    return this.#holder === null && this.#waiting.size === 0 && this.#spentMs < turnMs;
  }

  #spend(ms: number): void {
    this.#spentMs += ms;
    if (ms > 0) this.#schedule();
  }

  /** Returns null while the turn may continue. */
  #rest(turn: LoopTurn): Promise<void> | null {
    if (this.#mayGoOn(turn)) return null;
    const account = accountOf(turn.organization);
    return new Promise((resume) => {
      this.#schedule();
      const parts = this.#waiting.get(account) ?? new Round<WaitingTurn>();
      this.#waiting.set(account, parts);
      parts.add(turn.part, { turn, resume });
    });
  }

  #mayGoOn(turn: LoopTurn): boolean {
    if (this.#holder === turn) return this.#spentMs + this.#now() - this.#startedMs < turnMs;
    if (!this.#isFree) return false;
    this.#begin(turn);
    return true;
  }

  /** The turn ends with that of the event loop. */
  #begin(holder: LoopTurn): void {
    this.#startedMs = this.#now();
    this.#holder = holder;
    this.#last = holder;
    this.#schedule();
  }

  /** Work that ends early leaves the rest of the 5 ms to the others that wait. */
  #end(turn: LoopTurn): void {
    if (this.#holder !== turn) return;
    this.#holder = null;
    this.#spend(this.#now() - this.#startedMs);
    if (this.#spentMs < turnMs) this.#next();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#newTurn());
  }

  #newTurn(): void {
    this.#isScheduled = false;
    this.#holder = null;
    this.#spentMs = 0;
    this.#next();
    if (this.#waiting.size > 0) this.#schedule();
  }

  #next(): void {
    this.#postponeLast();
    const [entry] = this.#waiting;
    if (entry === undefined) return;
    const [account, parts] = entry;
    const first = parts.next();
    this.#waiting.delete(account);
    if (!parts.isEmpty) this.#waiting.set(account, parts);
    if (first === undefined) return;
    this.#begin(first.turn);
    first.resume();
  }

  /** The account and part that began last wait behind the others, also if they began to wait before them. */
  #postponeLast(): void {
    if (this.#last === null) return;
    const account = accountOf(this.#last.organization);
    const parts = this.#waiting.get(account);
    if (parts === undefined) return;
    parts.postpone(this.#last.part);
    this.#waiting.delete(account);
    this.#waiting.set(account, parts);
  }
}

const atOnce = Promise.resolve();

interface TurnSteps {
  rest(turn: LoopTurn): Promise<void> | null;
  pause(turn: LoopTurn): Promise<void> | null;
  spend(ms: number): void;
  holds(turn: LoopTurn): boolean;
  end(turn: LoopTurn): void;
}

/** One piece of work, scheduled in turns of the event loop. */
export class LoopTurn {
  readonly organization: string;
  readonly part: string;
  readonly #steps: TurnSteps;
  #waits = 0;

  constructor(steps: TurnSteps, organization: string, part: string) {
    this.#steps = steps;
    this.organization = organization;
    this.part = part;
  }

  /** How often it has waited for a turn: about 5 ms of work each. */
  get waits(): number {
    return this.#waits;
  }

  /** To be awaited between two chunks: resolves at once while the turn lasts, else when the organization has its next one. */
  rest(): Promise<void> {
    return this.#counted(this.#steps.rest(this)) ?? atOnce;
  }

  /** The same where most have little to do: null while all together have not worked for long in this turn of the loop, as far as they `spend` it. */
  pause(): Promise<void> | null {
    return this.#counted(this.#steps.pause(this));
  }

  /** Milliseconds that a piece has taken, for `pause`. */
  spend(ms: number): void {
    this.#steps.spend(ms);
  }

  #counted(waiting: Promise<void> | null): Promise<void> | null {
    if (waiting !== null) this.#waits++;
    return waiting;
  }

  /**
   * Runs to its end what rests wherever it yields, and before it begins. A promise that it yields is awaited. No piece begins once `signal` is aborted: rejects
   * with AbandonedError. Others continue when it ends, unless it is part of work that has the turn since before: what consists of many short runs rests before
   * each of them.
   */
  async run<T>(pieces: Generator<unknown, T>, signal?: Abandonment): Promise<T> {
    const isPart = this.#steps.holds(this);
    try {
      for (;;) {
        const waiting = this.#counted(this.#steps.rest(this));
        if (waiting !== null) await waiting;
        throwIfAbandoned(signal);
        const { done, value } = pieces.next();
        if (done === true) return value;
        if (value instanceof Promise) await value;
      }
    } finally {
      if (!isPart) this.#steps.end(this);
    }
  }

  /**
   * Runs pieces that are usually short. The first piece runs synchronously. If it is the last one, its result is returned without a promise. `spend`
   * counts the time of each piece. A later piece waits only when `pause` returns a promise. `signal`: as for `run`.
   */
  runShort<T>(pieces: Generator<unknown, T>, signal?: Abandonment): T | Promise<T> {
    throwIfAbandoned(signal);
    const { done, value } = this.#next(pieces);
    return done === true ? value : this.#runRest(pieces, { after: value, signal });
  }

  async #runRest<T>(pieces: Generator<unknown, T>, { after, signal }: { after: unknown; signal: Abandonment | undefined }): Promise<T> {
    if (after instanceof Promise) await after;
    for (;;) {
      const waiting = this.pause();
      if (waiting !== null) await waiting;
      throwIfAbandoned(signal);
      const { done, value } = this.#next(pieces);
      if (done === true) return value;
      if (value instanceof Promise) await value;
    }
  }

  #next<T>(pieces: Generator<unknown, T>): IteratorResult<unknown, T> {
    const startedMs = performance.now();
    const piece = pieces.next();
    this.spend(performance.now() - startedMs);
    return piece;
  }
}

/** Turns of this process, which has one event loop. */
export const loopTurns = new LoopTurns();
