import { PosthornError } from '../core/errors.ts';
import type { RedisClient } from '../redis/connection.ts';
import { Script, type ScriptArgument } from '../redis/script.ts';
import { redisUnavailable } from '../redis/unavailable.ts';
import { decodeEvent, type StoredEvent } from './event-text.ts';
import { homeShard, recordId, recordKey } from './record-key.ts';
import { bytes, integer, list, text } from './script-reply.ts';
import { shardKeys } from './shard-keys.ts';

const script = (name: string): Script => new Script(new URL(`./scripts/${name}.lua`, import.meta.url));
const scripts = {
  read: script('outbox'),
  importMessages: script('import-messages'),
  importMoved: script('import-moved'),
  news: script('shard-news'),
  done: script('outbox-done'),
  expand: script('expand'),
};
const entriesPerRead = 64;

/** Stores a page of an event's further targets; answers where the next page begins, null after the last. */
export type StorePage = (eventId: string, event: StoredEvent, range: { from: number; end: number }) => Promise<number | null>;

/**
 * Carries what stands in the outbox of a shard to other shards (`includes/outbox.lua`): messages for targets there, messages that
 * fail over, and news of records that are gone. Every step may be repeated, by anybody; an entry is removed once it has arrived.
 */
export class OutboxCarrier {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #storePage: StorePage | null;
  readonly #carrying = new Map<number, Promise<void>>();
  readonly #again = new Set<number>();

  /** Without `storePage` entries that stand for further targets are left to others. */
  constructor({ redis, prefix, storePage }: { redis: RedisClient; prefix: string; storePage?: StorePage | undefined }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#storePage = storePage ?? null;
  }

  /** Carries these entries, and what goes on with them. Rejects with UNAVAILABLE when a shard did not answer or is full; the others have theirs. */
  async carryEntries(shard: number, entryIds: readonly string[]): Promise<void> {
    const unreachable = new Set<number>();
    let failure: unknown = null;
    const left = [...entryIds];
    while (left.length > 0) {
      const step = await this.#carryBatch(shard, [0, ...left.splice(0, entriesPerRead)], unreachable);
      left.push(...step.further);
      failure ??= step.failure;
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
    let failure: unknown = null;
    await Promise.all(
      entries.map(async (entry) => {
        const to = Number(text(entry[1]));
        if (unreachable.has(to)) return;
        try {
          const next = await this.#carry(shard, entry);
          if (next !== '') further.push(next);
        } catch (error) {
          // What an expansion fails at is not this shard.
          if (text(entry[2]) !== 'w') unreachable.add(to);
          failure ??= error;
        }
      }),
    );
    const last = entries.at(-1);
    return { next: last === undefined ? null : text(last[0]), further, failure };
  }

  /** Answers the entry that goes on with it, or ''. */
  async #carry(from: number, entry: readonly unknown[]): Promise<string> {
    const [id = '', shard = '', kind = ''] = entry.slice(0, 3).map(text);
    const to = Number(shard);
    switch (kind) {
      case 'x':
        if (await this.#carryMessages(from, to, id, entry)) return '';
        break;
      case 'v':
        await this.#carryMoved(from, to, id, entry);
        break;
      case 'w':
        return await this.#expand(from, id, entry);
      case 'n':
        await this.#run(to, scripts.news, [kind, text(entry[3]), from, keyIn(to, 'msg_', from, text(entry[4]))]);
        break;
      default:
        await this.#run(to, scripts.news, [kind, text(entry[3]), from]);
    }
    await this.#run(from, scripts.done, [id, kind === 'v' ? text(entry[3]) : '']);
    return '';
  }

  /** One page; the entry that stands for the rest comes behind all others. */
  async #expand(shard: number, entry: string, [, , , key, stored, from, end]: readonly unknown[]): Promise<string> {
    if (this.#storePage === null) return '';
    const event = bytes(stored).length === 0 ? null : decodeEvent(bytes(stored));
    const range = { from: Number(text(from)), end: Number(text(end)) };
    const next = event === null ? null : await this.#storePage(recordId('evt_', shard, text(key)), event, range);
    return text(await this.#run(shard, scripts.expand, [entry, next ?? '']));
  }

  /** Answers true when the entry is ended with it. */
  async #carryMessages(from: number, to: number, entryId: string, entry: readonly unknown[]): Promise<boolean> {
    const event = bytes(entry[4]);
    if (event.length === 0) return false;
    const targets = text(entry[5])
      .split('\n')
      .flatMap((line) => {
        const [message = '', route = '', destination = '', ...setting] = line.split(' ');
        return [keyIn(to, 'msg_', from, message), route, destination, setting.join(' ')];
      });
    const isHere = from === to;
    const source = isHere ? entryId : `${from}/${entryId}`;
    const made = await this.#run(to, scripts.importMessages, [keyIn(to, 'evt_', from, text(entry[3])), event, source, ...targets]);
    if (Buffer.isBuffer(made)) throw new PosthornError('UNAVAILABLE', `shard ${to} is full`, { retryAfterSeconds: 10 });
    return isHere;
  }

  async #carryMoved(from: number, to: number, entryId: string, entry: readonly unknown[]): Promise<void> {
    const [message = '', event = ''] = entry.slice(3, 5).map(text);
    const [destination = '', org = '', route = '', first = ''] = entry.slice(6, 10).map(text);
    const [hash, attempts] = entry.slice(10, 12).map((flat) => list(flat).map(bytes));
    const output = bytes(entry[12]);
    await this.#run(to, scripts.importMoved, [
      keyIn(to, 'msg_', from, message),
      keyIn(to, 'evt_', from, event),
      bytes(entry[5]),
      `${from}/${entryId}`,
      org,
      route,
      destination,
      first,
      output,
      hash?.length ?? 0,
      ...(hash ?? []),
      ...(attempts ?? []),
    ]);
    const home = homeOf(from, message);
    if (home === from || home === to) return;
    const moves = hash?.[hash.findIndex((field, i) => i % 2 === 0 && field.equals(hopsField)) + 1] ?? '0';
    await this.#run(home, scripts.news, ['u', keyIn(home, 'msg_', from, message), to, integer(moves)]);
  }

  async #run(shard: number, what: Script, args: readonly ScriptArgument[]): Promise<unknown> {
    try {
      return await what.runBuffer(this.#redis, shardKeys(this.#prefix, shard).declared, args);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}

const hopsField = Buffer.from('h');

/** What stands in one shard for a record that has this key in another. */
function keyIn(shard: number, prefix: 'evt_' | 'msg_', from: number, key: string): string {
  return recordKey(recordId(prefix, from, key), shard) ?? key;
}

function homeOf(from: number, key: string): number {
  return homeShard(recordId('msg_', from, key)) ?? from;
}
