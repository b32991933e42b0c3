import { z } from 'zod';
import { invalidParameter } from '../../../../core/errors.ts';
import { jsonNumberPattern } from '../../../../core/exact-number.ts';
import { throwIfAbandoned } from '../../../../core/loop-turns.ts';
import { isBefore, type Position } from '../../../../data/shard/cursor.ts';
import type { ListedEntry } from '../../../../data/shard/index-pages.ts';
import { endErrorTypes } from '../../../../data/shard/message-conditions.ts';
import type { WebhookEventView, WebhookMessageView } from '../../../../data/webhooks/webhook-message-view.ts';
import { text } from '../../../../resources/text.ts';
import { type Call, type Family, operation } from '../../../http/operation.ts';
import { cursorPaginationRecord, unknownIds } from '../../../http/pagination.ts';
import { queryInteger, queryList, queryTime, timeRange } from '../../../http/query.ts';
import { fullPayloadMemory } from '../../../http/request-memory.ts';
import { StreamedAnswer } from '../../../http/streamed-answer.ts';
import { isoTime, timestamp } from '../../../records/record-fields.ts';
import { errorTypeQuery, messageFilterOf, messageFilterParameters } from '../../shared/message-filters.ts';
import { messageFilter } from './message-narrowing.ts';
import { MessageNames, messageRecord, messageStatus } from './message-record.ts';
import { eventItem, toEventItem } from './webhook-event-record.ts';

const id = text(1, 128);
const rowsPerPiece = 100;
const eventsPerPiece = 8;
/** Payloads of more bytes than this are in memory one at a time. */
const payloadBytesAtOnce = 1024 * 1024;
/** A filter that matches rarely ends its export after so many entries; the cursor leads on. */
const maxEntries = 1_000_000;

const exportedEvent = eventItem
  .extend({ payload: z.unknown().describe('The payload; null when it is no longer stored.') })
  .meta({ id: 'ExportedWebhookEvent' });

/** CSV leaves out what is the same in every row. */
const columnsOf = { events: eventItem.omit({ organizationId: true }), messages: messageRecord.omit({ organizationId: true }) };

const { responseStatus, attemptsMin, attemptsMax, failedFrom, failedTo } = messageFilterParameters;
/** As in the list of messages; an export of events has none of them. */
const ofMessages = {
  endpointId: id.optional().describe('Of messages: only to this endpoint.'),
  errorType: errorTypeQuery(['circuit_open', ...endErrorTypes]),
  responseStatus,
  attemptsMin,
  attemptsMax,
  failedFrom,
  failedTo,
};

const query = z.object({
  format: z.enum(['json', 'csv']).default('json').describe('Format of the file.'),
  type: z.enum(['events', 'messages']).default('events').describe('What is exported.'),
  startDate: queryTime.optional().describe('Not sent earlier: ISO 8601.'),
  endDate: queryTime.optional().describe('Not sent later: ISO 8601.'),
  status: queryList(messageStatus, 'Of messages; of events those with a message of this status.'),
  eventType: text(1, 100).optional().describe('Name of the event type.'),
  applicationId: id
    .optional()
    .describe(
      'Of messages to endpoints of this application; of events those that have such messages, or were sent to this application alone. Of an event with very many messages the first 1,000 are read.',
    ),
  ...ofMessages,
  limit: queryInteger({ min: 1, max: 50_000 }).default(10_000).describe('Most records in the answer.'),
  cursor: text(1, 1024).optional().describe('`nextCursor` of an export before, with the same filters.'),
});
type ExportCall = Call<z.output<typeof query>>;

/** Records of a chunk, as JSON and as cells of CSV. */
interface Row {
  json: string;
  cells: Cell[];
}

/** `json`: a text in JSON. */
type Cell = string | number | { json: string } | null;

