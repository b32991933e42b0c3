import { accountOf } from '../../core/account.ts';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { wholePayloadBytes } from '../../core/payload-sizes.ts';
import { RecentOrganizations } from '../../core/recent-organizations.ts';
import { RedisFullError } from '../../core/redis-full-error.ts';
import type { RedisClient } from '../../redis/connection.ts';
import type { ScriptArgument } from '../../redis/script.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { MessageAcceptor, NewEvent } from '../shard/messages.ts';
import { type ChunkedPayload, PayloadChunks } from '../shard/payload-chunks.ts';
import { homeShard } from '../shard/record-key.ts';
import { list, text } from '../shard/script-reply.ts';
import { type ShardKeys, shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { acceptArguments } from './accept-batch.ts';
import { ByteShares, overShare } from './byte-shares.ts';
import { type FindFurtherTargets, OutboxCarrier } from './outbox-carrier.ts';

/** `entries`: ids of the outbox entries of the event. */
interface Stored {
  isNew: boolean;
  entries: readonly string[];
}

interface Waiting {
  args: ScriptArgument[];
  bytes: number;
  weight: number;
  /** Position in the order of arrival. */
  number: number;
  /** How often it was sent. */
  tries: number;
  isExpired: boolean;
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
  /** Maximum tries of one event. Others may use up the bytes that each read of the accounts grants to the shard. A slow Redis ends the event by its deadline first. */
  tries: 50,
  /** While events arrive. */
  refreshAtMostEveryMs: 30_000,
};

const nothing = Buffer.alloc(0);

const acceptScript = new ShardScript(new URL('./accept.lua', import.meta.url));

/**
 * Stores events, each in the shard that its id names; those of one event-loop tick and shard share a script call. A call whose
 * answer is lost may have stored its events: accepting the same ids again is safe.
 */
export class RedisMessageAcceptor implements MessageAcceptor {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #shares: ByteShares;
  readonly #chunks: PayloadChunks;
  #refreshedAtMs = Number.NEGATIVE_INFINITY;
  readonly #carrier: OutboxCarrier;
  readonly #shards = new Map<number, ShardAcceptor>();
  /** Organizations of events that are being accepted or expanded. */
  readonly #organizations: RecentOrganizations;

  constructor({
    redis,
    payloads = redis,
    prefix,
    clock,
    findFurther,
    shards = () => 1,
    memoryLimitBytes,
  }: {
    redis: RedisClient;
    /** Another connection, for the chunks of large payloads: small events do not wait behind them. Default: the same. */
    payloads?: RedisClient | undefined;
    prefix: string;
    clock: Clock;
    findFurther?: FindFurtherTargets;
    /** The number of shards, to find the bytes of accounts elsewhere. Default: those up to the one of the event. */
    shards?: (() => number) | undefined;
    /** Memory of Redis that counts where it has no maxmemory of its own. */
    memoryLimitBytes?: number | undefined;
  }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#clock = clock;
    this.#shares = new ByteShares({ redis, prefix, clock, shards, memoryLimitBytes });
    this.#chunks = new PayloadChunks({ redis: payloads, prefix });
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
      hasContention: () => organizations.hasSeveral,
    });
  }

  /**
   * Rejects with QUEUE_FULL when the account of the event has more than its share of Redis, and then the event is not stored; with UNAVAILABLE when Redis is
   * down or full, or when too much waits already; within 2 s in any case.
   */
  async accept(event: NewEvent): Promise<boolean> {
    const shard = homeShard(event.id);
    if (shard === null) throw new PosthornError('INTERNAL', `${event.id} is no id of an event`);
    const known = this.#shards.get(shard) ?? new ShardAcceptor(this.#redis, shardKeys(this.#prefix, shard), this.#clock, this.#shares);
    this.#shards.set(shard, known);
    this.#organizations.add(event.org);
    this.#refreshNowAndThen(shard);
    const { isNew, entries } =
      event.payload.length > wholePayloadBytes ? await this.#acceptLarge(known, shard, event) : await known.accept(event);
    // The event is stored. A worker carries the entries that are not carried now.
    if (entries.length > 0) void this.#carrier.carryEntries(shard, entries).catch(() => undefined);
    return isNew;
  }

  /** Writes the chunks first, and drops them if the event is not stored. */
  async #acceptLarge(known: ShardAcceptor, shard: number, event: NewEvent): Promise<Stored> {
    await this.#refuseWithoutRoom(shard, event.org);
    const chunked = await this.#chunks.write(shard, event.payload);
    try {
      return await known.accept({ ...event, payload: nothing }, chunked);
    } catch (error) {
      // After a lost reply the event may be stored. Its chunks are then referenced, and `drop` leaves them.
      this.#chunks.drop(shard, chunked).catch(() => undefined);
      throw error;
    }
  }

  /** Refuses what the script would refuse, before chunks are written. */
  async #refuseWithoutRoom(shard: number, org: string): Promise<void> {
    const read = async (): Promise<(string | null)[]> =>
      await this.#redis
        .hmget(shardKeys(this.#prefix, shard).declared[0], hashFields.control.full, hashFields.control.accountsOver)
        .catch(throwUnavailable);
    const isOver = ([, over]: readonly (string | null)[]): boolean => over?.split(' ').includes(accountOf(org)) === true;
    const state = await read();
    if (state[0] != null) throw new RedisFullError();
    if (!isOver(state)) return;
    if (this.#shares.isStale) await this.#shares.refresh(shard);
    if (isOver(await read())) throw overShare();
  }

  /** Reads the memory limit again from time to time, because it may have changed. A full shard reads it at once by itself. */
  #refreshNowAndThen(shard: number): void {
    if (this.#clock.now() - this.#refreshedAtMs < limits.refreshAtMostEveryMs) return;
    this.#refreshedAtMs = this.#clock.now();
    this.#shares.refresh(shard).catch(() => undefined);
  }
}

function nothingToCancel(): void {}

class ShardAcceptor {
  readonly #redis: RedisClient;
  readonly #clock: Clock;
  readonly #keys: ShardKeys;
  readonly #shares: ByteShares;
  /** Refreshes under way. No event is sent meanwhile, so that events keep their order. */
  #refreshes = 0;
  #next = 0;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #callsUnderWay = 0;
  #scheduled = false;

  constructor(redis: RedisClient, keys: ShardKeys, clock: Clock, shares: ByteShares) {
    this.#shares = shares;
    this.#redis = redis;
    this.#clock = clock;
    this.#keys = keys;
    void this.#refreshFirst();
  }

  /** Refreshes before the first event is sent. Otherwise the script would send the first events back for a refresh, and later ones would overtake them. */
  async #refreshFirst(): Promise<void> {
    this.#refreshes++;
    await this.#shares.refresh(this.#keys.shard).catch(() => undefined);
    this.#refreshes--;
    if (this.#waiting.length > 0) this.#schedule();
  }

  accept(event: NewEvent, chunked: ChunkedPayload | null = null): Promise<Stored> {
    return new Promise((resolve, reject) => {
      const { args, bytes, weight } = acceptArguments(event, this.#keys.shard, chunked);
      if (this.#waiting.length >= limits.waitingEvents || this.#waitingBytes + bytes > limits.waitingBytes) {
        throw new PosthornError('UNAVAILABLE', 'too many events wait to be stored', { retryAfterSeconds: 1 });
      }
      const waiting: Waiting = {
        args,
        bytes,
        weight,
        number: this.#next++,
        tries: 0,
        isExpired: false,
        resolve,
        reject,
        cancelDeadline: nothingToCancel,
      };
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
    waiting.isExpired = true;
    waiting.reject(new PosthornError('UNAVAILABLE', 'Redis did not store the event in time', { retryAfterSeconds: 1 }));
  }

  #schedule(): void {
    if (this.#scheduled || !this.#maySend) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#waiting.length > 0 && this.#maySend) void this.#store(this.#nextBatch());
    });
  }

  get #maySend(): boolean {
    return this.#refreshes === 0 && this.#callsUnderWay < limits.callsUnderWay;
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
    let ended = batch;
    try {
      const args = batch.flatMap((waiting) => waiting.args);
      const answer = await acceptScript.run(this.#redis, this.#keys.declared, [batch.length, ...args]);
      if (answer === 'full') throw new RedisFullError();
      const reply = list(answer);
      const again = batch.filter((waiting, i) => this.#goesAgain(waiting, reply[i]));
      if (again.length > 0) {
        ended = batch.filter((waiting) => !again.includes(waiting));
        void this.#sendAgain(again);
      }
      for (const [i, waiting] of batch.entries()) if (!again.includes(waiting)) this.#end(waiting, reply[i]);
    } catch (error) {
      for (const waiting of ended) waiting.reject(redisUnavailable(error));
    } finally {
      for (const waiting of ended) waiting.cancelDeadline();
      this.#callsUnderWay--;
      if (this.#waiting.length > 0) this.#schedule();
    }
  }

  /** Whether a check of the accounts may change the reply of the script to the event. */
  #goesAgain(waiting: Waiting, reply: unknown): boolean {
    if (waiting.isExpired || waiting.tries >= limits.tries) return false;
    return reply === 'look' || (reply === 'over' && this.#shares.isStale);
  }

  async #sendAgain(batch: readonly Waiting[]): Promise<void> {
    this.#refreshes++;
    try {
      await this.#shares.refresh(this.#keys.shard);
      const waiting = batch.filter(({ isExpired }) => !isExpired);
      for (const each of waiting) {
        each.tries++;
        this.#waitingBytes += each.bytes;
      }
      this.#waiting = [...waiting, ...this.#waiting].sort((one, other) => one.number - other.number);
    } catch (error) {
      for (const each of batch) {
        each.cancelDeadline();
        each.reject(redisUnavailable(error));
      }
    } finally {
      this.#refreshes--;
      if (this.#waiting.length > 0) this.#schedule();
    }
  }

  #end(waiting: Waiting, reply: unknown): void {
    if (reply === 'over') waiting.reject(overShare());
    else if (reply === 'look')
      waiting.reject(new PosthornError('UNAVAILABLE', 'Redis has too little free memory at the moment', { retryAfterSeconds: 1 }));
    else if (reply === 'chunks')
      waiting.reject(new PosthornError('UNAVAILABLE', 'Redis did not store the event in time', { retryAfterSeconds: 1 }));
    else if (typeof reply === 'string') waiting.reject(new PosthornError('INTERNAL', reply));
    else waiting.resolve({ isNew: reply !== 0, entries: Array.isArray(reply) ? reply.map(text) : [] });
  }
}
