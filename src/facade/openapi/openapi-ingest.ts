import { z } from 'zod';
import type { ErrorCode } from '../../core/errors.ts';
import type { Components } from './openapi-components.ts';
import { headersOf, withLimit } from './openapi-headers.ts';
import { type KeylessErrors, keylessErrors } from './openapi-keyless.ts';

type Json = Record<string, unknown>;

export const ingestTag = {
  name: 'Ingest',
  description:
    'Where providers send events, beside `/api` and without an API key: a source checks signatures and addresses where it is set to.',
};

const slug = { type: 'string', pattern: '^[a-z0-9][a-z0-9-]{0,62}$' };
const eventId = 'evt_00m2k3x7q4uabcdefghijklmnop';
const taken = z.object({
  success: z.literal(true).describe('It is stored.'),
  eventId: z.string().describe('Of a duplicate: the first of its kind.'),
  duplicate: z.literal(true).optional().describe('The event was there before.'),
});
const challenge = z.object({ challenge: z.string().describe('What was asked.') }).describe('To the URL verification request of Slack.');

const crcAnswer = z
  .object({ response_token: z.string().describe('The signed token.') })
  .describe('To crc_token of X, at sources with that handshake.');

const methods = { post: 'POST', put: 'PUT', patch: 'PATCH', get: 'GET', delete: 'DELETE' } as const;

/** By the source and what it is set to. */
const ofSource: readonly ErrorCode[] = [
  'NOT_FOUND',
  'SOURCE_DISABLED',
  'IP_NOT_ALLOWED',
  'FORBIDDEN',
  'METHOD_NOT_ALLOWED',
  'RATE_LIMITED',
  'URI_TOO_LONG',
  'REQUEST_TIMEOUT',
  'PAYLOAD_TOO_LARGE',
  'INVALID_SIGNATURE',
  'QUOTA_EXCEEDED',
  'QUEUE_FULL',
  'INTERNAL',
  'UNAVAILABLE',
];

const errors: KeylessErrors = {
  name: 'Ingest',
  noun: 'source',
  ofHandler: ofSource,
  ofServer: ['BAD_REQUEST', 'HEADERS_TOO_LARGE'],
  afterLimit: ofSource.slice(ofSource.indexOf('RATE_LIMITED')),
  ownWords: {
    BAD_REQUEST: 'This is no HTTP request.',
    NOT_FOUND: 'There is no such source',
    URI_TOO_LONG: 'The query is longer than 8192 characters',
    FORBIDDEN: 'hub.verify_token is missing or wrong',
    METHOD_NOT_ALLOWED: 'The source does not take DELETE',
    RATE_LIMITED: 'The source takes 1000 requests in a minute',
    INTERNAL: 'The event could not be taken',
    UNAVAILABLE: 'The event could not be stored in time; please send it again',
  },
};

/** The part of the OpenAPI document about ingest, by path; its server is at `basePath`. */
export function ingestPaths(components: Components, basePath: string): Json {
  const operations = Object.entries(methods).map(([key, method]) => [key, operationOf(method, components)] as const);
  return {
    '/ingest/{orgSlug}/{sourceSlug}': {
      description: [
        'The body may be anything, of any type, up to the size that the plan allows.',
        'What makes two events the same, and which methods are taken, is set at the source.',
        'The query of the URL, up to 8192 characters, is kept with the event, without credentials.',
        'A source with a handshake answers the question that the sender asks in the query (or by OPTIONS) before it sends events, as text/plain or JSON; the question is no event.',
      ].join(' '),
      servers: [{ url: basePath || '/', description: 'The ingestUrl of a source shows its whole address.' }],
      parameters: [
        { name: 'orgSlug', in: 'path', required: true, description: 'Slug of the organization.', schema: slug },
        { name: 'sourceSlug', in: 'path', required: true, description: 'Slug of the source.', schema: slug },
      ],
      ...Object.fromEntries(operations),
    },
  };
}

function operationOf(method: (typeof methods)[keyof typeof methods], components: Components): Json {
  const hasBody = method !== 'GET' && method !== 'DELETE';
  return {
    operationId: `ingestBy${method[0]}${method.slice(1).toLowerCase()}`,
    summary: `Send an event by ${method}`,
    description: 'It is stored when this is answered.',
    tags: [ingestTag.name],
    security: [],
    ...(hasBody && {
      requestBody: { content: { 'application/json': { schema: {}, example: { order: 7 } }, '*/*': { schema: {} } } },
    }),
    responses: { '200': acceptance(components), ...keylessErrors(errors, components) },
  };
}

function acceptance(components: Components): Json {
  const answers = [
    components.answered(taken, 'IngestTaken'),
    components.answered(challenge, 'IngestChallenge'),
    components.answered(crcAnswer, 'IngestCrcAnswer'),
  ];
  return components.refer('responses', 'IngestAccepted', {
    description: 'The event is stored; or a question of the provider is answered.',
    headers: headersOf(['X-Request-Id', ...withLimit]),
    content: {
      'text/plain': {
        schema: {
          type: 'string',
          description: 'To hub.challenge, validationToken and challenge, at sources with that handshake: the value.',
        },
        example: '1158201444',
      },
      'application/json': {
        schema: components.refer('schemas', 'IngestResult', { anyOf: answers }),
        examples: {
          event: { value: { success: true, eventId } },
          duplicate: { value: { success: true, eventId, duplicate: true } },
          crc: { value: { response_token: 'sha256=MKcAlTrzgI+bMNmzEjkEYpMOW3BTIgjxJzXpZQSrEjM=' } },
          question: { value: { challenge: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P' } },
        },
      },
    },
  });
}
