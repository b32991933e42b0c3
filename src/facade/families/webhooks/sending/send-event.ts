import { z } from 'zod';
import { PosthornError } from '../../../../core/errors.ts';
import { jsonElements } from '../../../../core/json-member.ts';
import { repeatedMember } from '../../../../core/repeated-members.ts';
import { isRecord } from '../../../../resources/field-tree.ts';
import { hostileShapes, parseBody, refuseRepeated } from '../../../http/body.ts';
import { bodyMember } from '../../../http/body-member.ts';
import { errorIn, toPosthornError, webhookErrorBody } from '../../../http/error-response.ts';
import { type Call, type Family, operation } from '../../../http/operation.ts';
import { single } from '../../shared/envelope.ts';
import { eventAnswer, type SentEvent, sentEvent } from './sent-event.ts';
import { StoringOrder, type StoringTurn } from './storing-order.ts';
import { takeWebhookEvent } from './take-webhook-event.ts';

const largestBodyBytes = 2 * 1024 * 1024;
const largestBatchBytes = 8 * 1024 * 1024;
const maxEvents = 100;

const example = {
  eventType: 'order.paid',
  payload: { id: 'o-17', total: 12.5 },
  labels: { country: 'at' },
};
const errors = ['RESOURCE_NOT_FOUND', 'APPLICATION_RATE_LIMITED', 'QUOTA_EXCEEDED', 'QUEUE_FULL', 'UNAVAILABLE'] as const;
const description =
  'One message for every endpoint with an enabled subscription to the event type whose label filters and filter expression the event meets. ' +
  'It is stored when this is answered. With a header x-posthorn-hop above 8 it is refused: own events of Posthorn are in a loop.';

export const sendEvent: Family = {
  name: 'Sending events',
  noun: 'event type',
  description: 'Events for the webhook endpoints of customers.',
  shown: { eventId: 'evt_000lxq9f0zabcdefghijklmnop', messagesQueued: 1 },
  operations: [
    operation({
      method: 'POST',
      path: '/send-event',
      operationId: 'sendEvent',
      summary: 'Send an event',
      description,
      scope: 'write',
      answersAgain: true,
      body: sentEvent,
      freeField: 'payload',
      maxBodyBytes: largestBodyBytes,
      requestExample: example,
      answer: {
        status: 201,
        description: 'It is stored.',
        schema: single(eventAnswer),
        otherwise: { status: 200, description: 'An event with this idempotencyKey was stored before; this is the answer to it.' },
      },
      errors,
      handle: async (call) => {
        if (call.body.priority !== undefined) call.warn('priority is not heeded: events have no priorities');
        const { answer, isRepeated } = await takeWebhookEvent(call, call.body, await payloadIn(call));
        if (isRepeated) call.answerOtherwise();
        return { data: answer };
      },
    }),
    operation({
      method: 'POST',
      path: '/send-events',
      operationId: 'sendEvents',
      summary: 'Send up to 100 events',
      description: `Each as send-event takes it, on its own and in their order: one that is refused does not hold up the others, and of several with one idempotencyKey the first that is not refused is stored. ${description}`,
      scope: 'write',
      answersAgain: true,
      body: z.strictObject({ events: z.array(z.unknown()).min(1).max(maxEvents).describe('Bodies of send-event.') }),
      freeField: 'events',
      maxBodyBytes: largestBatchBytes,
      requestExample: { events: [example] },
      answer: {
        status: 201,
        description: 'The send-event response for each, in the order of the request.',
        schema: z.object({ data: z.array(z.union([eventAnswer, webhookErrorBody])).describe('One for each.') }),
      },
      errors: ['UNAVAILABLE'],
      handle: async (call) => {
        // The request itself was counted as one.
        await call.charge(call.body.events.length - 1);
        const { turn } = call;
        const events = (await bodyMember(call, 'events')) ?? Buffer.from('[]');
        const texts = await turn.run(jsonElements(events), call.signal);
        const order = new StoringOrder(call.services.clock);
        const taken: ReturnType<typeof oneOfMany>[] = [];
        for (const [i, event] of call.body.events.entries()) {
          await turn.rest();
          const key = isRecord(event) && typeof event['idempotencyKey'] === 'string' ? event['idempotencyKey'] : undefined;
          const bytes = texts[i] ?? Buffer.from('{}');
          taken.push(order.next(key, (storing) => oneOfMany(call, event, bytes, { place: i, turn: storing })));
        }
        return { data: await Promise.all(taken) };
      },
    }),
  ],
};

async function oneOfMany(
  call: Call,
  raw: unknown,
  bytes: Buffer,
  among: { place: number; turn: StoringTurn },
): Promise<z.input<typeof eventAnswer> | z.input<typeof webhookErrorBody>> {
  try {
    if (!isRecord(raw)) throw new PosthornError('VALIDATION_FAILED', 'An event must be an object.');
    await call.turn.run(hostileShapes(raw, 'payload'), call.signal);
    refuseRepeated(await call.turn.run(repeatedMember(bytes, 'payload'), call.signal));
    const sent: SentEvent = parseBody(sentEvent, raw);
    return (await takeWebhookEvent(call, sent, await payloadIn({ ...call, bodyBytes: bytes }), among)).answer;
  } catch (thrown) {
    const error = toPosthornError(thrown);
    if (error.code === 'INTERNAL') call.services.logger.error({ err: thrown }, 'an event of a batch failed with an internal error');
    return errorIn('webhook', error) as z.input<typeof webhookErrorBody>;
  }
}

async function payloadIn(call: Pick<Call, 'bodyBytes' | 'turn' | 'signal'>): Promise<Buffer> {
  const payload = await bodyMember(call, 'payload');
  if (payload === null) throw new PosthornError('VALIDATION_FAILED', 'payload is required.', { details: { payload: ['is required'] } });
  return payload;
}