export const messageExport: Family = {
  name: 'Export',
  noun: 'message',
  description: 'Events and messages as a file.',
  operations: [
    operation({
      method: 'GET',
      path: '/outbound-messages/export',
      operationId: 'exportOutboundMessages',
      summary: 'Export events or messages',
      description:
        'Newest first. CSV is RFC 4180 with a header row; objects are JSON, and a cell that begins with =, +, -, @, a tab or a carriage return has an apostrophe before it. ' +
        'An export that breaks off lacks its last line. With more records than `limit`, the next export continues with the `cursor` of this one: ' +
        '`pagination.nextCursor` of JSON, the header X-Next-Cursor of CSV; X-Has-More is true or false, and Link has the address of the next export. ' +
        unknownIds,
      scope: 'read',
      query,
      answer: {
        status: 200,
        description: 'A file. With CSV the headers X-Has-More, and where there is more X-Next-Cursor and Link with rel="next".',
        schema: z.object({
          data: z.array(z.union([exportedEvent, messageRecord])).describe('Events or messages.'),
          pagination: cursorPaginationRecord,
          exportedAt: timestamp.describe('When it was made.'),
        }),
        example: {
          data: [
            {
              id: 'evt_00m2k3x7q4uabcdefghijklmnop',
              organizationId: 'org_mzxw6ytboi4dsnrrgq3tkojqge',
              eventType: 'order.paid',
              labels: { country: 'at' },
              metadata: {},
              deliverAt: null,
              idempotencyKey: 'order-17-paid',
              applicationId: null,
              endpointIds: [],
              createdAt: '2026-01-31T12:00:00.000Z',
              messageCount: 3,
              payload: { id: 'o-17', total: 12.5 },
            },
          ],
          pagination: { hasMore: false, nextCursor: null },
          exportedAt: '2026-01-31T12:00:00.000Z',
        },
        otherContent: {
          type: 'text/csv',
          description: 'With format=csv.',
          example: `${csvLine(['id', 'eventType', 'payload'])}${csvLine(['evt_00m2k3x7q4uabcdefghijklmnop', 'order.paid', '{"id":"o-17"}'])}`,
        },
      },
      handle: async (call) => {
        const { format, type } = call.query;
        const day = isoTime(call.services.clock.now()).slice(0, 10);
        const headers = {
          'Content-Type': format === 'csv' ? 'text/csv; charset=utf-8; header=present' : 'application/json; charset=utf-8',
          'Content-Disposition': `attachment; filename="${type}-${day}.${format}"`,
          'X-Content-Type-Options': 'nosniff',
        };
        const filter = await exportFilter(call);
        if (type === 'events') await call.hold(fullPayloadMemory);
        const columns = [...Object.keys(columnsOf[type].shape), ...(type === 'events' ? ['payload'] : [])];
        if (format === 'json') {
          const batches = rowsOf(call, filter, { limit: call.query.limit });
          return new StreamedAnswer(headers, jsonPieces(batches, isoTime(call.services.clock.now())));
        }
        // The headers go before the rows, so where the file ends is looked up first.
        const part = await partOf(whileAwaited(entriesOf(call, filter), call), call.query.limit);
        const pieces = csvPieces(columns, rowsOf(call, filter, part));
        return new StreamedAnswer({ ...headers, ...moreHeaders(call, part.nextCursor) }, pieces);
      },
      errors: ['RESOURCE_NOT_FOUND'],
    }),
  ],
};

/** Rows in batches; what is returned at the end is the cursor for the rest, null when there is none. */
type Batches = AsyncGenerator<Row[], string | null>;

/** The header goes with the first rows: failures before them, such as a forged cursor, can still be sent as an error. */
async function* csvPieces(columns: readonly string[], batches: Batches): AsyncGenerator<string> {
  let header = csvLine(columns);
  for await (const rows of batches) {
    yield header + rows.map(({ cells }) => csvLine(cells)).join('');
    header = '';
  }
}

async function* jsonPieces(batches: Batches, exportedAt: string): AsyncGenerator<string> {
  let before = '{"data":[';
  try {
    for (;;) {
      const { done, value } = await batches.next();
      if (done === true) {
        const pagination = { hasMore: value !== null, nextCursor: value };
        const isEmpty = before !== ',\n';
        yield `${isEmpty ? before : ''}],"pagination":${JSON.stringify(pagination)},"exportedAt":${JSON.stringify(exportedAt)}}\n`;
        return;
      }
      if (value.length === 0) continue;
      yield before + value.map(({ json }) => json).join(',\n');
      before = ',\n';
    }
  } finally {
    await batches.return(null);
  }
}

async function exportFilter(call: ExportCall) {
  const { type, startDate, endDate, status: statuses, ...sent } = call.query;
  const foreign = Object.keys(ofMessages).find((name) =>
    Object.entries(sent).some(([given, value]) => given === name && value !== undefined),
  );
  if (type === 'events' && foreign !== undefined) throw invalidParameter(foreign, 'goes with type=messages only');
  return { ...messageFilterOf(sent), statuses, ...(await messageFilter(call, sent)), ...timeRange(startDate, endDate, dateNames) };
}
type ExportFilter = Awaited<ReturnType<typeof exportFilter>>;

const dateNames = { from: 'startDate', to: 'endDate' };

function entriesOf({ services, caller, query: { type, cursor } }: ExportCall, filter: ExportFilter): AsyncIterable<ListedEntry<unknown>> {
  const { webhookMessages } = services;
  const org = caller.organization.id;
  return type === 'events' ? webhookMessages.everyEvent(org, filter, cursor) : webhookMessages.everyMessage(org, filter, cursor);
}

/** The entries, until the client has gone: a filter that matches rarely has none to send for a million of them. */
async function* whileAwaited<T>(
  entries: AsyncIterable<ListedEntry<T>>,
  { signal }: Pick<ExportCall, 'signal'>,
): AsyncGenerator<ListedEntry<T>> {
  for await (const entry of entries) {
    throwIfAbandoned(signal);
    yield entry;
  }
}

/** Entries of one file: not before `first`, and `last` the last one; null: to the end. */
interface Part {
  limit: number;
  first?: Position | null;
  last?: Position | null;
}

