import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { PacedExecutor, type ScriptRunner } from '../../core/paced-executor.ts';
import { Semaphore } from '../../core/semaphore.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, type Script, type ScriptArgument } from '../../redis/script.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';
import { decodeEvent, organizationOf, type StoredEvent } from '../shard/event-text.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { NewEvent } from '../shard/messages.ts';
import { PayloadChunks } from '../shard/payload-chunks.ts';
import { homeShard, recordId, recordKey } from '../shard/record-key.ts';
import { bytes, integer, list, text } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { invalidPerCall, messagesAtOnce, messagesPerCall, outboxEntries } from './accept-batch.ts';

const script = (name: string): Script => new ShardScript(new URL(`./${name}.lua`, import.meta.url));
const scripts = {
  read: script('outbox-read'),
  importMessages: script('import-messages'),
  importInvalid: script('import-invalid'),
  importMoved: script('import-moved'),
  news: script('shard-report'),
  done: script('outbox-done'),
  failoverRoom: script('failover-capacity'),
  failoverAnswer: script('failover-answer'),
  expand: script('expand'),
};
const entriesPerRead = 64;

/** How many messages scripts with few, of events with few, make concurrently. */
const messagesSideBySide = 50;
/** After a script with as many as it may have, or for an event with many: Redis serves others meanwhile. */
const pausesPerScript = 2;
const pausesPerScriptBesideOthers = 5;
/** Calls of `carryEntries` that wait; what exceeds them is left to the workers. */
const maxWaiting = 10_000;

/** Finds some of an event's further targets, with scripts in these turns; `next` is the continuation, null at the end. */
export type FindFurtherTargets = (
  event: StoredEvent,
  range: { from: number; end: number },
  turns: ScriptRunner | null,
) => Promise<{ targets: NewEvent['targets']; next: number | null }>;

export interface OutboxCarrierOptions {
  redis: RedisClient;
  prefix: string;
  /** Absent: entries of fan-out continuations are left to others. */
  findFurther?: FindFurtherTargets | undefined;
  /** Absent: there are no pauses. */
  clock?: Clock;
  /** Whether other organizations wait for Redis meanwhile: the pauses are longer then. Default: never. */
  hasContention?: () => boolean;
}

/**
 * Sends the outbox of a shard to other shards (`includes/outbox.lua`): messages for targets there, messages that
 * fail over, and news of records that are gone. Every step may be repeated by any process; an entry is removed once it has arrived.
 */
export class OutboxCarrier {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #findFurther: FindFurtherTargets | null;
  readonly #making = new Semaphore(messagesSideBySide);
  readonly #makingMany: PacedExecutor | null;
  readonly #chunks: PayloadChunks;
  readonly #carrying = new Map<number, Promise<void>>();
  readonly #again = new Set<number>();
  #waiting = 0;

