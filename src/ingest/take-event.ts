import type { EventContext } from '../core/event-context.ts';
import type { Logger } from '../core/logger.ts';
import { type Abandonment, loopTurns } from '../core/loop-turns.ts';
import { type EventClaim, type Intake, quotaExceeded } from '../data/intake/intake.ts';
import type { MessageAcceptor } from '../data/shard/messages.ts';
import { digestInPieces } from './body-digest.ts';
import type { BrokenSchemas } from './broken-schemas.ts';
import { eventDedupKey } from './deduplication.ts';
import { makeEvent, type RoutedEvent, routedInPieces } from './event.ts';
import type { IngestPlan } from './ingest-plan.ts';
import type { IngestMetrics } from './metrics.ts';
import type { ReceivedRequest } from './received-request.ts';

export interface TakingServices {
  acceptor: MessageAcceptor;
  intake: Intake;
  logger: Logger;
  metrics: Pick<IngestMetrics, 'untriedFilters'>;
}

export interface TakenEvent {
  /** Id of the event; of a duplicate, that of the first of its kind. */
  eventId: string;
  isDuplicate: boolean;
}

/**
 * Stores the event, unless it is a duplicate or one too many. Throws QUOTA_EXCEEDED or QUEUE_FULL, which leave nothing behind, or UNAVAILABLE: then the
 * event may be stored, and is not stored again when it is sent again. AbandonedError: `signal` was aborted while the routes evaluated the event, which is not
 * stored.
 */
export async function takeEvent(
  services: TakingServices,
  plan: IngestPlan,
  { received, context, broken }: { received: ReceivedRequest; context: EventContext; broken: BrokenSchemas },
  signal: Abandonment,
): Promise<TakenEvent> {
  const { acceptor, intake, metrics } = services;
  const routed = await loopTurns.of(plan.source.org, plan.source.id).runShort(evaluatedInChunks(plan, received, context, broken), signal);
  const event = makeEvent(plan, received, routed);
  if (event.filtered.length > 0) metrics.untriedFilters.inc(event.filtered.filter(({ untried }) => untried !== undefined).length);
  const claim = claimOf(plan, received, context, event);
  if (claim === null) {
    await acceptor.accept(event);
    return { eventId: event.id, isDuplicate: false };
  }
  const claimed = await intake.claim(claim);
  if (claimed.outcome === 'quotaExceeded') throw quotaExceeded(received.receivedAtMs, plan.source.monthlyMessages ?? 0);
  if (claimed.outcome === 'duplicate') return duplicate(services, plan, claimed.eventId);
  const { eventId, duplicateOf } = claimed;
  // The process that claimed it may have died before it was stored. The one that meets the claim stores it under that id, which happens once.
  const claimedEvent = eventId === event.id ? { ...event, duplicateOf } : makeEvent(plan, received, routed, eventId);
  const settle = (outcome: 'stored' | 'failed'): void => inBackground(services, intake.settle({ ...claim, eventId }, outcome), eventId);
  const isNew = await acceptor.accept(claimedEvent).catch((error: unknown) => {
    settle('failed');
    throw error;
  });
  if (claim.marks.length > 0) settle('stored');
  return isNew ? { eventId, isDuplicate: false } : duplicate(services, plan, eventId);
}

function duplicate(services: TakingServices, { source }: IngestPlan, eventId: string): TakenEvent {
  inBackground(services, services.intake.countDuplicate(source.org, source.id, eventId), eventId);
  return { eventId, isDuplicate: true };
}

/** The sender need not wait for it; and who meets a claim that is not settled finds out by itself. */
function inBackground({ logger }: TakingServices, noting: Promise<void>, eventId: string): void {
  noting.catch((error: unknown) => logger.debug({ err: error, eventId }, 'the result of an event was not recorded'));
}

/** Runs the routes, and hashes or parses a large body that is checked for duplicates, too. */
function* evaluatedInChunks(
  plan: IngestPlan,
  received: ReceivedRequest,
  context: EventContext,
  broken: BrokenSchemas,
): Generator<undefined, RoutedEvent> {
  if (plan.dedup?.readsPayload(received) === true) yield* context.parse();
  if (received.evaluated !== undefined && plan.dedup !== null) {
    yield* digestInPieces(received.body);
    // The provider of a form may sign another text.
    if (received.signed !== null && received.signed.body !== received.body) yield* digestInPieces(received.signed.body);
  }
  return yield* routedInPieces(plan, context, broken, received.evaluated);
}

/** Null: nothing is to be checked before it is stored. */
function claimOf(
  { source, dedup }: IngestPlan,
  received: ReceivedRequest,
  context: EventContext,
  { id, targets }: { id: string; targets: readonly unknown[] },
): EventClaim | null {
  // An unverified sender may neither name an event a duplicate nor make others duplicates of it.
  const identities = dedup === null || received.signatureValid === false ? [] : dedup.identify(context, received);
  const monthlyMessages = source.monthlyMessages ?? null;
  if (identities.length === 0 && (monthlyMessages === null || targets.length === 0)) return null;
  return {
    org: source.org,
    eventId: id,
    receivedAtMs: received.receivedAtMs,
    marks: identities.map((identity) => eventDedupKey(source.id, identity)),
    windowMs: dedup?.windowMs ?? 0,
    messages: targets.length,
    monthlyMessages,
  };
}