/** Which entries `limit` records are; what comes meanwhile at the beginning of the list is not among them. */
async function partOf(entries: AsyncIterable<ListedEntry<unknown>>, limit: number): Promise<Part & { nextCursor: string | null }> {
  let count = 0;
  let scanned = 0;
  let first: Position | null = null;
  let end: { last: Position; cursor: () => string } | null = null;
  for await (const entry of entries) {
    if (end !== null && isOver(entry, { count, limit, scanned }))
      return { limit: Number.POSITIVE_INFINITY, first, last: end.last, nextCursor: end.cursor() };
    first ??= entry.at;
    scanned += entry.scanned;
    if (count < limit) end = { last: entry.at, cursor: entry.cursor };
    count += entry.item === null ? 0 : 1;
  }
  return { limit: Number.POSITIVE_INFINITY, first, last: null, nextCursor: null };
}

/** Whether a file ends before the entry: it is full and there is another entry, or the scan ends. */
function isOver(entry: ListedEntry<unknown>, { count, limit, scanned }: { count: number; limit: number; scanned: number }): boolean {
  return (count === limit && entry.item !== null) || scanned >= maxEntries;
}

/** The address is that of the request with another cursor. */
function moreHeaders({ query: sent }: ExportCall, nextCursor: string | null): Record<string, string> {
  if (nextCursor === null) return { 'X-Has-More': 'false' };
  const given = Object.entries({ ...sent, cursor: nextCursor }).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return { 'X-Has-More': 'true', 'X-Next-Cursor': nextCursor, Link: `<?${new URLSearchParams(given)}>; rel="next"` };
}

function rowsOf(call: ExportCall, filter: ExportFilter, part: Part): Batches {
  const { services, caller, query: sent } = call;
  const org = caller.organization.id;
  if (sent.type === 'messages') {
    const names = new MessageNames(call);
    const entries = whileAwaited(services.webhookMessages.everyMessage(org, filter, sent.cursor), call);
    return inBatches(entries, { ...part, size: rowsPerPiece }, async function* (views: WebhookMessageView[]) {
      const records = await names.records(views);
      yield records.map((record) => ({ json: JSON.stringify(record), cells: cellsOf(columnsOf.messages, record) }));
    });
  }
  const entries = whileAwaited(services.webhookMessages.everyEvent(org, filter, sent.cursor), call);
  const rowOf = async (view: WebhookEventView): Promise<Row> => {
    const item = toEventItem(view, call);
    // The text as it was sent: reparsed JSON may differ, such as in large numbers.
    const payload = (await services.webhookMessages.payload(org, view.id))?.toString() ?? null;
    return {
      json: `${JSON.stringify(item).slice(0, -1)},"payload":${payload ?? 'null'}}`,
      cells: [...cellsOf(columnsOf.events, item), payload === null ? null : { json: payload }],
    };
  };
  return inBatches(entries, { ...part, size: eventsPerPiece }, async function* (views: WebhookEventView[]) {
    const sizes = await services.messages.payloadSizes(views.map(({ id }) => id));
    if (sizes.values().reduce((sum, bytes) => sum + bytes, 0) <= payloadBytesAtOnce) yield await Promise.all(views.map(rowOf));
    else for (const view of views) yield [await rowOf(view)];
  });
}

async function* inBatches<T>(
  entries: AsyncIterable<ListedEntry<T>>,
  { limit, first = null, last = null, size }: Part & { size: number },
  rowsOf: (items: T[]) => AsyncGenerator<Row[]>,
): Batches {
  let batch: T[] = [];
  let count = 0;
  let scanned = 0;
  let end: (() => string) | null = null;
  for await (const entry of entries) {
    if (first !== null && isBefore(entry.at, first)) continue;
    const isBehind = last !== null && isBefore(last, entry.at);
    if (isBehind || (end !== null && isOver(entry, { count, limit, scanned }))) {
      yield* rowsOf(batch);
      return end?.() ?? null;
    }
    if (count < limit) end = entry.cursor;
    scanned += entry.scanned;
    if (entry.item === null) continue;
    count += 1;
    batch.push(entry.item);
    if (batch.length < size) continue;
    yield* rowsOf(batch);
    batch = [];
  }
  yield* rowsOf(batch);
  return null;
}

/** In the order of the schema. */
function cellsOf(schema: z.ZodObject, record: Readonly<Record<string, unknown>>): Cell[] {
  return Object.keys(schema.shape).map((name) => {
    const value = record[name];
    if (value === null || value === undefined) return null;
    return typeof value === 'string' || typeof value === 'number' ? value : JSON.stringify(value);
  });
}

/** A line of CSV (RFC 4180) with its end. Null is an empty cell; what a spreadsheet would take for a formula, which numbers are not, is disarmed by a `'`. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

function csvCell(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  const isJson = typeof cell === 'object';
  const value = isJson ? cell.json : cell;
  if (isJson && jsonNumberPattern.test(value)) return value;
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
