import type { IncomingMessage } from 'node:http';
import { MatchBudget } from '../core/filter.ts';
import { newTimedId, parseTimedId } from '../core/ids.ts';
import type { NewEvent } from '../data/messages.ts';
import type { BrokenSchemas } from './broken-schemas.ts';
import type { EventContext } from './event-context.ts';
import { forwardedHeaders } from './forwarded-headers.ts';
import type { IngestPlan } from './plan.ts';

export interface ReceivedRequest {
  request: IncomingMessage;
  body: Buffer;
  receivedAtMs: number;
  signatureValid: boolean | null;
}

const patternsUntried =
  'a regular expression of the filter was not tried: with this text it, or the filters of all routes together, would take too long';

/** Runs the routes of the plan, of each first its schema, then its filter: which targets the event goes to, and which routes do not want it. `id`: that of the event, when it has one. */
export function makeEvent(
  { source, routes }: IngestPlan,
  { request, body, receivedAtMs, signatureValid }: ReceivedRequest,
  { context, broken }: { context: EventContext; broken: BrokenSchemas },
  id?: string,
): NewEvent {
  const targets: NewEvent['targets'] = [];
  const filtered: Omit<NewEvent['filtered'][number], 'messageId'>[] = [];
  const budget = new MatchBudget();
  for (const route of routes) {
    const brokenSchema = route.schemaId === null ? undefined : broken.get(route.schemaId);
    if (brokenSchema !== undefined) {
      filtered.push({ routeId: route.id, brokenSchema, ...(route.failedFor !== undefined && { failedFor: route.failedFor }) });
      continue;
    }
    const untriedBefore = budget.untried;
    if (route.filter !== null && !route.filter(context, budget)) {
      filtered.push({ routeId: route.id, ...(budget.untried > untriedBefore && { untried: patternsUntried }) });
      continue;
    }
    for (const target of route.targets) targets.push({ messageId: newTimedId('msg_', target.shard, receivedAtMs), ...target });
  }
  const known = id === undefined ? null : parseTimedId(id);
  const shard = known?.shard ?? targets[0]?.shard ?? 0;
  return {
    id: id ?? newTimedId('evt_', shard, receivedAtMs),
    org: source.org,
    sourceId: source.id,
    sourceSlug: source.slug,
    receivedAtMs,
    method: request.method ?? '',
    contentType: request.headers['content-type'] ?? '',
    headers: forwardedHeaders(request.rawHeaders, { connection: request.headers.connection, provider: source.provider }),
    payload: body,
    signatureValid,
    duplicateOf: null,
    targets,
    filtered: filtered.map((each) => ({ messageId: newTimedId('msg_', shard, receivedAtMs), ...each })),
  };
}
