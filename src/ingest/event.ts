import type { IncomingMessage } from 'node:http';
import { newTimedId, parseTimedId } from '../core/ids.ts';
import type { NewEvent } from '../data/messages.ts';
import type { EventContext } from './event-context.ts';
import { forwardedHeaders } from './forwarded-headers.ts';
import type { IngestPlan } from './plan.ts';

export interface ReceivedRequest {
  request: IncomingMessage;
  body: Buffer;
  receivedAtMs: number;
  signatureValid: boolean | null;
}

/** Runs the routes of the plan: which targets the event goes to, and which routes do not want it. `id`: that of the event, when it has one. */
export function makeEvent(
  { source, routes }: IngestPlan,
  { request, body, receivedAtMs, signatureValid }: ReceivedRequest,
  context: EventContext,
  id?: string,
): NewEvent {
  const targets: NewEvent['targets'] = [];
  const filteredRouteIds: string[] = [];
  for (const route of routes) {
    if (route.filter !== null && !route.filter(context)) {
      filteredRouteIds.push(route.id);
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
    headers: forwardedHeaders(request.rawHeaders, request.headers.connection),
    payload: body,
    signatureValid,
    duplicateOf: null,
    targets,
    filtered: filteredRouteIds.map((routeId) => ({ messageId: newTimedId('msg_', shard, receivedAtMs), routeId })),
  };
}
