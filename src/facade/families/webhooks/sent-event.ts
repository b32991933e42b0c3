import { z } from 'zod';

const limits = { name: 100, key: 255, id: 64, endpoints: 100, labels: 64, labelKey: 128, labelValue: 512, metadataBytes: 16_384 };

/** Body of send-event (API document, "Sending"). Its payload is taken from the bytes that were sent. */
export const sentEvent = z.strictObject({
  eventType: z.string().min(1).max(limits.name).describe('Name of an event type that is enabled.'),
  payload: z.unknown().describe('Any JSON. Endpoints get its text as it was sent.'),
  applicationId: z.string().min(1).max(limits.id).optional().describe('Only endpoints of this application.'),
  endpointId: z.string().min(1).max(limits.id).optional().describe('Only this endpoint.'),
  endpointIds: z.array(z.string().min(1).max(limits.id)).min(1).max(limits.endpoints).optional().describe('Only these endpoints.'),
  idempotencyKey: z
    .string()
    .min(1)
    .max(limits.key)
    .optional()
    .describe('Within 24 hours a further event with the key is not stored; the answer is that of the first.'),
  labels: z
    .record(z.string().min(1).max(limits.labelKey), z.union([z.string().max(limits.labelValue), z.number(), z.boolean()]))
    .refine((labels) => Object.keys(labels).length <= limits.labels, `at most ${limits.labels} labels`)
    .optional()
    .describe('What label filters of subscriptions look at; numbers and booleans are kept as text.'),
  metadata: z
    .record(z.string().min(1), z.unknown())
    .refine((metadata) => JSON.stringify(metadata).length <= limits.metadataBytes, `at most ${limits.metadataBytes} bytes of JSON`)
    .optional()
    .describe('Kept with the event; filter expressions see it. It is not delivered.'),
});
export type SentEvent = z.output<typeof sentEvent>;

export const eventAnswer = z.object({
  eventId: z.string(),
  messagesQueued: z.int().min(0).describe('How many endpoints it goes to.'),
  endpoints: z.array(z.object({ id: z.string(), url: z.string() })).describe('At most the first 1,000 of them.'),
});
export type EventAnswer = z.output<typeof eventAnswer>;
