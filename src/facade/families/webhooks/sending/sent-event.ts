import { z } from 'zod';
import { maxDelaySeconds } from '../../../../core/delivery-time.ts';
import { maxExpirySeconds } from '../../../../core/expiry.ts';
import { text } from '../../../../resources/text.ts';
import { sentLabels, sentMetadata } from '../shared/sent-labels.ts';

const limits = { name: 100, key: 255, id: 64, endpoints: 100 };

/** Body of send-event. Its payload is taken from the bytes that were sent. */
export const sentEvent = z.strictObject({
  eventType: text(1, limits.name).describe('Name of an event type that is enabled.'),
  payload: z.unknown().describe('Any JSON. Endpoints get its text as it was sent.'),
  applicationId: text(1, limits.id).optional().describe('Only endpoints of this application.'),
  endpointId: text(1, limits.id).optional().describe('Only this endpoint.'),
  endpointIds: z.array(text(1, limits.id)).min(1).max(limits.endpoints).optional().describe('Only these endpoints.'),
  priority: z
    .int()
    .min(0)
    .max(4)
    .optional()
    .describe('Accepted and ignored: events have no priorities. The response has a Warning header about it.'),
  deliverAt: z.iso
    .datetime({ offset: true })
    .optional()
    .describe(
      'When the first attempts are made at the earliest, at most 7 days ahead; at once when it has passed. Not together with delaySeconds.',
    ),
  delaySeconds: z
    .int()
    .min(0)
    .max(maxDelaySeconds)
    .optional()
    .describe('How many seconds after the request the first attempts are made at the earliest. Not together with deliverAt.'),
  expiresAfterSeconds: z
    .int()
    .min(1)
    .max(maxExpirySeconds)
    .optional()
    .describe(
      'Seconds after which a message of the event is given up that has not been delivered: a dead letter whose last error is expired. Where the event type or an endpoint has fewer, these.',
    ),
  idempotencyKey: text(1, limits.key)
    .optional()
    .describe('Within 24 hours a further event with the key is not stored; the answer is that of the first.'),
  labels: sentLabels.optional(),
  metadata: sentMetadata.optional().describe('Kept with the event; filter expressions see it. It is not delivered.'),
});
export type SentEvent = z.output<typeof sentEvent>;

export const eventAnswer = z
  .object({
    eventId: z.string().describe('Id of the event.'),
    messagesQueued: z
      .int()
      .min(0)
      .describe(
        'How many endpoints it goes to. Where the subscriptions to its type have more than 20,000 different criteria, those found at once, unless the messages of the month are limited; the others follow.',
      ),
    endpoints: z
      .array(
        z
          .object({ id: z.string().describe('Id of the endpoint.'), url: z.string().describe('Its URL.') })
          .meta({ id: 'TargetedEndpoint', description: 'An endpoint that gets the event.' }),
      )
      .describe('At most the first 1,000 of them.'),
  })
  .meta({ id: 'SentEvent', description: 'What became of an event.' });
export type EventAnswer = z.output<typeof eventAnswer>;
