import type { Clock } from '../../../../core/clock.ts';

/** The part of one event in the order in which events are stored. */
export interface StoringTurn {
  /** Begins `run` once the event before has begun this step, or has ended. A claim comes before a count. */
  begin<T>(step: 'claim' | 'count', run: () => Promise<T>): Promise<T>;
  /** Begins `run`, which stores the event in `shard`, so that lists show the event after those before it. */
  store<T>(shard: number, run: () => Promise<T>): Promise<T>;
}

/** The order of an event sent alone. */
export const unordered: StoringTurn = { begin: (_, run) => run(), store: (_, run) => run() };

interface Stored {
  shard: number;
  isOver: Promise<void>;
}

/** An event of the list: the next one waits for its steps. */
class PendingEvent {
  readonly claim = Promise.withResolvers<void>();
  readonly count = Promise.withResolvers<void>();
  /** The last event up to this one that is stored; null: there is none. */
  readonly stored = Promise.withResolvers<Stored | null>();
}

/**
 * Stores the events of one list in its order, although they are evaluated concurrently: each step of an event begins after that of the event before, and
 * need not wait for its end. Events with one idempotency key follow each other as a whole: the first one that is not refused is the one that is stored.
 */
export class StoringOrder {
  #last = new PendingEvent();
  readonly #ends = new Map<string, Promise<void>>();
  readonly #clock: Pick<Clock, 'sleep'>;

  constructor(clock: Pick<Clock, 'sleep'>) {
    this.#clock = clock;
    this.#last.claim.resolve();
    this.#last.count.resolve();
    this.#last.stored.resolve(null);
  }

  /** Runs `take` for the next event of the list. */
  async next<T>(idempotencyKey: string | undefined, take: (turn: StoringTurn) => Promise<T>): Promise<T> {
    const before = this.#last;
    const place = new PendingEvent();
    this.#last = place;
    const sameKey = idempotencyKey === undefined ? undefined : this.#ends.get(idempotencyKey);
    const turn = turnAt(place, before, this.#clock);
    const taken = sameKey === undefined ? take(turn) : sameKey.then(() => take(turn));
    if (idempotencyKey !== undefined) this.#ends.set(idempotencyKey, ended(taken));
    try {
      return await taken;
    } finally {
      void before.claim.promise.then(place.claim.resolve);
      void before.count.promise.then(place.count.resolve);
      void before.stored.promise.then(place.stored.resolve);
    }
  }
}

function turnAt(place: PendingEvent, before: PendingEvent, clock: Pick<Clock, 'sleep'>): StoringTurn {
  return {
    begin: async (step, run) => {
      await before[step].promise;
      const running = run();
      place.claim.resolve();
      place[step].resolve();
      return await running;
    },
    store: async (shard, run) => {
      const last = await before.stored.promise;
      if (last !== null && last.shard !== shard) {
        await last.isOver;
        // Lists put records of one millisecond in the order of their shards. A timer may fire within the millisecond that it should pass.
        if (last.shard > shard) await clock.sleep(2);
      }
      const storing = run();
      place.stored.resolve({ shard, isOver: ended(storing) });
      return await storing;
    },
  };
}

function ended(work: Promise<unknown>): Promise<void> {
  return work.then(
    () => {},
    () => {},
  );
}
