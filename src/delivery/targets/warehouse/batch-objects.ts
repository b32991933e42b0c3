import { isUtf8 } from 'node:buffer';
import type { FieldMapping } from '../../../core/field-mapping.ts';
import { joinedHeaders } from '../../../core/joined-headers.ts';
import type { WarehouseLayout } from '../../../core/records.ts';
import type { StoredEvent } from '../../../data/event-text.ts';
import { boundedJson } from './bounded-json.ts';
import type { StoredObject } from './object-store.ts';

export interface WarehouseEvent extends Pick<StoredEvent, 'sourceSlug' | 'receivedAtMs' | 'headers' | 'payload'> {
  eventId: string;
}

/** Of the records of one batch; a batch as it came in (5 MiB) stays below it, unless its text has much to escape. */
export const mostBatchBytes = 16 * 1024 * 1024;
const contentTypes = { jsonl: 'application/x-ndjson', json: 'application/json' };

/**
 * The objects of a batch, one per partition: the same bytes under the same keys whenever it is written with the same mapping. Without a
 * mapping a record is `{id, source, receivedAt, headers, payload}`.
 */
export class BatchObjects {
  /** A ULID: the last part of the keys. */
  readonly #id: string;
  readonly #layout: WarehouseLayout;
  readonly #mapping: FieldMapping | null;
  readonly #partitions = new Map<string, Buffer[]>();
  #bytes = 0;

  constructor(id: string, layout: WarehouseLayout, mapping: FieldMapping | null) {
    this.#id = id;
    this.#layout = layout;
    this.#mapping = mapping;
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** Events come in their order. `full`: not added, there is no room left; `unwritable`: it has no record, or one that no batch has room for. */
  add(event: WarehouseEvent): 'added' | 'full' | 'unwritable' {
    const text = this.#record(event);
    const line = text === null ? null : Buffer.from(text);
    if (line === null || line.length > mostBatchBytes) return 'unwritable';
    if (this.#bytes + line.length > mostBatchBytes) return 'full';
    this.#bytes += line.length;
    const path = partitionPath(this.#layout, event);
    const lines = this.#partitions.get(path);
    if (lines === undefined) this.#partitions.set(path, [line]);
    else lines.push(line);
    return 'added';
  }

  /** The objects of what was added, which is then forgotten. */
  take(): StoredObject[] {
    const { fileFormat } = this.#layout;
    const isArray = fileFormat === 'json';
    const before = Buffer.from(isArray ? '[' : '');
    const between = Buffer.from(isArray ? ',\n' : '\n');
    const after = Buffer.from(isArray ? ']\n' : '\n');
    const objects: StoredObject[] = [];
    for (const [path, lines] of this.#partitions) {
      const body = Buffer.concat([before, ...lines.flatMap((line, i) => (i === 0 ? [line] : [between, line])), after]);
      objects.push({ key: `${path}/${this.#id}.${fileFormat}`, body, contentType: contentTypes[fileFormat] });
      this.#partitions.delete(path);
    }
    this.#bytes = 0;
    return objects;
  }

  #record(event: WarehouseEvent): string | null {
    if (this.#mapping === null) return wholeRecord(event);
    try {
      return boundedJson(this.#mapping({ ...recordHead(event), payload: payloadOf(event.payload).value }), mostBatchBytes);
    } catch (error) {
      // What is nested too deeply exhausts the stack.
      if (error instanceof RangeError) return null;
      throw error;
    }
  }
}

/** In the manner of Hive, as readers of partitioned tables know it. Times are those of receipt, in UTC. */
function partitionPath({ prefix, partitionBy }: WarehouseLayout, { receivedAtMs, sourceSlug }: WarehouseEvent): string {
  const [date = '', time = ''] = new Date(receivedAtMs).toISOString().split('T');
  const parts = prefix.split('/').filter((part) => part !== '' && part !== '.' && part !== '..');
  parts.push(`date=${date}`);
  if (partitionBy === 'hour') parts.push(`hour=${time.slice(0, 2)}`);
  if (partitionBy === 'source') parts.push(`source=${sourceSlug}`);
  return parts.join('/');
}

/** The payload's JSON stands in it as it was sent: numbers that JavaScript cannot hold keep their digits. */
function wholeRecord(event: WarehouseEvent): string {
  return `${JSON.stringify(recordHead(event)).slice(0, -1)},"payload":${payloadOf(event.payload).json}}`;
}

function recordHead({ eventId, sourceSlug, receivedAtMs, headers }: WarehouseEvent) {
  return { id: eventId, source: sourceSlug, receivedAt: new Date(receivedAtMs).toISOString(), headers: joinedHeaders(headers) };
}

/** What JSON says; text that is no JSON is a string, bytes that are no text are one in Base64. `json` has no line breaks. */
function payloadOf(payload: Buffer): { value: unknown; json: string } {
  const text = isUtf8(payload) ? payload.toString('utf8') : payload.toString('base64');
  try {
    return { value: JSON.parse(text), json: text.replaceAll(/[\r\n]+/g, ' ').trim() };
  } catch {
    return { value: text, json: JSON.stringify(text) };
  }
}
