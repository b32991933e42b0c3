import type { Clock } from '../../core/clock.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import type { Semaphore } from '../../core/semaphore.ts';
import type { RedisMessageReader } from '../history/message-reader.ts';
import type { ReplayOutcome } from '../history/replay-messages.ts';
import { type Circuits, isCoolingDown } from '../queue/circuits.ts';
import type { MessageAcceptor } from '../shard/messages.ts';
import {
  copyIds,
  type EventOriginal,
  type EventRouting,
  type EventWithPayload,
  eventOriginal,
  readEventWithPayload,
} from './event-originals.ts';

export interface EventQueueingOptions {
  events: RedisMessageReader;
  routing: EventRouting;
  acceptor: MessageAcceptor;
  circuits: Pick<Circuits, 'ofTarget'>;
  payloadMemory: Semaphore;
  clock: Clock;
}

/** Accepts a new event for each target of a past event. The past event stays unchanged; `duplicateOf` of the new events names it. */
export class EventQueueing {
  readonly #options: EventQueueingOptions;

  constructor(options: EventQueueingOptions) {
    this.#options = options;
  }

  /**
   * Adds the outcome of each original to `outcomes`. `createdAtMs`: creation time of the new events. Rejects as the acceptor does; the caller retries the originals
   * without an outcome.
   */
  async replayInto(
    outcomes: Map<string, ReplayOutcome>,
    record: Pick<ReplayRecord, 'org' | 'identity'>,
    createdAtMs: number,
    originals: readonly string[],
  ): Promise<void> {
    const { events, acceptor, payloadMemory } = this.#options;
    const { org } = record;
    const standings = new Map<string, Standing>();
    for (const [eventId, group] of Map.groupBy(originals, (id) => eventOriginal(id).eventId)) {
      const open: { id: string; original: EventOriginal; maxAttempts: number }[] = [];
      for (const id of group) {
        const original = eventOriginal(id);
        const standing = await this.#standing(standings, org, original);
        if (typeof standing === 'object') open.push({ id, original, ...standing });
        else outcomes.set(id, standing);
      }
      if (open.length === 0) continue;
      const bytes = (await events.payloadSizes([eventId])).get(eventId) ?? 0;
      await payloadMemory.run(bytes, async () => {
        const event = await readEventWithPayload(events, org, eventId);
        for (const { id, original, maxAttempts } of open) {
          const ids = copyIds(record, createdAtMs, id);
          if (event !== null) await acceptor.accept(repeated(event, original, { ...ids, maxAttempts, receivedAtMs: createdAtMs }));
          outcomes.set(id, event === null ? 'payload' : 'done');
        }
      });
    }
  }

  /** Why the target takes no message, or how often it tries one. Read once for each target. */
  async #standing(known: Map<string, Standing>, org: string, { routeId, destinationId, shard }: EventOriginal): Promise<Standing> {
    const { routing, circuits, clock } = this.#options;
    const key = `${routeId} ${destinationId}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const look = async (): Promise<Standing> => {
      const target = await routing.target(org, routeId, destinationId);
      if (target === null) return 'gone';
      if (target.isOrdered) return 'ordered';
      if (!target.isEnabled) return 'disabled';
      const circuit = await circuits.ofTarget(shard, org, { routeId, destinationId });
      return isCoolingDown(circuit, clock.now()) ? 'circuit' : { maxAttempts: target.maxAttempts };
    };
    const standing = await look();
    known.set(key, standing);
    return standing;
  }
}

type Standing = Extract<ReplayOutcome, 'gone' | 'ordered' | 'disabled' | 'circuit'> | { maxAttempts: number };

function repeated(
  event: EventWithPayload,
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
