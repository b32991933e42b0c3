import type { Clock } from '../core/clock.ts';
import { PosthornError } from '../core/errors.ts';
import { RecentOrganizations } from '../core/recent-organizations.ts';
import type { RedisClient } from '../redis/connection.ts';
import { Script, type ScriptArgument } from '../redis/script.ts';
import { redisUnavailable } from '../redis/unavailable.ts';
import { acceptArguments } from './accept-batch.ts';
import type { MessageAcceptor, NewEvent } from './messages.ts';
import { type FindFurtherTargets, OutboxCarrier } from './outbox-carrier.ts';
import { homeShard } from './record-key.ts';
import { list, text } from './script-reply.ts';
import { type ShardKeys, shardKeys } from './shard-keys.ts';

/** `entries` of the outbox that the event has made. */
interface Stored {
  isNew: boolean;
  entries: readonly string[];
}

interface Waiting {
  args: ScriptArgument[];
  bytes: number;
  weight: number;
  resolve: (stored: Stored) => void;
  reject: (error: PosthornError) => void;
  cancelDeadline: () => void;
}

const limits = {
  eventsPerCall: 64,
  bytesPerCall: 4_194_304,
  /** About 5 ms of Redis. */
  weightPerCall: 128,
  callsUnderWay: 8,
  waitingEvents: 10_000,
  waitingBytes: 67_108_864,
  /** Under the 2 s that the API promises. */
  deadlineMs: 1800,
};

/** Deliveries need a while to make room. */
const fullRetrySeconds = 10;

const acceptScript = new Script(new URL('./scripts/accept.lua', import.meta.url));

/**
 * Stores events, each in the shard that its id names; those of one event-loop tick and shard share a script call. A call whose
 * answer is lost may have stored its events: accepting the same ids again is safe.
 */
export class RedisMessageAcceptor implements MessageAcceptor {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #carrier: OutboxCarrier;
  readonly #shards = new Map<number, ShardAcceptor>();
  /** Of which events are accepted, or are being expanded. */
  readonly #organizations: RecentOrganizations;

  constructor({
    redis,
    prefix,
    clock,
    findFurther,
  }: {
    redis: RedisClient;
    prefix: string;
    clock: Clock;
    findFurther?: FindFurtherTargets;
  }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#clock = clock;
    const organizations = new RecentOrganizations(clock);
    this.#organizations = organizations;
    this.#carrier = new OutboxCarrier({
      redis,
      prefix,
      findFurther:
        findFurther &&
        ((event, range, turns) => {
          organizations.add(event.org);
          return findFurther(event, range, turns);
        }),
      clock,
      isBesideOthers: () => organizations.areSeveral,
    });
  }

  /** Rejects with UNAVAILABLE when Redis is away or full, or when too much waits already; within 2 s in any case. */
  async accept(event: NewEvent): Promise<boolean> {
    const shard = homeShard(event.id);
    if (shard === null) throw new PosthornError('INTERNAL', `${event.id} is no id of an event`);
    const known = this.#shards.get(shard) ?? new ShardAcceptor(this.#redis, shardKeys(this.#prefix, shard), this.#clock);
    this.#shards.set(shard, known);
    this.#organizations.add(event.org);
    const { isNew, entries } = await known.accept(event);
    // The event is stored: what is not carried now is carried by a worker.
    if (entries.length > 0) void this.#carrier.carryEntries(shard, entries).catch(() => undefined);
    return isNew;
  }
}

class ShardAcceptor {
  readonly #redis: RedisClient;
  readonly #clock: Clock;
  readonly #keys: ShardKeys;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #callsUnderWay = 0;
  #scheduled = false;

  constructor(redis: RedisClient, keys: ShardKeys, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
    this.#keys = keys;
  }

  accept(event: NewEvent): Promise<Stored> {
    return new Promise((resolve, reject) => {
      const { args, bytes, weight } = acceptArguments(event, this.#keys.shard);
      if (this.#waiting.length >= limits.waitingEvents || this.#waitingBytes + bytes > limits.waitingBytes) {
        throw new PosthornError('UNAVAILABLE', 'too many events wait to be stored', { retryAfterSeconds: 1 });
      }
      const waiting: Waiting = { args, bytes, weight, resolve, reject, cancelDeadline: () => {} };
      waiting.cancelDeadline = this.#clock.after(limits.deadlineMs, () => this.#expire(waiting));
      this.#waiting.push(waiting);
      this.#waitingBytes += bytes;
      this.#schedule();
    });
  }

  #expire(waiting: Waiting): void {
    const position = this.#waiting.indexOf(waiting);
    if (position >= 0) {
      this.#waiting.splice(position, 1);
      this.#waitingBytes -= waiting.bytes;
    }
    waiting.reject(new PosthornError('UNAVAILABLE', 'Redis did not store the event in time', { retryAfterSeconds: 1 }));
  }

  #schedule(): void {
    if (this.#scheduled || this.#callsUnderWay >= limits.callsUnderWay) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#waiting.length > 0 && this.#callsUnderWay < limits.callsUnderWay) void this.#store(this.#nextBatch());
    });
  }

  #nextBatch(): Waiting[] {
    let bytes = 0;
    let count = 0;
    let weight = 0;
    for (const waiting of this.#waiting) {
      const isTooMuch = bytes + waiting.bytes > limits.bytesPerCall || weight + waiting.weight > limits.weightPerCall;
      if (count === limits.eventsPerCall || (count > 0 && isTooMuch)) break;
      bytes += waiting.bytes;
      weight += waiting.weight;
      count++;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  async #store(batch: Waiting[]): Promise<void> {
    this.#callsUnderWay++;
    try {
      const args = batch.flatMap((waiting) => waiting.args);
      const answer = await acceptScript.run(this.#redis, this.#keys.declared, [batch.length, ...args]);
      if (answer === 'full') throw new PosthornError('UNAVAILABLE', 'Redis is nearly full', { retryAfterSeconds: fullRetrySeconds });
      const reply = list(answer);
      for (const [i, waiting] of batch.entries()) {
        const stored = reply[i];
        if (typeof stored === 'string') waiting.reject(new PosthornError('INTERNAL', stored));
        else waiting.resolve({ isNew: stored !== 0, entries: Array.isArray(stored) ? stored.map(text) : [] });
      }
    } catch (error) {
      for (const waiting of batch) waiting.reject(redisUnavailable(error));
    } finally {
      for (const waiting of batch) waiting.cancelDeadline();
      this.#callsUnderWay--;
      if (this.#waiting.length > 0) this.#schedule();
    }
  }
}
