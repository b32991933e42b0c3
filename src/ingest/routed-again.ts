import { isPosthornError, PosthornError } from '../core/errors.ts';
import { EventContext } from '../core/event-context.ts';
import { joinedHeaders } from '../core/joined-headers.ts';
import { loopTurns } from '../core/loop-turns.ts';
import { wholePayloadBytes } from '../core/payload-sizes.ts';
import { requestFormat } from '../core/readable-payload.ts';
import type { EventRouting, EventTarget, EventWithPayload } from '../data/replays/event-originals.ts';
import { isAmong } from '../data/shard/message-filter.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { brokenSchemas, noBrokenSchemas } from './broken-schemas.ts';
import { routedInPieces } from './event.ts';
import { attemptsAt, type RoutingPlan, type RoutingServices, routingPlan } from './ingest-plan.ts';
import { evaluateLarge } from './large-event.ts';

/** The sandbox ends what takes longer by itself; a worker that has more to do than that tries the step again. */
const evaluationDeadlineMs = 20_000;

type JudgingServices = RoutingServices & { sandbox: Sandbox };

/** Evaluates stored events against current routes, as ingest evaluates those that arrive. */
export function eventRouting(services: JudgingServices): EventRouting {
  const { registry } = services;
  return {
    async targets({ org, sourceId }, routeId, read) {
      const plan = await planOf(services, org, sourceId);
      const routes = plan?.routes.filter(({ id }) => isAmong(routeId, id)) ?? [];
      const event = plan === null || routes.length === 0 ? null : await read();
      return plan === null || event === null ? [] : await evaluated(services.sandbox, { ...plan, routes }, event);
    },
    async target(org, routeId, destinationId) {
      const route = await registry.getOf(org, 'route', routeId);
      const destination = await registry.getOf(org, 'destination', destinationId);
      if (route === null || destination === null || !route.destinations.some(({ id }) => id === destinationId)) return null;
      const isOrdered = destination.ordered === true;
      return { isEnabled: route.enabled && destination.enabled, isOrdered, maxAttempts: attemptsAt(destination) };
    },
  };
}

/** Null: there is no such source. */
async function planOf(services: JudgingServices, org: string, sourceId: string): Promise<RoutingPlan | null> {
  const source = await services.registry.getOf(org, 'source', sourceId);
  if (source === null) return null;
  const plan = await routingPlan(services, source.orgSlug, source.slug).catch((error: unknown) => {
    if (isPosthornError(error, 'NOT_FOUND', 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  });
  return plan?.source.id === sourceId ? plan : null;
}

async function evaluated(sandbox: Sandbox, plan: RoutingPlan, event: EventWithPayload): Promise<EventTarget[]> {
  const signal = AbortSignal.timeout(evaluationDeadlineMs);
  try {
    return await evaluatedUntil(signal, sandbox, plan, event);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new PosthornError('UNAVAILABLE', `The routes of event ${event.id} could not be evaluated in time`, { cause: error });
  }
}

async function evaluatedUntil(signal: AbortSignal, sandbox: Sandbox, all: RoutingPlan, event: EventWithPayload): Promise<EventTarget[]> {
  const asked = new Set(all.routes.map(({ schemaId }) => schemaId));
  const plan = { ...all, schemas: all.schemas.filter(({ id }) => asked.has(id)) };
  const { org, payload: body, query } = event;
  const headers = joinedHeaders(event.headers);
  const turns = loopTurns.of(org);
  const context = new EventContext(headers, body, query);
  const readable = body.length > wholePayloadBytes ? null : await turns.run(context.decode(), signal);
  const isLarge = readable === null || context.isTooLarge;
  const large = isLarge ? await evaluateLarge(sandbox, plan, { headers, body, query }, [], signal) : undefined;
  const checked = isLarge ? { body, format: requestFormat(headers) } : { body: readable, format: null };
  const broken = plan.schemas.length === 0 ? noBrokenSchemas : await brokenSchemas(sandbox, plan, checked, signal);
  const looked = large === undefined ? context : new EventContext(headers, body, query, large.document);
  return (await turns.run(routedInPieces(plan, looked, broken, large), signal)).targets;
}
