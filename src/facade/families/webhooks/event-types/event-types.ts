import { z } from 'zod';
import { isPosthornError, PosthornError } from '../../../../core/errors.ts';
import { jsonSchemaText } from '../../../../core/json-schema-text.ts';
import { parsedJson, parsedStrictJson } from '../../../../core/json-text.ts';
import { isUsableUrl } from '../../../../core/url-problem.ts';
import { cursorOf, cursorText } from '../../../../data/shard/cursor.ts';
import type { PosthornObject, SpecInputOf } from '../../../../resources/kinds.ts';
import { eventTypeSlug, isReservedSlug } from '../../../../resources/names.ts';
import { text } from '../../../../resources/text.ts';
import { webhookEventType } from '../../../../resources/webhook-event-type.ts';
import { type Call, type Family, operation } from '../../../http/operation.ts';
import { cursorPageOf, cursorPagination, cursorQuery } from '../../../http/pagination.ts';
import { queryBoolean, querySearch } from '../../../http/query.ts';
import { settingNotHad } from '../../../http/setting-not-had.ts';
import { idOf, newestFirst } from '../../../records/lookup.ts';
import { clearableToSpec } from '../../../records/record-fields.ts';
import { findVersioned } from '../../../records/record-versions.ts';
import { changePlan, changeRecord, createRecord, deleteRecord } from '../../../records/resource-writes.ts';
import { matchesText } from '../../../records/search.ts';
import { specField } from '../../../records/spec-field.ts';
import { sentHttpUrl } from '../../../records/url-fields.ts';
import { refuseProblem } from '../../shared/code-problem.ts';
import { deleted, isDeleted, single } from '../../shared/envelope.ts';
import { eventTypeKey, noEventType } from './event-type-lookup.ts';
import { eventTypeRecord, eventTypeRecords, expiryText, toEventTypeRecord } from './event-type-record.ts';

const fields = webhookEventType.spec.shape;
const body = z.strictObject({
  name: fields.name.optional(),
  displayName: fields.displayName.nullable(),
  description: fields.description.nullable(),
  category: fields.category.nullable(),
  schema: fields.schema.nullable().describe('JSON Schema as text: draft 2020-12 or, by its $schema, draft 07; at most 65,536 bytes.'),
  examplePayload: fields.examplePayload.nullable().describe('JSON as text.'),
  documentationUrl: sentHttpUrl.refine(isUsableUrl, 'must be a URL').nullable().optional().describe('Where subscribers read more.'),
  isEnabled: specField(fields.enabled),
  isDeprecated: specField(fields.deprecated),
  deprecatedMessage: fields.deprecatedMessage.nullable(),
  expiresAfterSeconds: fields.expiresAfterSeconds.unwrap().nullable().optional().describe(expiryText),
  defaultPriority: settingNotHad(z.null(), 'Nothing but null: events have no priorities.'),
  isPublic: settingNotHad(z.literal(false), 'Nothing but false: event types are not published.'),
});
const readOnly = Object.keys(eventTypeRecord.shape).filter((field) => !(field in body.shape));

/** Names are accepted in paths, too; an error names what is missing as it was sent. */
async function bySentName<T>(call: Call, work: (call: Call) => Promise<T>): Promise<T> {
  const { id: sent = '' } = call.params;
  return work({ ...call, params: { id: eventTypeKey(sent) } }).catch((error: unknown) => {
    throw isPosthornError(error, 'RESOURCE_NOT_FOUND') ? noEventType(sent) : error;
  });
}

const definition = {
  kind: 'WebhookEventType',
  noun: 'event type',
  immutable: { name: ({ spec }: PosthornObject<'WebhookEventType'>) => [spec.name] },
  toSpec,
} as const;

