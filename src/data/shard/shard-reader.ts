import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, type Script, type ScriptArgument } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import type { Position } from './cursor.ts';
import { hashFields } from './hash-fields.ts';
import type { OutcomeConditions } from './message-conditions.ts';
import { listed, type OneOrMore } from './message-filter.ts';
import { bytes, integer, list, text } from './script-reply.ts';
import { type ShardKeys, shardKeys } from './shard-keys.ts';
import { ShardScript } from './shard-script.ts';

const listScript = new ShardScript(new URL('./list.lua', import.meta.url));
const sizesScript = new ShardScript(new URL('./index-sizes.lua', import.meta.url));
const matchingScript = new ShardScript(new URL('./matching-messages.lua', import.meta.url));
const messagesOfEventsScript = new ShardScript(new URL('./messages-of-events.lua', import.meta.url));
const waitingScript = new ShardScript(new URL('./waiting-messages.lua', import.meta.url));
const targetsPerStep = 200;
/** For an organization with more targets the backlog of each is not read. */
const maxWaitingSteps = 100;
const readScript = new ShardScript(new URL('./read.lua', import.meta.url));

/** An entry of an index; `reply` is null when its record is gone. */
export interface IndexEntry {
  ms: number;
  number: number;
  key: string;
  reply: unknown;
  /** Keys of messages of an event, where these are read: those here that may match, at most the first 1,000. */
  asked?: readonly string[];
}

/** Which entries of an index may match (`list.lua`); what is absent lets all pass. */
export interface IndexConditions {
  /** Status letters of messages, or statuses of events, each between spaces. */
  statuses?: string | undefined;
  /** Reasons of messages that are or were dead letters. */
  reasons?: readonly string[] | undefined;
  routeId?: OneOrMore | undefined;
  destinationId?: OneOrMore | undefined;
  /** Names of event types of messages. */
  eventType?: OneOrMore | undefined;
  /** Conditions on the attempts of messages. */
  outcome?: OutcomeConditions | null | undefined;
}

/** Reads the records of one shard. Throws UNAVAILABLE when Redis does not answer. */
export class ShardReader {
  readonly shard: number;
  readonly #redis: RedisClient;
  readonly #keys: ShardKeys;

  constructor(redis: RedisClient, prefix: string, shard: number) {
    this.shard = shard;
    this.#redis = redis;
    this.#keys = shardKeys(prefix, shard);
  }

  /** `event_view`, or null. */
  async event(key: string): Promise<unknown> {
    return await this.#run(readScript, ['e', key]);
  }

  /** `event_view` and pairs of a key and a `message_view`, or null. */
  async eventWithMessages(key: string): Promise<unknown> {
    return await this.#run(readScript, ['d', key]);
  }

  /** The organization of the event and the text of its results of filters, or null. */
  async filterResults(key: string): Promise<unknown> {
    return await this.#run(readScript, ['f', key]);
  }

