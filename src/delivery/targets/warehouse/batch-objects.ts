import type { FieldMapping } from '../../../core/field-mapping.ts';
import { joinedHeaders } from '../../../core/joined-headers.ts';
import { payloadJson, payloadValue } from '../../../core/payload-value.ts';
import { readablePayload, storedFormat } from '../../../core/readable-payload.ts';
import type { WarehouseLayout } from '../../../core/records.ts';
import { queryParameters } from '../../../core/sent-query.ts';
import { WorkExceededError } from '../../../core/work-budget.ts';
import type { StoredEvent } from '../../../data/shard/event-text.ts';
import { boundedJson } from './bounded-json.ts';
import type { StoredObject } from './object-writer.ts';
import { PartitionedObjects, prefixParts } from './partitioned-objects.ts';

export interface WarehouseEvent extends Pick<StoredEvent, 'sourceSlug' | 'receivedAtMs' | 'headers' | 'query' | 'payload'> {
  eventId: string;
}

/** Maximum size of the records of one batch. A batch holds 5 MiB of payloads, so it reaches this only if very much of their text is escaped. */
export const maxBatchBytes = 16 * 1024 * 1024;

/** Result of adding an event; `unreadable`: why a mapping cannot read its payload. */
export type Added = 'added' | 'full' | 'unwritable' | 'costly' | { unreadable: string };

/**
 * The objects of a batch, one per partition: the same bytes under the same keys whenever it is written with the same mapping. Without a
 * mapping a record is `{id, source, receivedAt, headers, payload}`, with `query` where the event has one.
 */
export class BatchObjects {
  readonly #layout: WarehouseLayout;
  readonly #mapping: FieldMapping | null;
  readonly #objects: PartitionedObjects;

  /** `id`: a ULID. */
  constructor(id: string, layout: WarehouseLayout, mapping: FieldMapping | null) {
    this.#objects = new PartitionedObjects(id, layout.fileFormat);
    this.#layout = layout;
    this.#mapping = mapping;
  }

  get isEmpty(): boolean {
    return this.#objects.bytes === 0;
  }

  /**
   * Adds the next event, in the order of the batch. `full`: not added, because no space is left. `unwritable`: the event has no record, or one too large for
   * any batch. `costly`: a path of the mapping takes too long. Yields after each column of a mapping.
   */
  *add(event: WarehouseEvent): Generator<undefined, Added> {
    let text: string | null;
    try {
      text = yield* this.#record(event);
    } catch (error) {
      if (error instanceof WorkExceededError) return 'costly';
      if (error instanceof UnreadableError) return { unreadable: error.message };
      throw error;
    }
    const line = text === null ? null : Buffer.from(text);
    if (line === null || line.length > maxBatchBytes) return 'unwritable';
    if (this.#objects.bytes + line.length > maxBatchBytes) return 'full';
    this.#objects.add(partitionPath(this.#layout, event), line);
    return 'added';
  }

  /** Returns the objects of the events added since the last call, and removes them. */
  take(): StoredObject[] {
    return this.#objects.take();
  }

  *#record(event: WarehouseEvent): Generator<undefined, string | null> {
    if (this.#mapping === null) return wholeRecord(event);
    try {
      const payload = yield* mappedPayload(event);
      return yield* boundedJson(this.#mapping({ ...recordHead(event), payload }), maxBatchBytes);
    } catch (error) {
      // Too deep nesting exhausts the stack.
      if (error instanceof RangeError) return null;
      throw error;
    }
  }
}

/** Empty columns for lack of a payload would look like those of an event that has no such fields. */
class UnreadableError extends Error {}

/** Input of the paths of a mapping. Throws UnreadableError. */
function* mappedPayload({ payload, headers }: WarehouseEvent): Generator<undefined, unknown> {
  const contentType = headers.find(([name]) => name === 'content-type')?.[1] ?? '';
  const { bytes, problem } = readablePayload(payload, storedFormat(contentType, headers));
  if (problem !== null) throw new UnreadableError(problem);
  return yield* payloadValue(bytes);
}

/** Hive-style, as readers of partitioned tables expect. Times are those of receipt, in UTC. */
function partitionPath({ prefix, partitionBy }: WarehouseLayout, { receivedAtMs, sourceSlug }: WarehouseEvent): string {
  const [date = '', time = ''] = new Date(receivedAtMs).toISOString().split('T');
  const parts = [...prefixParts(prefix), `date=${date}`];
  if (partitionBy === 'hour') parts.push(`hour=${time.slice(0, 2)}`);
  if (partitionBy === 'source') parts.push(`source=${sourceSlug}`);
  return parts.join('/');
}

/** Contains the payload's JSON as it was sent: numbers that JavaScript cannot hold keep their digits. */
function wholeRecord(event: WarehouseEvent): string {
  return `${JSON.stringify(recordHead(event)).slice(0, -1)},"payload":${payloadJson(event.payload)}}`;
}

function recordHead({ eventId, sourceSlug, receivedAtMs, headers, query }: WarehouseEvent) {
  return {
    id: eventId,
    source: sourceSlug,
    receivedAt: new Date(receivedAtMs).toISOString(),
    headers: joinedHeaders(headers),
    ...(query !== '' && { query: queryParameters(query) }),
  };
}