export const eventTypes: Family = {
  name: 'Event types',
  noun: 'event type',
  changes: changePlan(definition, body, { readOnly }),
  description: 'Kinds of events that customers subscribe to with their webhook endpoints.',
  shown: {
    name: 'order.paid',
    displayName: 'Order paid',
    category: 'Orders',
    schema: '{"type":"object","required":["id"]}',
    schemaVersion: 1,
    examplePayload: '{"id":"o-17","total":12.5}',
    isDeprecated: false,
    deprecatedAt: null,
    deprecatedMessage: null,
    expiresAfterSeconds: null,
    subscriptionCount: 3,
  },
  operations: [
    operation({
      method: 'GET',
      path: '/event-types',
      operationId: 'listEventTypes',
      summary: 'List event types',
      scope: 'read',
      query: z.object({
        category: text(0, 100).optional().describe('Only those of this group.'),
        isEnabled: queryBoolean.optional().describe('Only those that are enabled, or not.'),
        search: querySearch.optional().describe('Part of the name or of the name shown to people.'),
        ...cursorQuery,
      }),
      answer: { status: 200, description: 'Newest first.', schema: cursorPageOf(eventTypeRecord) },
      handle: async (call) => {
        const { category, isEnabled, search, limit, cursor } = call.query;
        const scope = JSON.stringify(['event-types', call.caller.organization.id, category, isEnabled, search]);
        const isAfter = afterCursor(cursor, scope);
        const matching = newestFirst(call, 'WebhookEventType').filter(
          (object) =>
            (category === undefined || object.spec.category === category) &&
            (isEnabled === undefined || object.spec.enabled === isEnabled) &&
            matchesText(search, object.spec.name, object.spec.displayName) &&
            isAfter(object),
        );
        const page = matching.slice(0, limit);
        const last = matching.length > limit ? page.at(-1) : undefined;
        const nextCursor = last === undefined ? null : cursorOf(placeOf(last), scope);
        return { data: await eventTypeRecords(page, call), pagination: cursorPagination(nextCursor) };
      },
    }),
    operation({
      method: 'POST',
      path: '/event-types',
      operationId: 'createEventType',
      summary: 'Create an event type',
      scope: 'write',
      body: body.required({ name: true }),
      readOnly,
      requestExample: {
        name: 'order.paid',
        displayName: 'Order paid',
        category: 'Orders',
        schema: '{"type":"object","required":["id"]}',
        examplePayload: '{"id":"o-17","total":12.5}',
      },
      answer: { status: 201, description: 'The new event type.', schema: single(eventTypeRecord) },
      errors: ['ALREADY_EXISTS', 'CONFLICT'],
      handle: async (call) => {
        const { name } = call.body;
        const slug = eventTypeSlug(name);
        if (isReservedSlug(slug)) refuse('name', 'is reserved, since API paths use this word');
        const created = await createRecord(definition, call, { ...call.body, slug }).catch((error: unknown) => {
          if (!isPosthornError(error, 'ALREADY_EXISTS')) throw error;
          throw new PosthornError('ALREADY_EXISTS', `There is already an event type "${name}".`, { details: { name: ['is taken'] } });
        });
        return toEventTypeRecord(created, call);
      },
    }),
    operation({
      method: 'GET',
      path: '/event-types/{id}',
      operationId: 'getEventType',
      summary: 'Read an event type',
      description: 'By its id or its name.',
      scope: 'read',
      answer: { status: 200, description: 'The event type.', schema: single(eventTypeRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      isVersioned: true,
      handle: async (call) =>
        toEventTypeRecord(await bySentName(call, (named) => findVersioned(named, 'WebhookEventType', named.params['id'] ?? '')), call),
    }),
    operation({
      method: 'PATCH',
      path: '/event-types/{id}',
      operationId: 'updateEventType',
      summary: 'Change an event type',
      description: 'Fields that are not sent stay unchanged; null removes one.',
      scope: 'write',
      body,
      readOnly,
      requestExample: { isDeprecated: true, deprecatedMessage: 'Use order.completed.' },
      answer: { status: 200, description: 'The changed event type.', schema: single(eventTypeRecord) },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED', 'CONFLICT'],
      isVersioned: true,
      handle: async (call) => toEventTypeRecord(await bySentName(call, (named) => changeRecord(definition, named, call.body)), call),
    }),
    operation({
      method: 'DELETE',
      path: '/event-types/{id}',
      operationId: 'deleteEventType',
      summary: 'Delete an event type with its subscriptions',
      scope: 'delete',
      answer: { status: 200, description: 'It is deleted.', schema: deleted },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED'],
      isVersioned: true,
      handle: async (call) => {
        const object = await bySentName(call, (named) => deleteRecord(definition, named));
        await call.services.webhooks.deleteEventType(call.caller.organization.id, idOf(object), object.spec.name);
        return isDeleted;
      },
    }),
  ],
};

async function toSpec({
  call,
  body: sent,
  current,
}: {
  call: Call;
  body: z.output<typeof body> & { slug?: string };
  current?: PosthornObject<'WebhookEventType'>;
}): Promise<SpecInputOf<'WebhookEventType'>> {
  const spec = current?.spec;
  await refuseBrokenSchema(call, sent.schema, spec?.schema);
  refuseBrokenExample(sent.examplePayload);
  return {
    name: spec?.name ?? sent.name ?? '',
    displayName: clearableToSpec(sent.displayName, spec?.displayName),
    description: clearableToSpec(sent.description, spec?.description),
    category: clearableToSpec(sent.category, spec?.category),
    schema: clearableToSpec(sent.schema, spec?.schema),
    examplePayload: clearableToSpec(sent.examplePayload, spec?.examplePayload),
    documentationUrl: clearableToSpec(sent.documentationUrl, spec?.documentationUrl),
    enabled: sent.isEnabled ?? spec?.enabled,
    deprecated: sent.isDeprecated ?? spec?.deprecated,
    deprecatedMessage: clearableToSpec(sent.deprecatedMessage, spec?.deprecatedMessage),
    expiresAfterSeconds: clearableToSpec(sent.expiresAfterSeconds, spec?.expiresAfterSeconds),
  };
}

/** `current`: what was taken before, and may come back in a record. */
async function refuseBrokenSchema(call: Call, schema: string | null | undefined, current: string | undefined): Promise<void> {
  if (schema === undefined || schema === null) return;
  const { value, problem } = schema === current ? parsedJson(schema) : parsedStrictJson(schema);
  if (problem !== undefined) refuse('schema', `is ${problem}`);
  const text = jsonSchemaText(value) ?? refuse('schema', 'must be at most 65,536 bytes as JSON');
  refuseProblem('schema', await call.services.sandbox.checkSchema(call.caller.organization.id, text));
}

function refuseBrokenExample(example: string | null | undefined): void {
  const { problem } = example === undefined || example === null ? {} : parsedJson(example);
  if (problem !== undefined) refuse('examplePayload', `is ${problem}`);
}

function refuse(field: string, complaint: string): never {
  throw new PosthornError('VALIDATION_FAILED', `${field} ${complaint}.`, { details: { [field]: [complaint] } });
}

/** The list position of an event type: `<creation time>/<object name>`. */
function placeOf({ metadata }: PosthornObject<'WebhookEventType'>): string {
  return `${metadata.creationTimestamp}/${metadata.name}`;
}

/** Whether an event type follows the position where the previous page ended. */
function afterCursor(cursor: string | undefined, scope: string): (object: PosthornObject<'WebhookEventType'>) => boolean {
  if (cursor === undefined) return () => true;
  const [createdAt = '', name = ''] = cursorText(cursor, scope).split('/');
  return ({ metadata }) => metadata.creationTimestamp < createdAt || (metadata.creationTimestamp === createdAt && metadata.name > name);
}
