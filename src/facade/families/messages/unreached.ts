import { z } from 'zod';
import { EventContext } from '../../../core/event-context.ts';
import { isContainer } from '../../../core/exact-number.ts';
import { filterFingerprint } from '../../../core/filter-evaluation.ts';
import { type FilterContext, fieldReader, isWithheldField } from '../../../core/filter-path.ts';
import { joinedHeaders } from '../../../core/joined-headers.ts';
import { keptHeaders } from '../../../core/kept-headers.ts';
import { masked, maskedUnread } from '../../../core/masking.ts';
import type { FilterCondition, FilterDefinition } from '../../../core/records.ts';
import type { DeliveryView, EventView, FilterResult } from '../../../data/shard/messages.ts';
import type { Call } from '../../http/operation.ts';
import { inCache } from '../../records/lookup.ts';

/** Routes of the source that an event did not reach, with the reasons. */

const maxRoutes = 100;
const maxConditions = 10;
const maxValueLength = 200;

const reason = z.enum([
  'condition_false',
  'no_condition_met',
  'filter_error',
  'filtered',
  'schema_failed',
  'transform_filtered',
  'transform_failed',
  'route_disabled',
  'destination_disabled',
  'destination_suspended',
  'destination_missing',
  'transform_missing',
]);
type Reason = z.infer<typeof reason>;

const condition = z.object({
  index: z.int().describe('Its index.'),
  field: z.string().optional().describe('Its field.'),
  operator: z.string().optional().describe('Its operator.'),
  expected: z.unknown().optional().describe('Its value.'),
  actual: z.unknown().optional().describe('Of the event; ••••: not stored.'),
});

const route = z.object({
  routeId: z.string().describe('Its id.'),
  deliveryId: z.string().describe('Its delivery.'),
  reason: reason.describe('Why.'),
  conditions: z.array(condition).describe('The false one, or 10 of those unmet.'),
  error: z.string().nullable().describe('In words.'),
  changedSince: z.boolean().describe('The filter has changed.'),
});

export const unreached = z
  .object({
    total: z.int().describe('How many.'),
    byReason: z.record(z.string(), z.int()).describe('How many of each.'),
    routes: z.array(route).describe('The first 100.'),
  })
  .describe('Routes that got nothing.');

interface Unreached {
  routeId: string;
  deliveryId: string;
  reason: Reason;
  error: string | null;
  result?: FilterResult;
}

/** Returns the routes that the event did not reach. `deliveries`: those of the event, at most the first 1,000. */
export async function unreachedBy(call: Call, event: EventView, deliveries: readonly DeliveryView[]): Promise<z.input<typeof unreached>> {
  const results = await call.services.messages.filterResults(event.org, event.id);
  const all = [...ofDeliveries(deliveries, new Set(results.map(({ deliveryId }) => deliveryId))), ...results.map(ofResult)];
  const byReason: Partial<Record<Reason, number>> = {};
  for (const { reason: why } of all) byReason[why] = (byReason[why] ?? 0) + 1;
  const shown = all.slice(0, maxRoutes).map((each) => withKeptFilter(call, each));
  const filters = await filtersOf(call, event.org, shown);
  const context = await contextOf(call, event, [...filters.values()]);
  const routes = await call.turn.run(explained(shown, filters, context), call.signal);
  return { total: all.length, byReason, routes };
}

/** Adds the error that explains a filter other than that of the spec: a route keeps the conditions of a Filter that was withdrawn. */
function withKeptFilter(call: Call, each: Unreached): Unreached {
  if (each.result === undefined || each.error !== null) return each;
  const conditions = inCache(call, 'Route', each.routeId)?.status?.conditions ?? [];
  const condition = (wanted: string) => conditions.find(({ type }) => type === wanted);
  if (condition('Programmed')?.status !== 'False') return each;
  return { ...each, error: `the route keeps the filter that was in force before: ${condition('Ready')?.message ?? ''}` };
}

function* explained(
  shown: readonly Unreached[],
  filters: ReadonlyMap<string, FilterDefinition>,
  context: ReadContext,
): Generator<undefined, z.input<typeof route>[]> {
  const routes: z.input<typeof route>[] = [];
  for (const { result, ...rest } of shown) {
    const filter = filters.get(rest.routeId) ?? null;
    const isSame = result?.failure.rule === undefined || (filter !== null && filterFingerprint(filter) === result.failure.rule);
    const conditions = result === undefined ? [] : conditionsOf(result, isSame ? filter : null, context);
    routes.push({ ...rest, conditions, changedSince: !isSame });
    yield;
  }
  return routes;
}

function* ofDeliveries(deliveries: readonly DeliveryView[], known: ReadonlySet<string>): Generator<Unreached> {
  for (const delivery of deliveries) {
    const why = known.has(delivery.id) ? null : reasonOf(delivery);
    if (why !== null) yield { routeId: delivery.routeId, deliveryId: delivery.id, reason: why, error: delivery.lastErrorMessage };
  }
}