  constructor({ redis, prefix, findFurther, clock, hasContention = () => false }: OutboxCarrierOptions) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#chunks = new PayloadChunks({ redis, prefix });
    this.#findFurther = findFurther ?? null;
    const pauses = (): number => (hasContention() ? pausesPerScriptBesideOthers : pausesPerScript);
    this.#makingMany = clock === undefined ? null : new PacedExecutor({ clock, pausesPerScript: pauses });
  }

  /** Sends these entries, and their continuations. Rejects with UNAVAILABLE when a shard did not answer or is full; the others have theirs. */
  async carryEntries(shard: number, entryIds: readonly string[]): Promise<void> {
    if (this.#waiting >= maxWaiting) return;
    const unreachable = new Set<number>();
    let failure: unknown = null;
    const left = [...entryIds];
    this.#waiting++;
    try {
      while (left.length > 0) {
        const step = await this.#carryBatch(shard, [0, ...left.splice(0, entriesPerRead)], unreachable);
        left.push(...step.further);
        failure ??= step.failure;
      }
    } finally {
      this.#waiting--;
    }
    if (failure !== null) throw failure;
  }

  /** Carries all that is in the outbox now. Rejects with UNAVAILABLE when a shard did not answer or is full; the others have theirs. */
  carry(shard: number): Promise<void> {
    const underWay = this.#carrying.get(shard);
    if (underWay !== undefined) {
      this.#again.add(shard);
      return underWay;
    }
    const work = this.#carryAll(shard).finally(() => this.#carrying.delete(shard));
    this.#carrying.set(shard, work);
    return work;
  }

  async #carryAll(shard: number): Promise<void> {
    do {
      this.#again.delete(shard);
      const unreachable = new Set<number>();
      let failure: unknown = null;
      let next: string | null = '-';
      while (next !== null) {
        const step: { next: string | null; failure: unknown } = await this.#carryBatch(shard, [entriesPerRead, next], unreachable);
        next = step.next;
        failure ??= step.failure;
      }
      if (failure !== null) throw failure;
    } while (this.#again.has(shard));
  }

  /** One page of entries; those for shards that have failed in this pass wait for the next one. */
  async #carryBatch(
    shard: number,
    args: readonly ScriptArgument[],
    unreachable: Set<number>,
  ): Promise<{ next: string | null; further: string[]; failure: unknown }> {
    const further: string[] = [];
    const entries = list(await this.#run(shard, scripts.read, args)).map(list);
    const messages = messagesOfEvents(entries);
    let failure: unknown = null;
    await Promise.all(
      entries.map(async (entry) => {
        const to = Number(text(entry[1]));
        if (unreachable.has(to)) return;
        try {
          const isOfMany = text(entry[2]) === 'x' && (messages.get(text(entry[3])) ?? 0) > messagesAtOnce;
          further.push(...(await this.#carry(shard, entry, isOfMany)));
        } catch (error) {
          // An error of an expansion is not one of this shard.
          if (text(entry[2]) !== 'w') unreachable.add(to);
          failure ??= error;
        }
      }),
    );
    const last = entries.at(-1);
    return { next: last === undefined ? null : text(last[0]), further, failure };
  }

  /** Returns the entries that continue it. */
  async #carry(from: number, entry: readonly unknown[], isOfMany: boolean): Promise<string[]> {
    const [id = '', shard = '', kind = ''] = entry.slice(0, 3).map(text);
    const to = Number(shard);
    switch (kind) {
      case 'x':
        if (await this.#carryMessages({ from, to, entryId: id, isOfMany }, entry)) return [];
        break;
      case 'v':
        await this.#carryMoved(from, to, id, entry);
        break;
      case 'w':
        return await this.#expand(from, id, entry);
      case 'i':
        await this.#makeInvalid(from, id, bytes(entry[4]));
        return [];
      case 'f':
        await this.#requestRoom(from, to, id, entry);
        return [];
      case 'n':
        await this.#tell(to, { kind, id: text(entry[3]), shard: from, message: keyIn(to, 'msg_', from, text(entry[4])) });
        break;
      case 'r':
      case 'g':
        await this.#tell(to, { kind, id: text(entry[3]), shard: from });
        break;
      default:
        // An entry of a later release is carried by the workers of that.
        return [];
    }
    await this.#run(from, scripts.done, [id, kind === 'v' ? text(entry[3]) : '']);
    return [];
  }

  /** One window; the entry for the rest comes after those of what was found. */
  async #expand(shard: number, entry: string, [, , , , stored, from, end]: readonly unknown[]): Promise<string[]> {
    if (this.#findFurther === null) return [];
    const event = bytes(stored).length === 0 ? null : decodeEvent(bytes(stored));
    const range = { from: Number(text(from)), end: Number(text(end)) };
    const { targets, next } =
      event === null ? { targets: [], next: null } : await this.#findFurther(event, range, this.#makingMany?.runnerOf(event.org) ?? null);
    const entries = outboxEntries(targets, shard).flatMap(({ shard: to, count, lines }) => [to, count, lines]);
    const reply = await this.#run(shard, scripts.expand, [entry, next ?? '', ...entries]);
    if (Buffer.isBuffer(reply)) throw isFull(shard);
    return list(reply).map(text);
  }

  /** The answer ends the entry. */
  async #requestRoom(from: number, to: number, id: string, entry: readonly unknown[]): Promise<void> {
    const [target = '', org = '', route = '', destination = ''] = entry.slice(3, 7).map(text);
    const room = integer(await this.#run(to, scripts.failoverRoom, [org, route, destination]));
    await this.#run(from, scripts.failoverAnswer, [namedArgument({ entry: id, target, destination: `${to}/${destination}`, room })]);
  }

  /** Returns true when the entry is ended with it. */
  async #carryMessages(
    { from, to, entryId, isOfMany }: { from: number; to: number; entryId: string; isOfMany: boolean },
    entry: readonly unknown[],
  ): Promise<boolean> {
    const known = bytes(entry[4]);
    if (known.length === 0) return false;
    const lines = text(entry[5]).split('\n');
    const targets = lines.map((line) => {
      const [message = '', route = '', destination = '', ...setting] = line.split(' ');
      return { id: keyIn(to, 'msg_', from, message), route, destination, max: setting.join(' ') };
    });
    const isHere = from === to;
    const source = isHere ? entryId : `${from}/${entryId}`;
    const key = keyIn(to, 'evt_', from, text(entry[3]));
    const make = (event: Buffer, areChunksLost: boolean): Promise<unknown> =>
      this.#run(to, scripts.importMessages, [namedArgument({ event: key, entry: source, areChunksLost, targets }), event]);
    const makeAll = async (): Promise<unknown> => {
      const reply = await this.#withChunks(from, to, known, (lost) => make(known, lost));
      if (!Buffer.isBuffer(reply) || text(reply) !== 'text') return reply;
      const whole = await this.#redis.getBuffer(shardKeys(this.#prefix, from).event(text(entry[3]))).catch(throwUnavailable);
      return whole === null ? 0 : await this.#withChunks(from, to, whole, (lost) => make(whole, lost));
    };
    const isMuch = isOfMany || lines.length >= messagesPerCall;
    const turns = isMuch ? this.#makingMany?.runnerOf(organizationOf(known)) : undefined;
    const made = await (turns === undefined ? this.#making.run(lines.length, makeAll) : turns.run(makeAll));
    if (Buffer.isBuffer(made)) throw isFull(to);
    return isHere;
  }

  /** The script ends the entry. `event`: the first line of its text, empty when it is gone. */
  async #makeInvalid(shard: number, entry: string, event: Buffer): Promise<void> {
    const make = (): Promise<unknown> => this.#run(shard, scripts.importInvalid, [entry]);
    const turns = event.length === 0 ? undefined : this.#makingMany?.runnerOf(organizationOf(event));
    const made = await (turns === undefined ? this.#making.run(invalidPerCall, make) : turns.run(make));
    if (Buffer.isBuffer(made)) throw isFull(shard);
  }

  async #carryMoved(from: number, to: number, entryId: string, entry: readonly unknown[]): Promise<void> {
    const [message = '', event = ''] = entry.slice(3, 5).map(text);
    const [destination = '', org = '', route = '', first = ''] = entry.slice(6, 10).map(text);
    const [hash, attempts] = entry.slice(10, 12).map((flat) => list(flat).map(bytes));
    const output = bytes(entry[12]);
    const stored = bytes(entry[5]);
    const moved = {
      message: keyIn(to, 'msg_', from, message),
      event: keyIn(to, 'evt_', from, event),
      from: `${from}/${entryId}`,
      org,
      route,
      destination,
      first,
      values: hash?.length ?? 0,
    };
    const args = (areChunksLost: boolean): ScriptArgument[] => [
      namedArgument({ ...moved, areChunksLost }),
      stored,
      output,
      ...(hash ?? []),
      ...(attempts ?? []),
    ];
    const reply = await this.#withChunks(from, to, stored, (lost) => this.#run(to, scripts.importMoved, args(lost)));
    // It could not stay there. What is left behind is carried by a worker.
    if (reply === movedOn) void this.carry(to).catch(() => {});
    const home = homeOf(from, message);
    if (home === from || home === to) return;
    const moves = hash?.[hash.findIndex((field, i) => i % 2 === 0 && field.equals(hopsField)) + 1] ?? '0';
    await this.#tell(home, { kind: 'u', id: keyIn(home, 'msg_', from, message), shard: to, moves: integer(moves) });
  }

  /** Runs a script that copies an event with this text, and once more with the chunks of its payload when it lacks these. */
  async #withChunks(from: number, to: number, stored: Buffer, copy: (areChunksLost: boolean) => Promise<unknown>): Promise<unknown> {
    const reply = await copy(false);
    if (!Buffer.isBuffer(reply) || text(reply) !== 'chunks') return reply;
    const { chunks } = decodeEvent(stored);
    const areThere = chunks === undefined || (await this.#chunks.copy(from, to, chunks));
    const again = await copy(!areThere);
    if (!Buffer.isBuffer(again) || text(again) !== 'chunks') return again;
    throw new PosthornError('UNAVAILABLE', `the chunks of a payload did not reach shard ${to} in time`, { retryAfterSeconds: 1 });
  }

  async #tell(shard: number, news: { kind: string; id: string; shard: number; message?: string; moves?: number }): Promise<void> {
    await this.#run(shard, scripts.news, [namedArgument(news)]);
  }

  async #run(shard: number, what: Script, args: readonly ScriptArgument[]): Promise<unknown> {
    try {
      return await what.runBuffer(this.#redis, shardKeys(this.#prefix, shard).declared, args);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}

/** How many messages these entries have of each event. */
function messagesOfEvents(entries: readonly (readonly unknown[])[]): Map<string, number> {
  const messages = new Map<string, number>();
  for (const entry of entries) {
    if (text(entry[2]) !== 'x') continue;
    const event = text(entry[3]);
    messages.set(event, (messages.get(event) ?? 0) + text(entry[5]).split('\n').length);
  }
  return messages;
}

function isFull(shard: number): PosthornError {
  return new PosthornError('UNAVAILABLE', `shard ${shard} is full`, { retryAfterSeconds: 10 });
}

/** Reply of `import-moved.lua` when something was put into the outbox. */
const movedOn = 2;
const hopsField = Buffer.from(hashFields.message.moves);

/** The data of one shard for a record that has this key in another. */
function keyIn(shard: number, prefix: 'evt_' | 'msg_', from: number, key: string): string {
  return recordKey(recordId(prefix, from, key), shard) ?? key;
}

function homeOf(from: number, key: string): number {
  return homeShard(recordId('msg_', from, key)) ?? from;
}
