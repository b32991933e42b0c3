import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { type ErrorCode, errorCodes } from '../core/errors.ts';
import { errorExamples } from './error-examples.ts';
import { type ErrorForm, errorBody, errorFormOf, errorIn, textErrorBody, webhookErrorBody } from './error-response.ts';
import { exampleOf } from './openapi-example.ts';
import { ingestPaths, ingestTag } from './openapi-ingest.ts';
import { type Family, type Operation, takesIdempotencyKey } from './operation.ts';

type Json = Record<string, unknown>;

/** Codes that any operation can answer: 404 below the path of another organization, 405 to other methods of its path. */
const everywhere: readonly ErrorCode[] = [
  'UNAUTHORIZED',
  'FORBIDDEN',
  'RESOURCE_NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'RATE_LIMITED',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
  'UNAVAILABLE',
];
const withParameters: readonly ErrorCode[] = ['NOT_FOUND'];
const withQuery: readonly ErrorCode[] = ['INVALID_QUERY'];
const withBody: readonly ErrorCode[] = [
  'BAD_REQUEST',
  'MALFORMED_JSON',
  'UNKNOWN_FIELD',
  'VALIDATION_FAILED',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
];

const withIdempotencyKey: readonly ErrorCode[] = ['VALIDATION_FAILED', 'IDEMPOTENCY_CONFLICT'];

const answerHeaders = {
  'X-Request-Id': { description: 'Echoed, or made when none was sent.', schema: { type: 'string' } },
  'X-RateLimit-Limit': { description: 'Requests per minute; absent without a limit.', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': { description: 'Requests left in this minute.', schema: { type: 'integer' } },
  'X-RateLimit-Reset': { description: 'When the minute ends: Unix time in seconds.', schema: { type: 'integer' } },
  'X-Error-Code': { description: 'The code of the error.', schema: { type: 'string' } },
  'WWW-Authenticate': { description: 'Bearer.', schema: { type: 'string' } },
  Allow: { description: 'The methods of this path.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds after which trying again makes sense.', schema: { type: 'integer' } },
  'Idempotent-Replayed': {
    description: 'true where this is the answer to an earlier request with the same Idempotency-Key.',
    schema: { type: 'string' },
  },
  Warning: { description: '199 and what the client should know, such as "not yet in force".', schema: { type: 'string' } },
};
type AnswerHeader = keyof typeof answerHeaders;

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'The request is carried out once: for 24 hours an equal request with the same key gets the first answer again (with Idempotent-Replayed: true), another one 409, and so does an equal one while the first is under way. Only answers of success are kept: a request that was refused is judged anew. A new key is 429 where no more answers can be kept.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
};

/**
 * The OpenAPI 3.1 document of the families and of ingest, with every error. Making it takes a good part of a second: after each operation what else
 * the process has to do gets its turn.
 */
export async function openApiDocument(families: readonly Family[], version: string): Promise<Json> {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const { name, operations, shown = {} } of families) {
    for (const operation of operations) {
      const path = paths[operation.path] ?? {};
      path[operation.method.toLowerCase()] = describe(operation, { tag: name, shown }, schemas);
      paths[operation.path] = path;
      await nextTurn();
    }
  }
  for (const body of [errorBody, textErrorBody, webhookErrorBody]) schemaOf(body, 'output', schemas);
  return {
    openapi: '3.1.0',
    info: { title: 'Posthorn', version, description, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [
      { url: '/api', description: 'The organization of the API key.' },
      {
        url: '/api/organizations/{orgId}',
        variables: { orgId: { default: 'default', description: 'Id or slug of the organization of the API key.' } },
      },
    ],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: [...families.map(({ name, description: text }) => ({ name, description: text })), ingestTag],
    paths: { ...paths, ...ingestPaths() },
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key; in a cluster also a Kubernetes token.' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
      headers: answerHeaders,
      schemas,
    },
  };
}

const description = [
  'Configuration and history of a webhook relay. Paths accept an id or a slug. Bodies are strict: an unknown field is refused and named;',
  'read-only fields of a record, sent back, are ignored. Errors have the form `{error, message, code}`, of cron jobs `{error}`, of the webhook subscription API `{error, message, details}`;',
  'the code stands in the header X-Error-Code of each.',
].join('\n');

function describe(operation: Operation, { tag, shown }: { tag: string; shown: Json }, schemas: Json): Json {
  const { operationId, summary, scope, adminOnly = false } = operation;
  const needs = `Needs the scope \`${scope}\`${adminOnly ? ' and the role admin' : ''}.`;
  return {
    operationId,
    summary,
    description: [operation.description, needs].filter((text) => text !== undefined).join(' '),
    tags: [tag],
    ...parametersOf(operation, schemas),
    ...requestOf(operation, schemas),
    responses: {
      ...successesOf(operation, shown, schemas),
      ...errorsOf(operation),
    },
  };
}

function successesOf(operation: Operation, shown: Json, schemas: Json): Json {
  const { answer, scope } = operation;
  const rest = {
    headers: headersOf([
      ...withLimit,
      ...(scope === 'read' ? [] : (['Warning'] as const)),
      ...(takesIdempotencyKey(operation) ? (['Idempotent-Replayed'] as const) : []),
    ]),
    ...answerOf(operation, shown, schemas),
  };
  const all = [answer, ...(answer.otherwise === undefined ? [] : [answer.otherwise])];
  return Object.fromEntries(all.map(({ status, description: text }) => [status, { description: text, ...rest }]));
}

