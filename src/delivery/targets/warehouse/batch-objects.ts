import { isUtf8 } from 'node:buffer';
import type { FieldMapping } from '../../../core/field-mapping.ts';
import type { WarehouseLayout } from '../../../core/records.ts';
import type { StoredEvent } from '../../../data/event-text.ts';
import type { StoredObject } from './object-store.ts';

export interface WarehouseEvent extends Pick<StoredEvent, 'sourceSlug' | 'receivedAtMs' | 'headers' | 'payload'> {
  eventId: string;
}

export interface BatchToWrite {
  /** A ULID: the last part of the keys. */
  id: string;
  layout: WarehouseLayout;
  /** Oldest first. */
  events: readonly WarehouseEvent[];
}

/** Between so many records others get their turn. */
const recordsPerTurn = 50;
const contentTypes = { jsonl: 'application/x-ndjson', json: 'application/json' };

/**
 * The objects of a batch, one per partition: the same bytes under the same keys whenever it is written with the same mapping. Without a
 * mapping a record is `{id, source, receivedAt, headers, payload}`.
 */
export async function batchObjects({ id, layout, events }: BatchToWrite, mapping: FieldMapping | null): Promise<StoredObject[]> {
  const partitions = new Map<string, string[]>();
  for (const [i, event] of events.entries()) {
    if (i > 0 && i % recordsPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
    const path = partitionPath(layout, event);
    const line =
      mapping === null ? wholeRecord(event) : JSON.stringify(mapping({ ...recordHead(event), payload: payloadOf(event.payload).value }));
    const lines = partitions.get(path);
    if (lines === undefined) partitions.set(path, [line]);
    else lines.push(line);
  }
  return [...partitions].map(([path, lines]) => ({
    key: `${path}/${id}.${layout.fileFormat}`,
    body: Buffer.from(layout.fileFormat === 'json' ? `[${lines.join(',\n')}]\n` : `${lines.join('\n')}\n`),
    contentType: contentTypes[layout.fileFormat],
  }));
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
  const joined = new Map<string, string>();
  for (const [name, value] of headers) joined.set(name, joined.has(name) ? `${joined.get(name)}, ${value}` : value);
  return { id: eventId, source: sourceSlug, receivedAt: new Date(receivedAtMs).toISOString(), headers: Object.fromEntries(joined) };
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
