import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorBody, textErrorBody, webhookErrorBody } from '../http/error-response.ts';
import { type Family, type Operation, takesIdempotencyKey, takesIfMatch } from '../http/operation.ts';
import { resourceRecord } from '../records/record-fields.ts';
import { Components, members } from './openapi-components.ts';
import { errorsOf, pascal } from './openapi-errors.ts';
import { exampleOf } from './openapi-example.ts';
import { shareFields } from './openapi-fields.ts';
import { answerHeaders, headersOf } from './openapi-headers.ts';
import { ingestPaths, ingestTag } from './openapi-ingest.ts';
import { payloadPaths, payloadTag } from './openapi-payload.ts';

type Json = Record<string, unknown>;

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'The request is carried out once: for 24 hours an equal one with the same key gets the first answer again (with Idempotent-Replayed: true), another one 409, as does an equal one while the first is under way. Only answers of success are kept. A new key is 429 where no more can be kept.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
};

const ifMatch = {
  name: 'If-Match',
  in: 'header',
  description:
    'The `ETag` of the record as it was read, or several. A record that has changed since is neither changed nor deleted: 412. Without this header the record is changed or deleted in any version.',
  schema: { type: 'string', minLength: 1, maxLength: 1024, pattern: '^[!-~ ]+$' },
};

/**
 * The OpenAPI 3.1 document of the families, of ingest and of the links to payloads, with every error; its servers are below `basePath`. Making it takes a good part of a second: after each operation what else
 * the process has to do may run.
 */
export async function openApiDocument(families: readonly Family[], version: string, basePath = ''): Promise<Json> {
  const components = new Components();
  const named = [errorBody, textErrorBody, webhookErrorBody, resourceRecord, ...families.flatMap(({ common = [] }) => common)];
  for (const schema of named) components.answered(schema, '');
  const paths: Record<string, Json> = {};
  for (const family of families) {
    for (const operation of family.operations) {
      const path = paths[operation.path] ?? pathOf(operation, nounOf(operation, family), components);
      path[operation.method.toLowerCase()] = describe(operation, family, components);
      paths[operation.path] = path;
      await nextTurn();
    }
  }
  const takesSessions = families.some(({ operations }) => operations.some(({ signsIn }) => signsIn === true));
  const keyless = { ...payloadPaths(components, basePath), ...ingestPaths(components, basePath) };
  shareParameters(paths, components);
  components.shareProperties();
  shareFields(components);
  return {
    openapi: '3.1.0',
    info: { title: 'Posthorn', version, description, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [
      { url: `${basePath}/api`, description: 'The organization of the API key.' },
      {
        url: `${basePath}/api/organizations/{orgId}`,
        variables: { orgId: { default: 'default', description: 'Id or slug of the organization of the API key.' } },
      },
    ],
    security: [{ bearer: [] }, { apiKey: [] }, ...(takesSessions ? [{ session: [] }] : [])],
    tags: [...families.map(({ name, description: text }) => ({ name, description: text })), payloadTag, ingestTag],
    paths: { ...paths, ...keyless },
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key; in a cluster also a Kubernetes token.' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        ...(takesSessions && {
          session: { type: 'apiKey', in: 'cookie', name: 'posthorn_session', description: 'Of a browser that has logged in.' },
        }),
      },
      parameters: components.parameters,
      examples: components.examples,
      headers: answerHeaders,
      responses: components.responses,
      schemas: components.schemas,
    },
  };
}

const description = [
  'Configuration and history of a webhook relay. Paths accept an id or a slug. Bodies are strict: an unknown field is refused and named;',
  'read-only fields of a record, sent back, are ignored. Operations name the scope that they need. Errors have the form `{error, message, code}`, of cron jobs `{error}`, of the webhook subscription API `{error, message, details}`;',
  'the header X-Error-Code of each has the code. Every answer has the header X-Request-Id and, where requests are limited, X-RateLimit-Limit,',
  'X-RateLimit-Remaining and X-RateLimit-Reset. A write is programmed when it is answered, or the response has the header Warning;',
  'it has Idempotent-Replayed where it is the answer to an earlier request with the same Idempotency-Key.',
].join('\n');

/** Name of a record of the operation. */
function nounOf(operation: Operation, family: Family): string {
  return operation.noun ?? family.noun;
}

/** A path with its parameters, which all of its operations have. */
function pathOf({ path }: Operation, noun: string, components: Components): Json {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const description =
      name === 'id' ? `Id of the ${noun}, or its ${noun === 'event type' ? 'name' : 'slug'}.` : `The ${name} of the ${noun}.`;
    const part = { name, in: 'path', required: true, description, schema: { type: 'string' } };
    return components.refer('parameters', pascal(`${noun} ${name}`), part);
  });
  return parameters.length === 0 ? {} : { parameters };
}

function describe(operation: Operation, family: Family, components: Components): Json {
  const { operationId, summary, scope, adminOnly = false } = operation;
  const needs = `Scope: \`${scope}\`${adminOnly ? ', role admin' : ''}.`;
  // Where a request names no record it is the organization that may be missing.
  const namesRecord = operation.path.includes('{') || operation.errors?.includes('RESOURCE_NOT_FOUND') === true;
  const noun = namesRecord ? nounOf(operation, family) : 'organization';
  return {
    operationId,
    summary,
    description: `${operation.description ?? standardDescription(operation)} ${needs}`,
    tags: [family.name],
    ...(operation.signsIn === true && { security: [] }),
    ...parametersOf(operation, components),
    ...requestOf(operation, components),
    responses: {
      ...successesOf(operation, family.shown ?? {}, components),
      ...errorsOf(operation, { missing: noun, record: nounOf(operation, family) }, components),
    },
  };
}

