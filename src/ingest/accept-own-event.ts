import { isPosthornError, PosthornError } from '../core/errors.ts';
import { EventContext } from '../core/event-context.ts';
import { hopHeader } from '../core/hops.ts';
import { loopTurns } from '../core/loop-turns.ts';
import type { OwnEvent } from '../core/own-event.ts';
import { ownProvider } from '../core/providers/providers.ts';
import type { MessageAcceptor } from '../data/shard/messages.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { type BrokenSchemas, brokenSchemas, noBrokenSchemas } from './broken-schemas.ts';
import { makeEvent, routedInPieces } from './event.ts';
import { type RoutingPlan, type RoutingServices, routingPlan } from './ingest-plan.ts';

export interface OwnEventServices extends RoutingServices {
  acceptor: MessageAcceptor;
  sandbox: Sandbox;
}

/**
 * Accepts the event for the routes of its source as ingest does, but for duplicates and the messages of the month, for which it does not count. Nothing where
 * the source is gone, disabled or another provider's. Throws UNAVAILABLE, QUEUE_FULL, or
 * REQUEST_TIMEOUT when the schemas of the routes are not checked before the signal aborts.
 */
export async function acceptOwnEvent(
  services: OwnEventServices,
  { org, sourceId, id, atMs, hop, payload }: OwnEvent,
  signal: AbortSignal,
): Promise<void> {
  const { registry, acceptor, sandbox } = services;
  const source = await registry.get('source', sourceId);
  if (source?.org !== org || !source.enabled || source.provider !== ownProvider) return;
  const plan = await routingPlan(services, source.orgSlug, source.slug).catch((error: unknown) => {
    if (isPosthornError(error, 'NOT_FOUND', 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  });
  if (plan?.source.id !== sourceId) return;
  const headers = { 'content-type': 'application/json', [hopHeader]: String(hop) };
  const broken = plan.schemas.length === 0 ? noBrokenSchemas : await checked(sandbox, plan, payload, signal);
  const routed = await loopTurns.of(org).run(routedInPieces(plan, new EventContext(headers, payload), broken));
  const request = { method: 'POST', headers, rawHeaders: Object.entries(headers).flat() };
  await acceptor.accept(
    makeEvent(
      plan,
      { request, body: payload, query: '', receivedAtMs: atMs, notBeforeMs: null, expiresAfterSeconds: undefined, signatureValid: null },
      routed,
      id,
    ),
  );
}

async function checked(sandbox: Sandbox, plan: RoutingPlan, body: Buffer, signal: AbortSignal): Promise<BrokenSchemas> {
  try {
    return await brokenSchemas(sandbox, plan, { body, format: null }, signal);
  } catch (error) {
    throw new PosthornError('REQUEST_TIMEOUT', 'The schemas of the routes could not be checked in time', { cause: error });
  }
}