function answerOf({ path, answer, offersYaml }: Operation, shown: Json, schemas: Json): Json {
  if (answer.bytes !== undefined)
    return {
      content: {
        'application/octet-stream': {
          schema: { type: 'string', format: 'binary', description: answer.bytes },
          example: '{"ref":"refs/heads/main"}',
        },
      },
    };
  if (answer.schema === undefined) return {};
  const schema = schemaOf(answer.schema, 'output', schemas);
  const [collection = ''] = path.slice(1).split('/');
  return {
    content: {
      'application/json': { schema, example: answer.example ?? exampleOf(schema, { schemas, known: shown, collection }) },
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

function parametersOf(operation: Operation, schemas: Json): Json {
  const { path, query } = operation;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => ({
    name: match[1],
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const properties = query === undefined ? {} : members(schemaOf(query, 'output', schemas)['properties']);
  const inQuery = Object.entries(properties).map(([name, schema]) => {
    const { description: text, ...rest } = members(schema);
    return { name, in: 'query', required: false, ...(text === undefined ? {} : { description: text }), schema: rest };
  });
  const parameters = [...inPath, ...inQuery, ...(takesIdempotencyKey(operation) ? [idempotencyKey] : [])];
  return parameters.length === 0 ? {} : { parameters };
}

function requestOf({ body, requestExample }: Operation, schemas: Json): Json {
  if (body === undefined) return {};
  const example = requestExample === undefined ? {} : { example: requestExample };
  const required = !body.safeParse({}).success;
  return { requestBody: { required, content: { 'application/json': { schema: schemaOf(body, 'input', schemas), ...example } } } };
}

function errorsOf(operation: Operation): Json {
  const { method, path, query, body, errors = [] } = operation;
  const codes = new Set([
    ...everywhere,
    ...(takesIdempotencyKey(operation) ? withIdempotencyKey : []),
    ...(path.includes('{') ? withParameters : []),
    ...(query === undefined ? [] : withQuery),
    ...(body === undefined && method !== 'POST' ? [] : withBody),
    ...errors,
  ]);
  const byStatus = Map.groupBy(codes, (code) => errorCodes[code].status);
  return Object.fromEntries([...byStatus].map(([status, ofStatus]) => [status, errorAnswer(status, ofStatus, errorFormOf(path.slice(1)))]));
}

function errorAnswer(status: number, codes: readonly ErrorCode[], form: ErrorForm): Json {
  const [first = 'INTERNAL'] = codes;
  const examples = codes.map((code) => [
    code,
    { value: errorIn(form, { code, message: errorExamples[code], details: form === 'webhook' ? detailExamples[code] : undefined }) },
  ]);
  return {
    description: `${errorCodes[first].error}: ${codes.join(', ')}.`,
    headers: headersOf([
      'X-Error-Code',
      ...headersOfStatus(status),
      ...(codes.includes('IDEMPOTENCY_CONFLICT') ? (['Retry-After'] as const) : []),
    ]),
    content: {
      'application/json': {
        schema: { $ref: `#/components/schemas/${errorSchemas[form]}` },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

const errorSchemas: Record<ErrorForm, string> = { code: 'Error', text: 'TextError', webhook: 'WebhookError' };

const detailExamples: Partial<Record<ErrorCode, Record<string, string[]>>> = {
  UNKNOWN_FIELD: { nmae: ['is not a field'] },
  VALIDATION_FAILED: { name: ['is required'] },
  INVALID_QUERY: { limit: ['must be at most 100'] },
};

const withLimit: readonly AnswerHeader[] = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];

function headersOfStatus(status: number): readonly AnswerHeader[] {
  switch (status) {
    case 401:
      return ['WWW-Authenticate'];
    case 431:
      return [];
    case 405:
      return [...withLimit, 'Allow'];
    case 429:
    case 503:
      return [...withLimit, 'Retry-After'];
    default:
      return withLimit;
  }
}

function headersOf(names: readonly AnswerHeader[]): Json {
  return Object.fromEntries(['X-Request-Id', ...names].map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** JSON Schema of a zod schema. Those with an id move to `schemas` and are referred to; Kubernetes' own keywords go. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: Json): Json {
  const { $schema: _, $defs, ...rest } = withoutKubernetes(z.toJSONSchema(schema, { io, unrepresentable: 'any' }));
  for (const [id, definition] of Object.entries(members($defs))) schemas[id] = definition;
  const id = typeof rest['id'] === 'string' ? rest['id'] : null;
  if (id === null) return rest;
  schemas[id] = rest;
  return { $ref: `#/components/schemas/${id}` };
}

function withoutKubernetes(schema: object): Json {
  const kept = Object.entries(schema).flatMap(([name, value]): [string, unknown][] => {
    if (name.startsWith('x-') || name === 'nullable' || isBoundOfIntegers(name, value)) return [];
    if (name === '$ref' && typeof value === 'string') return [[name, value.replace('#/$defs/', '#/components/schemas/')]];
    return [[name, cleaned(value)]];
  });
  return Object.fromEntries(kept);
}

/** What zod says of every integer. */
function isBoundOfIntegers(name: string, value: unknown): boolean {
  return (name === 'minimum' || name === 'maximum') && typeof value === 'number' && !Number.isSafeInteger(2 * value);
}

function cleaned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cleaned);
  return typeof value === 'object' && value !== null ? withoutKubernetes(value) : value;
}

function members(value: unknown): Json {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
