import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { decodeOutput, type EventOutput } from '../queue/event-output.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { ReaderOptions } from '../shard/index-pages.ts';
import { onePiece, PayloadChunks } from '../shard/payload-chunks.ts';
import { recordKey } from '../shard/record-key.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardReader } from '../shard/shard-reader.ts';
import { RedisMessageReader } from './message-reader.ts';
import { eventView } from './message-view.ts';

/** Full payload of a delivery. */
export interface FullPayload {
  contentType: string;
  /** Null: none. */
  contentEncoding: string | null;
  bytes: number;
  /** A chunk that is null means that the rest is gone. */
  pieces: AsyncIterable<Buffer | null>;
}

/** Payloads of messages, as workers deliver them. Throws UNAVAILABLE when Redis does not answer. */
export class LinkedPayloads {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #messages: RedisMessageReader;
  readonly #chunks: PayloadChunks;

  constructor(options: ReaderOptions) {
    const { redis, prefix } = options;
    this.#redis = redis;
    this.#prefix = prefix;
    this.#messages = new RedisMessageReader(options);
    this.#chunks = new PayloadChunks({ redis, prefix });
  }

  /**
   * The payload of a message, from its current shard. `outputOf`: the route or transform whose output replaces it; null: none. Null: the
   * message, or what it delivers, is no longer stored.
   */
  async read(org: string, messageId: string, outputOf: string | null): Promise<FullPayload | null> {
    const located = (await this.#messages.located(org, [messageId])).get(messageId);
    if (located === undefined) return null;
    const { shard, view } = located;
    const messageKey = recordKey(messageId, shard);
    const eventKey = recordKey(view.eventId, shard);
    if (messageKey === null || eventKey === null) return null;
    if (outputOf !== null) {
      const output = await this.#output(shard, { messageKey, eventKey, outputOf });
      if (output === null) return null;
      const { contentType, body } = output;
      return { contentType, contentEncoding: null, bytes: body.length, pieces: onePiece(body) };
    }
    const reply = await new ShardReader(this.#redis, this.#prefix, shard).event(eventKey);
    if (reply === null) return null;
    const { view: event, chunks } = eventView(shard, eventKey, reply);
    const header = (wanted: string): string | undefined => event.headers.find(([name]) => name === wanted)?.[1];
    const pieces = chunks === null ? onePiece(event.payload) : this.#chunks.stream(shard, chunks);
    const contentType = header('content-type') ?? event.contentType;
    return { contentType, contentEncoding: header('content-encoding') ?? null, bytes: event.size, pieces };
  }

  /** As `queue/output.lua` keeps it. */
  async #output(
    shard: number,
    { messageKey, eventKey, outputOf }: { messageKey: string; eventKey: string; outputOf: string },
  ): Promise<EventOutput | null> {
    const keys = shardKeys(this.#prefix, shard);
    const field = await this.#redis.hget(keys.message(messageKey), hashFields.message.hasOutput).catch(throwUnavailable);
    if (field === null) return null;
    const kept = await this.#redis.hgetBuffer(keys.outputs(eventKey), field === '1' ? outputOf : field).catch(throwUnavailable);
    return kept === null ? null : decodeOutput(kept);
  }
}