/** Where the summary is nearly complete. */
function standardDescription({ method, answer }: Operation): string {
  if (method === 'DELETE') return 'It cannot be undone.';
  return answer.description;
}

function successesOf(operation: Operation, shown: Json, components: Components): Json {
  const { answer } = operation;
  const rest = answerOf(operation, shown, components);
  const all = [answer, ...(answer.otherwise === undefined ? [] : [answer.otherwise])];
  return Object.fromEntries(
    all.map(({ status, description: text }) => {
      const hasTag = operation.isVersioned === true && operation.method !== 'DELETE';
      const headers = hasTag ? { headers: headersOf(['ETag']) } : {};
      const described = { description: text, ...headers, ...rest };
      return [status, status === 204 ? components.refer('responses', pascal(text.replace(/^It is /, '')), described) : described];
    }),
  );
}

function answerOf({ operationId, path, answer, offersYaml }: Operation, shown: Json, components: Components): Json {
  if (answer.bytes !== undefined)
    return {
      content: {
        'application/octet-stream': {
          schema: { type: 'string', format: 'binary', description: answer.bytes },
          example: '{"ref":"refs/heads/main"}',
        },
      },
    };
  if (answer.events !== undefined) {
    const { description, example } = answer.events;
    return { content: { 'text/event-stream': { schema: { type: 'string', description }, example } } };
  }
  if (answer.schema === undefined) return {};
  const { schemas } = components;
  const schema = components.answered(answer.schema, `${pascal(operationId)}Result`);
  const [collection = ''] = path.slice(1).split('/');
  const example = answer.example ?? exampleOf(schema, { schemas, known: shown, collection });
  return {
    content: {
      'application/json': components.showExample(schema, example) ? { schema } : { schema, example },
      ...(offersYaml !== undefined && {
        'application/yaml': { schema: { type: 'string', description: offersYaml.description }, example: offersYaml.makeExample() },
      }),
      ...(answer.otherContent !== undefined && {
        [answer.otherContent.type]: {
          schema: { type: 'string', description: answer.otherContent.description },
          example: answer.otherContent.example,
        },
      }),
    },
  };
}

function parametersOf(operation: Operation, components: Components): Json {
  const { query } = operation;
  const properties = query === undefined ? {} : members(components.inline(query)['properties']);
  const inQuery = Object.entries(properties).map(([name, schema]) => {
    const { description: text, ...rest } = members(schema);
    return { name, in: 'query', ...(text === undefined ? {} : { description: text }), schema: rest };
  });
  const parameters = [
    ...inQuery,
    ...(takesIdempotencyKey(operation) ? [idempotencyKey] : []),
    ...(takesIfMatch(operation) ? [ifMatch] : []),
  ];
  return parameters.length === 0 ? {} : { parameters };
}

/** A schema of several operations becomes a component: by its name, and with the collection where another one has that name. */
function shareParameters(paths: Readonly<Record<string, Json>>, components: Components): void {
  const uses = Object.entries(paths).flatMap(([path, operations]) =>
    Object.values(operations).flatMap((operation) => {
      const { parameters } = members(operation);
      return Array.isArray(parameters) ? [{ collection: path.split('/')[1] ?? '', parameters }] : [];
    }),
  );
  const counts = new Map<string, number>();
  for (const text of uses.flatMap(({ parameters }) => parameters.map((each) => JSON.stringify(each))))
    counts.set(text, (counts.get(text) ?? 0) + 1);
  const shared = new Map<string, Json>();
  for (const { collection, parameters } of uses)
    for (const [i, parameter] of parameters.entries()) {
      const text = JSON.stringify(parameter);
      if ((counts.get(text) ?? 0) < 2 || '$ref' in parameter) continue;
      const part =
        shared.get(text) ?? components.refer('parameters', parameterName(String(parameter.name), collection, components), parameter);
      shared.set(text, part);
      parameters[i] = part;
    }
}

/** No schema has it either: some generators make one type of each component. */
function parameterName(parameter: string, collection: string, { parameters, schemas }: Components): string {
  const name = pascal(parameter) in schemas ? `${pascal(parameter)}Parameter` : pascal(parameter);
  return name in parameters ? name + pascal(collection) : name;
}

function requestOf(operation: Operation, components: Components): Json {
  const { operationId, method, body, requestExample } = operation;
  if (body === undefined) return {};
  // PUT and PATCH of a record take the same.
  const name = `${pascal(operationId.replace(/^put(?=[A-Z])/, 'update'))}Body`;
  // Generators ignore alternative sets of required fields: descriptions document them.
  const change = ({ anyOf: _, oneOf: __, ...schema }: Json): Json => ({
    ...schema,
    properties: { ...members(schema['properties']), ...readOnlyProperties(operation, members(schema['properties'])) },
  });
  const schema = method === 'PATCH' || method === 'PUT' ? components.sentToChange(body, name, change) : components.sent(body, name, change);
  const example = requestExample === undefined ? {} : { example: requestExample };
  const required = !body.safeParse({}).success;
  return { requestBody: { ...(required && { required }), content: { 'application/json': { schema, ...example } } } };
}

/** Ignored fields of a body: those of a record that was read. */
function readOnlyProperties({ readOnly = [] }: Operation, own: Json): Json {
  return Object.fromEntries(readOnly.filter((name) => !(name in own)).map((name) => [name, { readOnly: true, description: 'Ignored.' }]));
}
