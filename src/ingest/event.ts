import type { IncomingMessage } from 'node:http';
import type { EventContext } from '../core/event-context.ts';
import { expiresAtMs } from '../core/expiry.ts';
import { type FilterVerdict, MatchBudget } from '../core/filter-evaluation.ts';
import { forwardedHeaders } from '../core/forwarded-headers.ts';
import { newTimedId, parseTimedId } from '../core/ids.ts';
import { keptQuery } from '../core/sent-query.ts';
import type { FilteredRoute, NewEvent } from '../data/shard/messages.ts';
import type { BrokenSchemas } from './broken-schemas.ts';
import type { PlannedRoute, PlannedTarget, RoutingPlan } from './ingest-plan.ts';
import type { LargeEvaluation, ReceivedRequest } from './received-request.ts';

export const patternsUntried =
  'a regular expression of the filter was not tried: with this text it, or the filters of all routes together, would take too long';

/** The targets of an event, and the routes that reject it. */
export interface RoutedEvent {
  targets: PlannedTarget[];
  invalid: Omit<NewEvent['invalid'][number], 'messageId'>[];
  filtered: NewEvent['filtered'];
}

/** Runs the routes of the plan in pieces, of each first its schema, then its filter. */
export function* routedInPieces(
  { routes }: Pick<RoutingPlan, 'routes'>,
  context: EventContext,
  broken: BrokenSchemas,
  evaluated?: LargeEvaluation,
): Generator<undefined, RoutedEvent> {
  const routed: RoutedEvent = { targets: [], invalid: [], filtered: [] };
  const budget = new MatchBudget();
  for (const { id: routeId, filter, rule, schemaId, failedFor, targets } of routes) {
    const brokenSchema = schemaId === null ? undefined : broken.get(schemaId);
    if (brokenSchema !== undefined) {
      routed.invalid.push({ routeId, brokenSchema, ...(failedFor !== undefined && { failedFor }) });
      continue;
    }
    const verdict = evaluated?.verdicts.get(routeId);
    if (verdict !== undefined) {
      if (verdict.isMet) routed.targets.push(...targets);
      else routed.filtered.push(filteredRoute(routeId, rule, verdict));
      continue;
    }
    const untriedBefore = budget.untried;
    if (filter?.readsPayload === true) yield* context.parse();
    const own = filter === null ? null : yield* filter.inPieces(context, budget);
    if (own?.isMet === false) {
      routed.filtered.push(filteredRoute(routeId, rule, { ...own, ...(budget.untried > untriedBefore && { untried: patternsUntried }) }));
      continue;
    }
    routed.targets.push(...targets);
  }
  return routed;
}

function filteredRoute(
  routeId: string,
  rule: PlannedRoute['rule'],
  { decidedBy, untried }: FilterVerdict & { untried?: string },
): FilteredRoute {
  if (rule === null) return { routeId, why: { reason: 'not_compiled' } };
  const condition = decidedBy === null ? {} : { condition: decidedBy };
  const reason = untried !== undefined ? 'untried' : decidedBy === null ? 'none_met' : 'condition';
  return { routeId, why: { rule, reason, ...condition }, ...(untried !== undefined && { untried }) };
}

/** Parts of an event. */
export interface ReceivedEvent
  extends Pick<ReceivedRequest, 'body' | 'query' | 'receivedAtMs' | 'notBeforeMs' | 'expiresAfterSeconds' | 'signatureValid'> {
  request: Pick<IncomingMessage, 'method' | 'headers' | 'rawHeaders'>;
}

/** `id`: that of the event, when it has one. */
export function makeEvent(
  { source }: Pick<RoutingPlan, 'source'>,
  { request, body, query, receivedAtMs, notBeforeMs, expiresAfterSeconds, signatureValid }: ReceivedEvent,
  routed: RoutedEvent,
  id?: string,
): NewEvent {
  const common = { sentSeconds: expiresAfterSeconds, notBeforeMs, receivedAtMs };
  const targets = routed.targets.map((target) => targetOf(target, common));
  const known = id === undefined ? null : parseTimedId(id);
  const kept = keptQuery(query);
  const shard = known?.shard ?? targets[0]?.shard ?? 0;
  const event: NewEvent = {
    id: id ?? newTimedId('evt_', shard, receivedAtMs),
    org: source.org,
    sourceId: source.id,
    sourceSlug: source.slug,
    receivedAtMs,
    method: request.method ?? '',
    contentType: request.headers['content-type'] ?? '',
    headers: forwardedHeaders(request.rawHeaders, request.headers.connection),
    payload: body,
    signatureValid,
    duplicateOf: null,
    targets,
    invalid: routed.invalid.map((each) => ({ messageId: newTimedId('msg_', shard, receivedAtMs), ...each })),
    filtered: routed.filtered,
  };
  if (kept !== '') event.query = kept;
  if (notBeforeMs !== null) event.notBeforeMs = notBeforeMs;
  return event;
}

function targetOf(
  { routeId, destinationId, shard, maxAttempts, subscription, expiresAfterSeconds }: PlannedTarget,
  { sentSeconds, notBeforeMs, receivedAtMs }: Pick<ReceivedEvent, 'notBeforeMs' | 'receivedAtMs'> & { sentSeconds: number | undefined },
): NewEvent['targets'][number] {
  const made: NewEvent['targets'][number] = {
    messageId: newTimedId('msg_', shard, receivedAtMs),
    routeId,
    destinationId,
    shard,
    maxAttempts,
  };
  const expiresAt = expiresAtMs(notBeforeMs ?? receivedAtMs, expiresAfterSeconds, sentSeconds);
  if (subscription !== undefined) made.subscription = subscription;
  if (notBeforeMs !== null) made.notBeforeMs = notBeforeMs;
  if (expiresAt !== undefined) made.expiresAtMs = expiresAt;
  return made;
}
