import type { Clock } from '../../core/clock.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import type { RedisMessageReader } from '../history/message-reader.ts';
import type { ReplayOutcome } from '../history/replay-messages.ts';
import type { Circuits } from '../queue/circuits.ts';
import type { MessageAcceptor } from '../shard/messages.ts';
import { copyIds, type EventOriginal, type EventRouting, eventOriginal, type WholeEvent, wholeEvent } from './event-originals.ts';

export interface EventQueueingOptions {
  events: RedisMessageReader;
  routing: EventRouting;
  acceptor: MessageAcceptor;
  circuits: Pick<Circuits, 'ofTarget'>;
  clock: Clock;
}

/**
 * Accepts events of the past anew, as an event of its own for each target: the event that reached nothing stays as it is, and the new one names it as the one
 * that it repeats.
 */
export class EventQueueing {
  readonly #options: EventQueueingOptions;

  constructor(options: EventQueueingOptions) {
    this.#options = options;
  }

  /** Writes into `outcomes` what becomes of each original. Rejects as the acceptor does; what has no outcome then is to be tried again. */
  async replayInto(
    outcomes: Map<string, ReplayOutcome>,
    record: Pick<ReplayRecord, 'org' | 'identity'>,
    beganAtMs: number,
    originals: readonly string[],
  ): Promise<void> {
    const { events, acceptor } = this.#options;
    const { org } = record;
    const standings = new Map<string, Standing>();
    for (const [eventId, group] of Map.groupBy(originals, (id) => eventOriginal(id).eventId)) {
      const event = await wholeEvent(events, org, eventId);
      for (const id of group) {
        const original = eventOriginal(id);
        const standing = event === null ? 'payload' : await this.#standing(standings, org, original);
        if (event !== null && typeof standing === 'object')
          await acceptor.accept(repeated(event, original, { ...copyIds(record, beganAtMs, id), ...standing, receivedAtMs: beganAtMs }));
        outcomes.set(id, typeof standing === 'object' ? 'done' : standing);
      }
    }
  }

  /** What keeps the target from taking a message, or how often it tries one. Looked up once for each target. */
  async #standing(known: Map<string, Standing>, org: string, { routeId, destinationId, shard }: EventOriginal): Promise<Standing> {
    const { routing, circuits, clock } = this.#options;
    const key = `${routeId} ${destinationId}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const look = async (): Promise<Standing> => {
      const target = await routing.target(org, routeId, destinationId);
      if (target === null) return 'gone';
      if (!target.isEnabled) return 'disabled';
      const circuit = await circuits.ofTarget(shard, org, { routeId, destinationId });
      const isOpen = circuit?.state === 'open' && (circuit.cooldownEndsAtMs ?? 0) > clock.now();
      return isOpen ? 'circuit' : { maxAttempts: target.maxAttempts };
    };
    const standing = await look();
    known.set(key, standing);
    return standing;
  }
}

type Standing = Extract<ReplayOutcome, 'gone' | 'disabled' | 'circuit'> | { maxAttempts: number };

function repeated(
  event: WholeEvent,
  { routeId, destinationId, shard }: EventOriginal,
  { eventId, messageId, maxAttempts, receivedAtMs }: { eventId: string; messageId: string; maxAttempts: number; receivedAtMs: number },
) {
  const { org, sourceId, source, method, contentType, query, headers, payload, signatureValid } = event;
  return {
    id: eventId,
    org,
    sourceId,
    sourceSlug: source,
    receivedAtMs,
    method,
    contentType,
    ...(query !== '' && { query }),
    headers,
    payload,
    signatureValid,
    duplicateOf: event.id,
    targets: [{ messageId, routeId, destinationId, shard, maxAttempts }],
    invalid: [],
    filtered: [],
  };
}
