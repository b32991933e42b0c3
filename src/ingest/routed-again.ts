import { isPosthornError } from '../core/errors.ts';
import { EventContext } from '../core/event-context.ts';
import { joinedHeaders } from '../core/joined-headers.ts';
import { loopTurns } from '../core/loop-turns.ts';
import { wholePayloadBytes } from '../core/payload-sizes.ts';
import { requestFormat } from '../core/readable-payload.ts';
import type { EventRouting, EventTarget, WholeEvent } from '../data/replays/event-originals.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { brokenSchemas, noBrokenSchemas } from './broken-schemas.ts';
import { routedInPieces } from './event.ts';
import { judgeLarge } from './large-event.ts';
import { attemptsAt, type IngestPlan, ingestPlan, type PlanServices } from './plan.ts';

const judgeDeadlineMs = 10_000;

/** Judges events that are stored by the routes of today, as ingest judges those that arrive. */
export function eventRouting(services: PlanServices & { sandbox: Sandbox }): EventRouting {
  const { registry } = services;
  return {
    targets: (event) => targetsOf(services, event),
    async target(org, routeId, destinationId) {
      const route = await registry.getOf(org, 'route', routeId);
      const destination = await registry.getOf(org, 'destination', destinationId);
      if (route === null || destination === null) return null;
      return { isEnabled: route.enabled && destination.enabled, maxAttempts: attemptsAt(destination) };
    },
  };
}

async function targetsOf(services: PlanServices & { sandbox: Sandbox }, event: WholeEvent): Promise<EventTarget[]> {
  const { org, sourceId } = event;
  const source = await services.registry.getOf(org, 'source', sourceId);
  if (source === null) return [];
  const plan = await ingestPlan(services, source.orgSlug, source.slug).catch((error: unknown) => {
    if (isPosthornError(error, 'NOT_FOUND', 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  });
  if (plan?.source.id !== sourceId) return [];
  const signal = AbortSignal.timeout(judgeDeadlineMs);
  try {
    return await judged(services.sandbox, plan, event, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    services.logger.warn({ err: error, eventId: event.id }, 'an event is left out of a replay: its routes could not be judged in time');
    return [];
  }
}

async function judged(sandbox: Sandbox, plan: IngestPlan, event: WholeEvent, signal: AbortSignal): Promise<EventTarget[]> {
  const { org, payload: body, query } = event;
  const headers = joinedHeaders(event.headers);
  const turns = loopTurns.of(org);
  const context = new EventContext(headers, body, query);
  const readable = body.length > wholePayloadBytes ? null : await turns.run(context.decode(), signal);
  const isLarge = readable === null || context.isTooLarge;
  const large = isLarge ? await judgeLarge(sandbox, plan, { headers, body, query }, [], signal) : undefined;
  const checked = isLarge ? { body, format: requestFormat(headers) } : { body: readable, format: null };
  const broken = plan.schemas.length === 0 ? noBrokenSchemas : await brokenSchemas(sandbox, plan, checked, signal);
  const looked = large === undefined ? context : new EventContext(headers, body, query, large.document);
  return (await turns.run(routedInPieces(plan, looked, broken, large), signal)).targets;
}
