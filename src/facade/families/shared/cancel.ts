import { z } from 'zod';
import { compileCelSearch } from '../../../core/cel-filter.ts';
import { isPosthornError, PosthornError } from '../../../core/errors.ts';
import { throwIfAbandoned } from '../../../core/loop-turns.ts';
import { attemptErrorTypes } from '../../../data/shard/attempt-record.ts';
import { cursorOf, cursorText } from '../../../data/shard/cursor.ts';
import type { MessageFilter, PayloadFilter } from '../../../data/shard/message-filter.ts';
import type { Cancellation, CancelResult, PageQuery, ScannedPage } from '../../../data/shard/messages.ts';
import { text } from '../../../resources/text.ts';
import type { Call } from '../../http/operation.ts';
import { queryTime } from '../../http/query.ts';
import { unknownId } from '../../records/filter-ids.ts';
import { isoTime, timestamp } from '../../records/record-fields.ts';
import { messageFilterOf, turnAndSignal } from './message-filters.ts';
import { inFilterWords, sentIds, sentOutcome, wrongInFilter } from './sent-filter.ts';

/** The cancel of deliveries and of messages to endpoints, in the words of both. */

const perPage = 100;
/** Limits of one request: pages, and time. */
const maxPages = 5;
const longestMs = 3000;

const count = z.int().min(0);

/** Cancels messages of `org` for the caller. */
export function cancelFor({ services, caller }: Call, org: string, ids: readonly string[]): Promise<Map<string, CancelResult>> {
  return services.canceller.cancel(org, ids, caller.credential.name);
}

export const cancelDescription =
  'Ends what waits as a dead letter, which can be sent again. An attempt under way is not interrupted: unless it succeeds, the message ends then. A member of a batch ends with its batch. It counts for no circuit, alert or failure rate.';

export const cancelledStatus = z
  .enum(['cancelled', 'cancelling'])
  .describe('cancelled: it is a dead letter. cancelling: it becomes one, unless the attempt that is under way succeeds.');

/** The result for one message. RESOURCE_NOT_FOUND, and CONFLICT where nothing waits. `noun` names the message. */
export async function cancelOne(call: Call, org: string, wanted: string, noun: string): Promise<z.output<typeof cancelledStatus>> {
  const result = (await cancelFor(call, org, [wanted])).get(wanted) ?? 'not_found';
  switch (result) {
    case 'cancelled':
    case 'cancelling':
      return result;
    case 'not_found':
      throw new PosthornError('RESOURCE_NOT_FOUND', `There is no such ${noun}.`);
    case 'ended':
      throw new PosthornError('CONFLICT', `The ${noun} has ended: only what waits can be cancelled.`);
    case 'moving':
      throw new PosthornError('CONFLICT', `The ${noun} is moving to another queue: cancel it again in a second.`);
    default:
      return result satisfies never;
  }
}

export const cancelResult = z
  .enum(['cancelled', 'cancelling', 'ended', 'moving', 'not_found'])
  .describe(
    'cancelled and cancelling as of a single one. ended: it had ended. moving: to another queue; cancel it again.',
  ) satisfies z.ZodType<CancelResult>;

export const cancelCounts = {
  cancelled: count.describe('How many are dead letters now.'),
  cancelling: count.describe('How many become dead letters unless the attempt that is under way succeeds.'),
  skipped: count.describe('How many are neither.'),
};

export function countsOf(results: Iterable<CancelResult>): z.output<z.ZodObject<typeof cancelCounts>> {
  const all = [...results];
  const cancelled = all.filter((each) => each === 'cancelled').length;
  const cancelling = all.filter((each) => each === 'cancelling').length;
  return { cancelled, cancelling, skipped: all.length - cancelled - cancelling };
}

/** Deliveries or messages of one event, at most: as many as are read with it. */
const maxOfEvent = 1000;

/** Common filters of both. */
export const cancelFilterFields = {
  id: sentIds,
  eventId: text(1, 128).describe(`Only those of this event, which has at most ${maxOfEvent} of them.`),
  errorType: z
    .array(z.enum([...attemptErrorTypes, 'circuit_open']))
    .min(1)
    .max(8)
    .describe('Values of `lastErrorType`.'),
  ...sentOutcome,
  to: queryTime.describe('Created then or earlier. Default: the time of the first request.'),
};

/** The body of a cancel by filter. */
export function cancelBody<Filter extends z.ZodType>(filter: Filter) {
  return z.strictObject({
    filter: filter.describe('All have to be met; {}: all that waits.'),
    dryRun: z.boolean().optional().describe('Counts what the filter matches, and cancels nothing.'),
    cursor: z.string().min(1).max(1024).optional().describe('`nextCursor` of the answer before, with the same filter.'),
  });
}

export const cancelledByFilter = z
  .object({
    matched: count.describe('How many met the filter, of those that this request read.'),
    ...cancelCounts,
    scanned: count.describe('How many records, or index entries, were read.'),
    upTo: timestamp.describe('What was created later is left alone.'),
    dryRun: z.boolean().describe('Whether nothing was cancelled.'),
    nextCursor: z.string().nullable().describe('The `cursor` of the next request; null: all was read.'),
  })
  .meta({ id: 'CancelledByFilter', description: 'What a step of a cancel by filter did.' });