  /** Per key `message_view`, or null. */
  async messages(keys: readonly string[]): Promise<readonly unknown[]> {
    return keys.length === 0 ? [] : list(await this.#run(readScript, ['m', ...keys]));
  }

  /** Per key a `message_view` with the beginning of its event (`read.lua`), or null. */
  async messagesWithEvents(keys: readonly string[], payloadBytes: number): Promise<readonly unknown[]> {
    return keys.length === 0 ? [] : list(await this.#run(readScript, ['s', payloadBytes, ...keys]));
  }

  /** Per key the text of an event without its payload, or null. */
  async eventHeads(keys: readonly string[]): Promise<(Buffer | null)[]> {
    if (keys.length === 0) return [];
    const replies = list(await this.#run(readScript, ['h', ...keys]));
    return keys.map((_, i) => (replies[i] == null ? null : bytes(list(replies[i])[0])));
  }

  /** Per key the bytes of the payload of an event, or null. */
  async payloadSizes(keys: readonly string[]): Promise<(number | null)[]> {
    if (keys.length === 0) return [];
    const replies = list(await this.#run(readScript, ['h', ...keys]));
    return keys.map((_, i) => (replies[i] == null ? null : integer(list(replies[i])[1])));
  }

  /** The texts of the first of these events, null for one that is not there: at least one, and as many as have 256 KiB together. */
  async eventTexts(keys: readonly string[]): Promise<(Buffer | null)[]> {
    if (keys.length === 0) return [];
    return list(await this.#run(readScript, ['w', ...keys])).map((each) => (each === null ? null : bytes(each)));
  }

  /** Per key `event_head_view`, or null. */
  async eventHeadViews(keys: readonly string[]): Promise<readonly unknown[]> {
    return keys.length === 0 ? [] : list(await this.#run(readScript, ['v', ...keys]));
  }

  /** Per key the status letter and the shard where the message is now (null: here), or null. */
  async letters(keys: readonly string[]): Promise<({ letter: string; elsewhere: number | null } | null)[]> {
    if (keys.length === 0) return [];
    const replies = list(await this.#run(readScript, ['l', ...keys]));
    return keys.map((_, i) => {
      const reply = replies[i];
      if (reply === null || reply === undefined) return null;
      const [letter, elsewhere] = list(reply).map(text);
      return { letter: letter ?? '', elsewhere: elsewhere === '' || elsewhere === undefined ? null : Number(elsewhere) };
    });
  }

  /** Per key the same and, of a message that has ended, its dead-letter reason, else null; or null. */
  async ends(keys: readonly string[]): Promise<({ letter: string; elsewhere: number | null; end: { reason: string } | null } | null)[]> {
    if (keys.length === 0) return [];
    const replies = list(await this.#run(readScript, ['n', ...keys]));
    return keys.map((_, i) => {
      const reply = replies[i];
      if (reply === null || reply === undefined) return null;
      const [letter = '', elsewhere = '', reason] = list(reply).map(text);
      return { letter, elsewhere: elsewhere === '' ? null : Number(elsewhere), end: reason === undefined ? null : { reason } };
    });
  }

  /** Per key of an event at home the keys of its messages that may match, at most the first 1,000. */
  async matchingMessages(
    keys: readonly string[],
    conditions: Pick<IndexConditions, 'routeId' | 'destinationId' | 'outcome'>,
  ): Promise<string[][]> {
    if (keys.length === 0) return [];
    const { routeId, destinationId, outcome } = conditions;
    const wanted = namedArgument({ events: keys, routes: together(routeId), destinations: together(destinationId), outcome });
    return list(await this.#run(matchingScript, [wanted])).map((asked) => list(asked).map(text));
  }

  /** Entries of an index before `position`, newest first. */
  async entries(
    index: string,
    kind: 'e' | 'm' | 'i',
    { position, fromMs, count }: { position: Position; fromMs: number; count: number },
  ): Promise<IndexEntry[]> {
    return (await this.scan(index, kind, { position, fromMs, count, looks: count })).entries;
  }

  /**
   * The same of at most `looks` entries, without those that cannot match: at most `count`. `last` is the last entry that was read; null: there are no
   * more.
   */
  async scan(
    index: string,
    kind: 'e' | 'm' | 'i',
    {
      position,
      fromMs,
      count,
      looks,
      statuses = '',
      reasons = [],
      routeId,
      destinationId,
      eventType,
      outcome,
    }: { position: Position; fromMs: number; count: number; looks: number } & IndexConditions,
  ): Promise<{ entries: IndexEntry[]; last: { ms: number; number: number } | null; scanned: number }> {
    const wanted = namedArgument({
      index,
      before: this.#before(position),
      fromMs,
      count,
      maxLooks: looks,
      kind,
      statuses,
      reasons: reasons.length === 0 ? '' : ` ${reasons.join(' ')} `,
      routes: together(routeId),
      destinations: together(destinationId),
      eventTypes: together(eventType),
      outcome,
    });
    const reply = await this.#run(listScript, [wanted]);
    const [lastMs, lastNumber, scanned, found] = list(reply);
    const entries = list(found).map((entry) => {
      const [entryMs, entryNumber, key, record, asked] = list(entry);
      const place = { ms: integer(entryMs), number: integer(entryNumber), key: text(key) };
      return { ...place, reply: record ?? null, asked: asked === undefined ? [] : list(asked).map(text) };
    });
    const last = integer(scanned) === 0 ? null : { ms: integer(lastMs), number: integer(lastNumber) };
    return { entries, last, scanned: integer(scanned) };
  }

  /**
   * How many entries indexes have. `hasFailedBatches`: members of batches may be missing in the index of failures.
   */
  async sizes(org: string, indexes: readonly string[]): Promise<{ sizes: number[]; hasFailedBatches: boolean }> {
    const [batches, ...sizes] = list(await this.#run(sizesScript, [org, ...indexes]));
    return { sizes: sizes.map(integer), hasFailedBatches: integer(batches) === 1 };
  }

  /** Keys of the messages of all events of sources, at most `most`; null: there are more, or not all are known. */
  async messagesOfSources(sources: readonly string[], most: number): Promise<string[] | null> {
    const reply = await this.#run(messagesOfEventsScript, [most, ...sources]);
    return Array.isArray(reply) ? reply.map(text) : null;
  }

  /** Keys of the messages in work streams of an organization, of these routes or destinations or all; at most `max`, else null. */
  async waiting(org: string, narrow: readonly string[], max: number): Promise<string[] | null> {
    const found: string[] = [];
    let cursor = '0';
    for (let steps = 0; steps < maxWaitingSteps; steps++) {
      const wanted = { org, cursor, maxLooks: targetsPerStep, maxMessages: max - found.length, ids: narrow };
      const reply = await this.#run(waitingScript, [namedArgument(wanted)]);
      if (!Array.isArray(reply)) return null;
      const [next, keys] = reply;
      found.push(...list(keys).map(text));
      cursor = text(next);
      if (cursor === '0') return found;
    }
    return null;
  }

  /** Per id its counters as `includes/count.lua` has written them; empty: none. */
  async counters(org: string, ids: readonly string[]): Promise<number[][]> {
    if (ids.length === 0) return [];
    const stored = await this.#redis.hmget(this.#keys.counters(org), ...ids).catch(throwUnavailable);
    return stored.map((counters) => (counters === null ? [] : counters.split(' ').map(Number)));
  }

  /** The hashes of the attempts of a message. */
  async attempts(key: string): Promise<[short: Map<string, string>, long: Map<string, string>]> {
    const [short, long] = await Promise.all([
      this.#redis.hgetall(this.#keys.message(key)),
      this.#redis.hgetall(this.#keys.attempts(key)),
    ]).catch(throwUnavailable);
    const batch = short[hashFields.message.batch];
    if (batch === undefined) return [new Map(Object.entries(short)), new Map(Object.entries(long))];
    const [ofBatch, longOfBatch] = await Promise.all([
      this.#redis.hgetall(this.#keys.message(batch)),
      this.#redis.hgetall(this.#keys.attempts(batch)),
    ]).catch(throwUnavailable);
    const before = Number(short[hashFields.message.attempts] ?? '0');
    const made = Number(ofBatch[hashFields.message.attempts] ?? '0');
    const of = (own: Record<string, string>, attempts: Record<string, string>): Map<string, string> =>
      new Map([...Object.entries(own), ...numbered(attempts, before)]);
    return [of(short, ofBatch).set(hashFields.message.attempts, String(before + made)), of(long, longOfBatch)];
  }

  /** The position as this shard counts: at the same time the entries of higher shards come first. */
  #before({ ms, shard, number }: Position): { ms: number; number: number } {
    if (this.shard === shard) return { ms, number };
    return { ms: this.shard < shard ? ms + 1 : ms, number: 0 };
  }

  async #run(script: Script, args: readonly ScriptArgument[]): Promise<unknown> {
    return await script.runBuffer(this.#redis, this.#keys.declared, args).catch(throwUnavailable);
  }
}

function together(all: OneOrMore | undefined): string {
  return listed(all).join(' ');
}

/** The attempts of a batch, counted on from those that a member had before. */
function numbered(attempts: Record<string, string>, before: number): [string, string][] {
  return Object.entries(attempts).flatMap(([number, attempt]): [string, string][] =>
    /^\d+$/.test(number) ? [[String(before + Number(number)), attempt]] : [],
  );
}
