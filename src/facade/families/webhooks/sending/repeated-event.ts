import { hash } from 'node:crypto';
import { z } from 'zod';
import { distinctText } from '../../../../core/distinct-text.ts';
import { parsePlainJson } from '../../../../core/plain-json.ts';
import { webhookOrganization } from '../../../../core/webhook.ts';
import type { NewEvent } from '../../../../data/shard/messages.ts';
import type { Call } from '../../../http/operation.ts';
import type { EventAnswer, SentEvent } from './sent-event.ts';

export const idempotencyMs = 86_400_000;

/**
 * The dedup key of an event: from the idempotency key sent with it or, without one, from the Idempotency-Key of the request and the
 * position of the event in it, so that the process that resumes an aborted request stores nothing twice. Null without either.
 */
export function webhookEventDedupKey({ idempotency }: Call, { idempotencyKey }: SentEvent, place: number): string | null {
  if (idempotencyKey !== undefined) return digest(`send-event\n${distinctText(idempotencyKey)}`);
  return idempotency === null ? null : digest(`request\n${idempotency.mark}\n${place}`);
}

function digest(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 32);
}

/** The response to the event that was stored with the dedup key; null: none. */
export async function answerBefore(call: Call, mark: string | null): Promise<EventAnswer | null> {
  if (mark === null) return null;
  const { services, caller } = call;
  const eventId = await services.intake.accepted({ org: caller.organization.id, mark, windowMs: idempotencyMs });
  return eventId === null ? null : firstAnswer(call, eventId);
}

const keptAnswer = z.object({ n: z.int(), e: z.array(z.tuple([z.string(), z.string()])) });

/** The response as it is stored with its event, at most as long as the dedup key. */
export function answerToKeep({ messagesQueued, endpoints }: Pick<EventAnswer, 'messagesQueued' | 'endpoints'>): NewEvent['answer'] {
  const kept: z.input<typeof keptAnswer> = { n: messagesQueued, e: endpoints.map(({ id, url }) => [id, url]) };
  return { text: JSON.stringify(kept), keptMs: idempotencyMs };
}

/** The response to the event when it was stored. */
export async function firstAnswer(call: Call, eventId: string): Promise<EventAnswer> {
  const text = await call.services.webhookMessages.answer(call.caller.organization.id, eventId);
  if (text === null) return await rebuiltAnswer(call, eventId);
  const { n, e } = keptAnswer.parse(parsePlainJson(text));
  return { eventId, messagesQueued: n, endpoints: e.map(([id, url]) => ({ id, url })) };
}

/** Makes the answer again where it is not kept any more, or the event is gone: endpoints that are deleted since then are left out. */
async function rebuiltAnswer({ services, caller }: Call, eventId: string): Promise<EventAnswer> {
  const org = caller.organization.id;
  const inside = webhookOrganization(org);
  const [event, messages] = await Promise.all([
    services.messages.event(inside, eventId),
    services.messages.deliveriesOfEvent(inside, eventId),
  ]);
  const ids = messages.flatMap(({ destinationId, replayedFrom }) =>
    destinationId === null || replayedFrom !== null ? [] : [destinationId],
  );
  const known = await services.webhooks.endpointsById(org, ids);
  const endpoints = ids.flatMap((id) => {
    const endpoint = known.get(id);
    return endpoint === undefined ? [] : [{ id, url: endpoint.url }];
  });
  return { eventId, messagesQueued: event?.webhook?.total ?? ids.length, endpoints };
}