type SentFilter = z.output<z.ZodObject<{ [Name in keyof typeof cancelFilterFields]: z.ZodOptional<(typeof cancelFilterFields)[Name]> }>>;

/** The sent filter as lists have it. VALIDATION_FAILED names the field. */
export function sharedFilterOf({ eventId: _, ...sent }: SentFilter): MessageFilter & PayloadFilter {
  return inFilterWords(() => {
    if (sent.where !== undefined) compileCelSearch(sent.where);
    return messageFilterOf(sent);
  });
}

/** Ids of the messages of an event that were created until then. `among`: no others than these; undefined: all. RESOURCE_NOT_FOUND for an event that is not stored. */
async function idsOfEvent(
  { services: { messages } }: Call,
  org: string,
  eventId: string,
  { among, toMs }: { among: readonly string[] | undefined; toMs: number },
): Promise<string[]> {
  const [event] = (await messages.events(org, { ids: [eventId] }, { limit: 1 })).items;
  if (event === undefined) throw unknownId('event', eventId);
  if (Math.max(event.deliveryCount, event.webhook?.total ?? 0) > maxOfEvent)
    throw wrongInFilter('eventId', `is of an event with more than ${maxOfEvent} messages: narrow by other filters`);
  const found = await messages.deliveriesOfEvent(org, eventId, { toMs });
  return found.flatMap(({ id }) => (among?.includes(id) === false ? [] : [id]));
}

/**
 * One step of a walk over what waits, newest first: it ends after some pages, or seconds, and its cursor leads on. Each further page counts as a request. `shared`:
 * what the filter has of both; `narrow`: what else it has, which names the walk in cursors, too.
 */
export async function cancelByFilter(
  call: Call<unknown, { filter: { eventId?: string | undefined }; dryRun?: boolean | undefined; cursor?: string | undefined }>,
  {
    org,
    narrow,
    shared,
    list,
  }: {
    org: string;
    narrow: readonly unknown[];
    shared: MessageFilter & PayloadFilter;
    list: (filter: MessageFilter & PayloadFilter, page: PageQuery) => Promise<ScannedPage<{ id: string }>>;
  },
): Promise<z.input<typeof cancelledByFilter>> {
  const { dryRun = false, filter: sent } = call.body;
  const { eventId } = sent;
  const beganMs = performance.now();
  const scope = JSON.stringify(['cancel', org, eventId, narrow, shared]);
  const begun = await beginning(call, scope, shared.toMs);
  const { upToMs } = begun;
  let { cursor } = begun;
  const ids = eventId === undefined ? undefined : await idsOfEvent(call, org, eventId, { among: shared.ids, toMs: upToMs });
  const filter = { ...shared, toMs: upToMs, ...(ids !== undefined && { ids }) };
  const done = { matched: 0, scanned: 0 };
  const results: CancelResult[] = [];
  for (let pages = 0; pages < maxPages; pages++) {
    if (pages > 0 && (performance.now() - beganMs > longestMs || !(await hasPaid(call)))) break;
    throwIfAbandoned(call.signal);
    const page = { limit: perPage, ...(cursor !== undefined && { cursor }), ...turnAndSignal(call) };
    const { items, nextCursor, scanned } = await inFilterWords(() => list(filter, page));
    done.matched += items.length;
    done.scanned += scanned;
    if (!dryRun && items.length > 0)
      results.push(
        ...(
          await cancelFor(
            call,
            org,
            items.map((item) => item.id),
          )
        ).values(),
      );
    cursor = nextCursor ?? undefined;
    if (cursor === undefined) break;
  }
  return {
    ...done,
    ...countsOf(results),
    upTo: isoTime(upToMs),
    dryRun,
    nextCursor: cursor === undefined ? null : cursorOf(`${upToMs} ${cursor}`, scope),
  };
}

/** Where a step begins, and up to which time of creation the walk goes: that of its first step. */
async function beginning(
  { services, body }: Call<unknown, { cursor?: string | undefined }>,
  scope: string,
  toMs: number | undefined,
): Promise<{ upToMs: number; cursor: string | undefined }> {
  if (body.cursor === undefined) {
    const nowMs = await services.canceller.now();
    return { upToMs: Math.min(toMs ?? nowMs, nowMs), cursor: undefined };
  }
  const sent = body.cursor;
  const [upTo, cursor] = inFilterWords(() => cursorText(sent, scope)).split(' ');
  return { upToMs: Number(upTo), cursor };
}

/** Whether the rate limit of the organization permits another page. */
async function hasPaid({ charge }: Call): Promise<boolean> {
  try {
    await charge(1);
    return true;
  } catch (error) {
    if (isPosthornError(error, 'RATE_LIMITED')) return false;
    throw error;
  }
}

export const cancellation = z
  .object({ at: timestamp.describe('When.'), by: z.string().describe('Name of the API key or the user.') })
  .optional()
  .describe('Who cancelled it; absent: nobody has.');

/** The field of a record. */
export function cancellationField(made: Cancellation | undefined): { cancellation?: { at: string; by: string } } {
  return made === undefined ? {} : { cancellation: { at: isoTime(made.atMs), by: made.by } };
}
