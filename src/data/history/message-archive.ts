import { defaultPool } from '../../core/default-pool.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, type Script, type ScriptArgument } from '../../redis/script.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { decodeEvent, type StoredEvent } from '../shard/event-text.ts';
import type { AttemptView, DeliveryView } from '../shard/messages.ts';
import { poolSuffix } from '../shard/pool-suffix.ts';
import { bytes, fields, integer, list, text } from '../shard/script-reply.ts';
import { type ShardKeys, shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { attemptViews, deliveryView, type WebhookMessagePart } from './message-view.ts';

const script = (name: string): Script => new ShardScript(new URL(`./archive-${name}.lua`, import.meta.url));
const scripts = {
  set: script('set'),
  gather: script('gather'),
  take: script('take'),
  batch: script('batch'),
  read: script('read'),
  done: script('done'),
  failed: script('failed'),
};

/** Lease of what one worker writes: longer than reading and uploading a batch may take. */
const holdMs = 150_000;
const entriesPerGather = 500;
const maxScanned = 300;
const membersPerRead = 100;
const bytesPerRead = 1_048_576;

/** When a batch is complete: so many records, or about so many bytes, or the oldest has waited so long. */
export interface ArchiveLimits {
  records: number;
  bytes: number;
  ageMs: number;
}

/** The current batch: the same for every caller, until it has been written. */
export interface ArchiveBatch {
  /** A ULID. */
  id: string;
  layout: string;
  /** Stamps of the history: after the one, and up to the other. */
  after: string;
  last: string;
}

/** A finished message. */
export interface ArchivedMessage {
  view: DeliveryView;
  webhook: WebhookMessagePart;
  attempts: AttemptView[];
  /** Null when it is gone. */
  event: StoredEvent | null;
}

/**
 * The archives of a shard (`../queue/includes/archive.lua`): finished messages of organizations that keep them in an object store. Every
 * call may be sent again. Throws UNAVAILABLE when Redis does not answer.
 */
export class MessageArchive {
  readonly shard: number;
  readonly #redis: RedisClient;
  readonly #keys: ShardKeys;
  readonly #limits: ArchiveLimits;
  readonly #poolSuffix: string;

  /** `pool`: of the worker, which takes what the organizations of that pool have. */
  constructor({
    redis,
    prefix,
    shard = 0,
    pool = defaultPool,
    limits,
  }: { redis: RedisClient; prefix: string; shard?: number; pool?: string; limits: ArchiveLimits }) {
    this.shard = shard;
    this.#redis = redis;
    this.#keys = shardKeys(prefix, shard);
    this.#limits = limits;
    this.#poolSuffix = poolSuffix(pool);
  }

  /** Organizations that have an archive here, with its destination; null: there is none to write to. */
  async settings(): Promise<Map<string, string | null>> {
    const stored = await this.#asking(() => this.#redis.hgetall(this.#keys.archives));
    return new Map(Object.entries(stored).map(([org, destination]) => [org, destination === '' ? null : destination]));
  }

  async set(org: string, destinationId: string | null): Promise<void> {
    await this.#run(scripts.set, [org, destinationId ?? '']);
  }

  /** Ends the archive of an organization; what it has finished goes when its retention is over. */
  async end(org: string): Promise<void> {
    await this.#run(scripts.set, [org]);
  }

  /** Finds what has finished since the last time; true: there is more. */
  async gather(): Promise<boolean> {
    const { records, ageMs } = this.#limits;
    return integer(await this.#run(scripts.gather, [entriesPerGather, records, ageMs])) === 1;
  }

  /**
   * An organization of the pool with something to write, for the caller alone for 150 s. `busy`: those that the caller writes already. Null: there is none
   * among a few hundred; the next call continues after them.
   */
  async take(busy: readonly string[]): Promise<{ org: string; destinationId: string | null } | null> {
    const reply = await this.#run(scripts.take, [namedArgument({ holdMs, mark: this.#poolSuffix, maxLooks: maxScanned, busy })]);
    if (reply === null) return null;
    const [org, destination] = list(reply).map(text);
    return { org: org ?? '', destinationId: destination === undefined || destination === '' ? null : destination };
  }

  /** Null: there is nothing to write. */
  async batch(
    org: string,
    worker: string,
    { layout, destinationId }: { layout: string; destinationId: string },
  ): Promise<ArchiveBatch | null> {
    const { records, bytes: size } = this.#limits;
    const wanted = namedArgument({ org, worker, layout, destination: destinationId, maxRecords: records, maxBytes: size });
    const reply = await this.#run(scripts.batch, [wanted]);
    if (reply === null) return null;
    const [id = '', after = '', last = '', stored = ''] = list(reply).map(text);
    return { id, after, last, layout: stored };
  }

  /** The messages of a batch, in the order in which they ended. */
  async *messages(org: string, { after, last }: Pick<ArchiveBatch, 'after' | 'last'>): AsyncGenerator<ArchivedMessage> {
    for (let next = after; next !== ''; ) {
      const range = namedArgument({ org, after: next, last, maxMessages: membersPerRead, maxBytes: bytesPerRead });
      const [stamp, ...found] = list(await this.#run(scripts.read, [range], 'runBuffer'));
      for (const each of found) yield this.#message(each);
      next = text(stamp);
    }
  }

  /** The batch has been written; false: another worker has recorded it. */
  async done(org: string, batchId: string, messages: number): Promise<boolean> {
    const { records, ageMs } = this.#limits;
    const written = namedArgument({ org, batch: batchId, messages, maxWaiting: records, maxWaitMs: ageMs });
    return integer(await this.#run(scripts.done, [written])) === 1;
  }

  /** Records a failed write. The next try is after `firstMs`, doubled with every failure up to `maxMs`. Returns the number of failures in a row. */
  async failed(org: string, message: string, { firstMs, maxMs }: { firstMs: number; maxMs: number }): Promise<number> {
    const failure = namedArgument({ org, error: message, firstDelayMs: firstMs, maxDelayMs: maxMs });
    return integer(await this.#run(scripts.failed, [failure]));
  }

  /** Nothing has failed, and another worker may take it. */
  async release(org: string): Promise<void> {
    await this.#run(scripts.failed, [namedArgument({ org })]);
  }

  #message(reply: unknown): ArchivedMessage {
    const [key, view, long, event] = list(reply);
    const seen = deliveryView(this.shard, text(key), view);
    const stored = bytes(event);
    return {
      view: seen.view,
      webhook: seen.webhook,
      attempts: attemptViews(fields(list(view)[0]), fields(long)),
      event: stored.length === 0 ? null : decodeEvent(stored),
    };
  }

  async #asking<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  #run(what: Script, args: readonly ScriptArgument[], how: 'run' | 'runBuffer' = 'run'): Promise<unknown> {
    return this.#asking(() => what[how](this.#redis, this.#keys.declared, args));
  }
}
