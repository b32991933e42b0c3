import { MatchBudget } from '../core/filter.ts';
import { newTimedId, parseTimedId } from '../core/ids.ts';
import { keptQuery } from '../core/sent-query.ts';
import type { NewEvent } from '../data/shard/messages.ts';
import type { BrokenSchemas } from './broken-schemas.ts';
import type { EventContext } from './event-context.ts';
import { forwardedHeaders } from './forwarded-headers.ts';
import type { IngestPlan } from './plan.ts';
import type { LargeJudgement, ReceivedRequest } from './received-request.ts';

export const patternsUntried =
  'a regular expression of the filter was not tried: with this text it, or the filters of all routes together, would take too long';

/** Which targets an event goes to, and which routes do not want it. */
export interface RoutedEvent {
  targets: Omit<NewEvent['targets'][number], 'messageId'>[];
  filtered: Omit<NewEvent['filtered'][number], 'messageId'>[];
}

/** Runs the routes of the plan in pieces, of each first its schema, then its filter. */
export function* routedInPieces(
  { routes }: Pick<IngestPlan, 'routes'>,
  context: EventContext,
  broken: BrokenSchemas,
  judged?: LargeJudgement,
): Generator<undefined, RoutedEvent> {
  const routed: RoutedEvent = { targets: [], filtered: [] };
  const budget = new MatchBudget();
  for (const { id: routeId, filter, schemaId, failedFor, targets } of routes) {
    const brokenSchema = schemaId === null ? undefined : broken.get(schemaId);
    if (brokenSchema !== undefined) {
      routed.filtered.push({ routeId, brokenSchema, ...(failedFor !== undefined && { failedFor }) });
      continue;
    }
    const verdict = judged?.verdicts.get(routeId);
    if (verdict !== undefined) {
      const { isMet, untried } = verdict;
      if (isMet) routed.targets.push(...targets);
      else routed.filtered.push({ routeId, ...(untried !== undefined && { untried }) });
      continue;
    }
    const untriedBefore = budget.untried;
    if (filter?.readsPayload === true) yield* context.parse();
    if (filter !== null && !(yield* filter.inPieces(context, budget))) {
      routed.filtered.push({ routeId, ...(budget.untried > untriedBefore && { untried: patternsUntried }) });
      continue;
    }
    routed.targets.push(...targets);
  }
  return routed;
}

/** `id`: that of the event, when it has one. */
export function makeEvent(
  { source }: Pick<IngestPlan, 'source'>,
  { request, body, query, receivedAtMs, signatureValid }: ReceivedRequest,
  routed: RoutedEvent,
  id?: string,
): NewEvent {
  const targets = routed.targets.map((target) => ({ messageId: newTimedId('msg_', target.shard, receivedAtMs), ...target }));
  const known = id === undefined ? null : parseTimedId(id);
  const kept = keptQuery(query);
  const shard = known?.shard ?? targets[0]?.shard ?? 0;
  return {
    id: id ?? newTimedId('evt_', shard, receivedAtMs),
    org: source.org,
    sourceId: source.id,
    sourceSlug: source.slug,
    receivedAtMs,
    method: request.method ?? '',
    contentType: request.headers['content-type'] ?? '',
    ...(kept !== '' && { query: kept }),
    headers: forwardedHeaders(request.rawHeaders, request.headers.connection),
    payload: body,
    signatureValid,
    duplicateOf: null,
    targets,
    filtered: routed.filtered.map((each) => ({ messageId: newTimedId('msg_', shard, receivedAtMs), ...each })),
  };
}