/** Returns why the delivery was not sent; null: it was sent, or will be. */
function reasonOf({ status, destinationId, attempts, waitingFor }: DeliveryView): Reason | null {
  switch (status) {
    case 'filtered':
      return destinationId === null ? 'filtered' : 'transform_filtered';
    case 'schema_failed':
    case 'transform_failed':
      return status;
    default:
      return attempts === 0 && waitingFor !== null ? (reason.safeParse(waitingFor).data ?? null) : null;
  }
}

function ofResult(result: FilterResult): Unreached {
  const { deliveryId, routeId, failure, untried } = result;
  const named = { deliveryId, routeId, result };
  switch (failure.reason) {
    case 'condition':
      return { ...named, reason: 'condition_false', error: null };
    case 'none_met':
      return { ...named, reason: failure.rule === undefined ? 'filtered' : 'no_condition_met', error: null };
    case 'untried':
      return { ...named, reason: 'filter_error', error: untried };
    case 'not_compiled':
      return { ...named, reason: 'filter_error', error: 'the filter is not valid' };
  }
}

/** Returns the published filters by route. */
async function filtersOf(call: Call, org: string, shown: readonly Unreached[]): Promise<Map<string, FilterDefinition>> {
  const { registry } = call.services;
  const ids = shown.flatMap(({ routeId, result }) => (result?.failure.rule === undefined ? [] : [routeId]));
  const records = await Promise.all(ids.map((id) => registry.getOf(org, 'route', id)));
  return new Map(records.flatMap((record) => (record === null || record.filter === null ? [] : [[record.id, record.filter] as const])));
}

/** Returns the input of the filters. `hasPayload`: false if the payload is not parsed here. */
async function contextOf(call: Call, event: EventView, filters: readonly FilterDefinition[]): Promise<ReadContext> {
  const headers = joinedHeaders(keptHeaders(event.headers));
  const context = new EventContext(headers, event.payload ?? Buffer.alloc(0), event.query);
  const isRead = event.payload !== null && filters.length > 0;
  if (isRead) await call.turn.run(context.parse(), call.signal);
  return { context, hasPayload: isRead && !context.isTooLarge };
}

interface ReadContext {
  context: FilterContext;
  hasPayload: boolean;
}

/** `filter`: the one that was evaluated; null: unknown. */
function conditionsOf({ failure }: FilterResult, filter: FilterDefinition | null, context: ReadContext): z.input<typeof condition>[] {
  const { condition: index } = failure;
  if (filter === null) return index === undefined ? [] : [{ index }];
  if (index !== undefined) return [compared(index, filter.conditions[index], context)];
  return filter.conditions.slice(0, maxConditions).map((each, i) => compared(i, each, context));
}

function compared(index: number, tested: FilterCondition | undefined, { context, hasPayload }: ReadContext): z.input<typeof condition> {
  if (tested === undefined) return { index };
  const { field, operator, value: wanted } = tested;
  const isWithheld = isWithheldField(field);
  const read = fieldReader(field);
  const isReadable = !isWithheld && typeof read !== 'string' && (hasPayload || field.startsWith('headers'));
  const actual = isReadable ? read(context) : undefined;
  return {
    index,
    field,
    operator,
    ...(wanted !== undefined && { expected: isWithheld ? masked(String(shownValue(wanted))) : shownValue(wanted) }),
    ...(!isReadable ? { actual: maskedUnread } : actual !== undefined && { actual: shownValue(actual) }),
  };
}

/** Returns numbers that are not doubles, lists and objects as the beginning of their JSON. */
function shownValue(of: unknown): string | number | boolean | null {
  if (of === null || typeof of === 'boolean' || typeof of === 'number') return of;
  return shortened(isContainer(of) ? beginningOf(of) : String(of));
}

/** At most 200 characters. */
export function shortened(text: string): string {
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength - 1)}…` : text;
}

const beginnings = new WeakMap<object, string>();
/** Maximum nesting of shown lists and objects. */
const maxDepth = 20;

/** JSON of a list or an object, at least until it is longer than what is shown: many conditions may name the same large value. */
function beginningOf(container: object, depth = 0): string {
  if (depth === maxDepth) return '…';
  const known = beginnings.get(container);
  if (known !== undefined) return known;
  const isList = Array.isArray(container);
  let text = isList ? '[' : '{';
  for (const [name, member] of membersOf(container)) {
    const shown = isContainer(member)
      ? beginningOf(member, depth + 1)
      : JSON.stringify(typeof member === 'string' ? member.slice(0, maxValueLength) : member);
    text += `${text.length > 1 ? ',' : ''}${isList ? '' : `${JSON.stringify(name)}:`}${shown}`;
    if (text.length > maxValueLength) break;
  }
  text += isList ? ']' : '}';
  beginnings.set(container, text);
  return text;
}

/** Yields the members one by one, because the caller stops after a few. */
function* membersOf(container: object): Generator<[string, unknown]> {
  if (Array.isArray(container)) for (const [i, member] of container.entries()) yield [String(i), member];
  else for (const name of Object.keys(container)) yield [name, (container as Record<string, unknown>)[name]];
}
