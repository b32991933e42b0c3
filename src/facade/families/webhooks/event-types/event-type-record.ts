import { z } from 'zod';
import type { PosthornObject } from '../../../../resources/kinds.ts';
import type { Call } from '../../../http/operation.ts';
import { byName, idOf } from '../../../records/lookup.ts';
import { isoTime, organizationId, recordTimes, shownDescription, timesOf, timestamp } from '../../../records/record-fields.ts';

export const eventTypeRecord = z
  .object({
    id: z.string().describe('Made by Posthorn; stays the same.'),
    organizationId,
    name: z.string().describe('Name by which events are sent.'),
    displayName: z.string().nullable().describe('Name shown to people.'),
    description: shownDescription,
    category: z.string().nullable().describe('Group that it is listed under.'),
    schema: z.string().nullable().describe('JSON Schema as text.'),
    schemaVersion: z.int().min(1).describe('Grows with each change of schema.'),
    examplePayload: z.string().nullable().describe('JSON as text.'),
    documentationUrl: z.string().nullable().describe('Where subscribers read more.'),
    isEnabled: z.boolean().describe('Whether events of this type are taken.'),
    isDeprecated: z.boolean().describe('Whether subscribers should move to something else.'),
    deprecatedAt: timestamp.nullable().describe('When it was deprecated; null when it is not.'),
    deprecatedMessage: z.string().nullable().describe('What subscribers should do about it.'),
    subscriptionCount: z.int().min(0).describe('Subscriptions to it.'),
    ...recordTimes,
  })
  .meta({ id: 'EventType' });

/** The records of what is on one page. */
export async function eventTypeRecords(
  objects: readonly PosthornObject<'WebhookEventType'>[],
  { services, caller }: Call,
): Promise<z.input<typeof eventTypeRecord>[]> {
  const counts = await services.webhooks.subscriptionCounts(caller.organization.id, objects.map(idOf));
  return objects.map((object) => {
    const { spec, status } = object;
    const { deprecated, deprecatedMessage = null } = spec;
    return {
      id: idOf(object),
      organizationId: caller.organization.id,
      name: spec.name,
      displayName: spec.displayName ?? null,
      description: spec.description ?? null,
      category: spec.category ?? null,
      schema: spec.schema ?? null,
      schemaVersion: status?.schemaVersion ?? 1,
      examplePayload: spec.examplePayload ?? null,
      documentationUrl: spec.documentationUrl ?? null,
      isEnabled: spec.enabled,
      isDeprecated: deprecated,
      deprecatedAt: deprecated && status?.deprecatedAt !== undefined ? isoTime(Date.parse(status.deprecatedAt)) : null,
      deprecatedMessage,
      subscriptionCount: counts.get(idOf(object)) ?? 0,
      ...timesOf(object),
    };
  });
}

/** The record of one, after a write with what the controller has found since. */
export async function toEventTypeRecord(
  object: PosthornObject<'WebhookEventType'>,
  call: Call,
): Promise<{ data: z.input<typeof eventTypeRecord> }> {
  const latest = await byName(call, 'WebhookEventType', object.metadata.name);
  const isThis = latest !== null && latest.metadata.uid === object.metadata.uid && latest.metadata.generation >= object.metadata.generation;
  const [data] = await eventTypeRecords([isThis ? latest : object], call);
  if (data === undefined) throw new Error('a record was lost');
  return { data };
}
