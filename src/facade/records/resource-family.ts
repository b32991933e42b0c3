import { z } from 'zod';
import { mapInTurns } from '../../core/in-turns.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { text } from '../../resources/text.ts';
import { type Family, type Operation, operation } from '../http/operation.ts';
import { cutPage, optionalPage, type optionalPageQuery, pageOf, type pageQuery } from '../http/pagination.ts';
import { queryList } from '../http/query.ts';
import type { ServedKind } from '../http/services.ts';
import { idOf, newestFirst } from './lookup.ts';
import { nouns } from './nouns.ts';
import { newSlug } from './record-fields.ts';
import { findVersioned } from './record-versions.ts';
import { type ResourceFamilyDefinition, resourceDefinition } from './resource-family-definition.ts';
import { changePlan, changeRecord, createRecord, deleteRecord } from './resource-writes.ts';

/** The family with its five operations, or six with PUT, and `more` of its own. */
export function resourceFamily<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  defined: ResourceFamilyDefinition<K, Body, Query>,
  more: readonly Operation[] = [],
): Family {
  const definition = resourceDefinition(defined);
  const { kind, name, path, description, record, body, fieldCodes, errors = {} } = definition;
  const noun = nouns[kind];
  const readOnly = Object.keys(record.shape).filter((field) => !(field in body.shape));
  const one = `${path}/{id}`;
  const query: z.ZodObject = definition.query.extend(ofNames);
  const common = [
    operation({
      method: 'GET',
      path,
      operationId: `list${kind}s`,
      summary: `List ${name.toLowerCase()}`,
      scope: 'read',
      query,
      answer: definition.isListedWhole
        ? {
            status: 200,
            description: 'All of them or the requested page, newest first.',
            schema: z.object({ data: z.array(definition.item).describe('The records.') }),
          }
        : { status: 200, description: 'One page, newest first.', schema: pageOf(definition.item) },
      handle: async (call) => {
        const isListed = await definition.filter(call.query as z.output<Query>, call);
        const isNamed = namedIn(call.query);
        const objects = newestFirst(call, kind).filter((object) => isNamed(object) && isListed(object));
        if (definition.isListedWhole) {
          const listed = optionalPage(objects, wholeListNumbers.parse(call.query));
          return { data: await mapInTurns(call.turn, listed, (object) => definition.toItem(object, call)) };
        }
        const { items, pagination } = cutPage(objects, pageNumbers.parse(call.query));
        return { data: await Promise.all(items.map((object) => definition.toItem(object, call))), pagination };
      },
    }),
    operation({
      method: 'POST',
      path,
      operationId: `create${kind}`,
      summary: `Create a ${noun}`,
      scope: 'write',
      body: bodyOfCreate(definition),
      readOnly,
      fieldCodes,
      requestExample: definition.examples.create,
      answer: { status: 201, description: `The new ${noun}.`, schema: record },
      errors: ['ALREADY_EXISTS', ...(errors.create ?? [])],
      // Required fields have been checked; this gives the body its type.
      handle: async (call) => definition.toRecord(await createRecord(definition, call, body.parse(call.body)), call),
    }),
    operation({
      method: 'GET',
      path: one,
      operationId: `get${kind}`,
      summary: `Read a ${noun}`,
      scope: 'read',
      answer: { status: 200, description: `The ${noun}.`, schema: record },
      errors: ['RESOURCE_NOT_FOUND'],
      isVersioned: true,
      handle: async (call) => definition.toRecord(await findVersioned(call, kind, call.params['id'] ?? ''), call),
    }),
    ...(definition.alsoPut ? (['PATCH', 'PUT'] as const) : (['PATCH'] as const)).map((method) =>
      operation({
        method,
        path: one,
        operationId: `${method === 'PUT' ? 'put' : 'update'}${kind}`,
        summary: `Change a ${noun}`,
        description: `What is not sent stays${method === 'PUT' ? ', as with PATCH' : ''}.`,
        scope: 'write',
        body,
        readOnly,
        fieldCodes,
        requestExample: definition.examples.change,
        answer: { status: 200, description: `The changed ${noun}.`, schema: record },
        errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED', 'CONFLICT', ...(errors.change ?? [])],
        isVersioned: true,
        handle: async (call) => definition.toRecord(await changeRecord(definition, call, call.body), call),
      }),
    ),
    operation({
      method: 'DELETE',
      path: one,
      operationId: `delete${kind}`,
      summary: `Delete a ${noun}`,
      scope: 'delete',
      answer: { status: 204, description: 'It is deleted.' },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED', ...(errors.delete ?? [])],
      isVersioned: true,
      handle: (call) => deleteRecord(definition, call),
    }),
  ];
  return {
    name,
    description,
    noun,
    operations: [...common, ...more],
    changes: changePlan(definition, body, { readOnly, fieldCodes }),
    shown: { ...definition.examples.create, ...definition.examples.shown },
  };
}

function bodyOfCreate<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>({
  body,
  onCreate,
  required,
  standIns = {},
}: ResourceFamilyDefinition<K, Body, Query>): z.ZodObject {
  const shape: z.ZodRawShape = { ...body.shape, slug: newSlug.optional(), ...onCreate };
  const replaceable: Readonly<Record<string, string | undefined>> = standIns;
  const isNeeded = (name: string): boolean => required.includes(name) && replaceable[name] === undefined;
  const fields = Object.entries(shape).map(([name, schema]) => [name, isNeeded(name) ? z.nonoptional(schema) : schema]);
  const whole = z.strictObject(Object.fromEntries(fields));
  const pairs = Object.entries(replaceable).flatMap(([name, standIn]) => (standIn === undefined ? [] : [[name, standIn] as const]));
  return pairs.reduce(
    (schema, [name, standIn]) =>
      schema
        .refine((sent) => sent[name] !== undefined || sent[standIn] !== undefined, { path: [name], error: 'is required' })
        .meta({ anyOf: [{ required: [name] }, { required: [standIn] }] }),
    whole,
  );
}

/** Every list of resources takes these. */
const ofNames = { id: queryList(text(1, 128), 'Only those with these ids or slugs; unknown ones are left out.') };
const sentNames = z.object({ id: z.array(z.string()).optional() } satisfies Record<keyof typeof ofNames, z.ZodType>);

function namedIn(query: unknown): (object: PosthornObject<ServedKind>) => boolean {
  const { id } = sentNames.parse(query);
  const names = new Set(id);
  return (object) => id === undefined || names.has(object.metadata.name) || names.has(idOf(object));
}

/** Output of `optionalPageQuery`. */
const wholeListNumbers = z.object({ page: z.int().optional(), pageSize: z.int().optional() } satisfies Record<
  keyof typeof optionalPageQuery,
  z.ZodType
>);
/** Output of `pageQuery`. */
const pageNumbers = z.object({ page: z.int(), pageSize: z.int() } satisfies Record<keyof typeof pageQuery, z.ZodType>);
