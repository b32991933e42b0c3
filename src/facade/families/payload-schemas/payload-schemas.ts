import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { description } from '../../../resources/fields.ts';
import type { PosthornObject, SpecInputOf } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { pageQuery } from '../../http/pagination.ts';
import { querySearch } from '../../http/query.ts';
import { refuseUsed, routesWith } from '../../records/in-use.ts';
import { byName } from '../../records/lookup.ts';
import { contentOf, refuseTaken, sentSharing, sharingOf, sharingToSpec, shownSharing } from '../../records/object-sharing.ts';
import {
  clearableToSpec,
  identityOf,
  nameToSpec,
  recordIdentity,
  recordTimes,
  sentName,
  sentSlug,
  shownDescription,
  timesOf,
} from '../../records/record-fields.ts';
import { resourceFamily } from '../../records/resource-family.ts';
import { matchesText } from '../../records/search.ts';
import { schemaTestOperation, schemaValidateOperation } from './schema-validate.ts';
import { checkedSchema, parsedSchema, schemaObject, sentSchema } from './sent-schema.ts';

const record = z
  .object({
    ...recordIdentity,
    description: shownDescription,
    jsonSchema: schemaObject.describe('The JSON Schema; one that nothing meets while another organization does not share it.'),
    ...shownSharing,
    version: z.int().min(1).describe('Grows with each change of jsonSchema.'),
    routeCount: z.int().min(0).describe('Routes that refer to it.'),
    ...recordTimes,
  })
  .meta({ id: 'PayloadSchema' });

const body = z.strictObject({
  name: sentName.optional(),
  slug: sentSlug.optional(),
  description: description.nullable().optional(),
  jsonSchema: sentSchema.optional(),
  ...sentSharing,
});

async function toRecord(object: PosthornObject<'PayloadSchema'>, call: Call): Promise<z.input<typeof record>> {
  const { description: text = null } = object.spec;
  // The controller sets the version after the write, so a cached object may have a newer one.
  const latest = await byName(call, 'PayloadSchema', object.metadata.name);
  return {
    ...identityOf(object, call),
    description: text,
    jsonSchema: await shownOf(object, call),
    ...sharingOf(object),
    version: Math.max(object.status?.version ?? 1, latest?.status?.version ?? 1),
    routeCount: routesWith(object, call).length,
    ...timesOf(object),
  };
}

async function shownOf({ kind, spec }: PosthornObject<'PayloadSchema'>, call: Call): Promise<Record<string, unknown>> {
  const { jsonSchema } = (await contentOf(call, { kind, spec })) ?? { jsonSchema: { not: {} } };
  return schemaObject.parse(jsonSchema);
}

export const payloadSchemas = resourceFamily(
  {
    kind: 'PayloadSchema',
    name: 'Schemas',
    path: '/schemas',
    description: 'JSON Schemas that the payload of an event must meet to be delivered by a route.',
    record,
    item: record,
    body,
    required: ['name', 'jsonSchema'],
    standIns: { jsonSchema: 'sharedFrom' },
    alsoPut: true,
    immutable: { slug: (object) => [object.metadata.name] },
    query: z.object({ ...pageQuery, search: querySearch.optional().describe('Part of the name or slug.') }),
    examples: {
      create: { name: 'Order', jsonSchema: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } } },
      change: { jsonSchema: { type: 'object', required: ['id', 'amount'], properties: { amount: { type: 'number', minimum: 0 } } } },
    },
    errors: { delete: ['IN_USE'] },
    filter:
      ({ search }) =>
      (object) =>
        matchesText(search, object.spec.name, object.metadata.name),
    toItem: toRecord,
    toRecord,
    toSpec: async ({ call, body: { name, description: text, jsonSchema, ...sent }, current }) => {
      const spec = current?.spec;
      const shown = current === undefined ? {} : { jsonSchema: await shownOf(current, call) };
      const content = { jsonSchema: typeof jsonSchema === 'string' ? parsedSchema(jsonSchema) : jsonSchema };
      const sharing = await sharingToSpec(call, 'PayloadSchema', { ...sent, content, shown }, spec);
      const head = { name: nameToSpec(name, current), description: clearableToSpec(text, spec?.description), ...sharing };
      if (sharing.sharedFrom !== undefined) return head satisfies SpecInputOf<'PayloadSchema'>;
      if (jsonSchema === undefined && spec?.jsonSchema === undefined)
        throw new PosthornError('VALIDATION_FAILED', 'jsonSchema is required without sharedFrom.');
      return {
        ...head,
        jsonSchema: jsonSchema === undefined ? spec?.jsonSchema : await checkedSchema(call, jsonSchema, spec?.jsonSchema),
      } satisfies SpecInputOf<'PayloadSchema'>;
    },
    beforeDelete: {
      looksAt: ['Route', 'PayloadSchema'],
      run: async (object, call) => {
        refuseUsed('schema', routesWith(object, call));
        await refuseTaken(object, call);
      },
    },
  },
  [schemaValidateOperation, schemaTestOperation],
);
