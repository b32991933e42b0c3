import { payloadLinkPath } from '../../core/payload-link.ts';
import type { Components } from './openapi-components.ts';
import { headersOf, withLimit } from './openapi-headers.ts';
import { type KeylessErrors, keylessErrors } from './openapi-keyless.ts';

type Json = Record<string, unknown>;

export const payloadTag = { name: 'Payloads', description: 'What the links of thin events lead to, without an API key.' };

const errors: KeylessErrors = {
  name: 'PayloadLink',
  noun: 'payload',
  ofHandler: ['FORBIDDEN', 'NOT_FOUND', 'METHOD_NOT_ALLOWED', 'EXPIRED', 'RATE_LIMITED', 'INTERNAL', 'UNAVAILABLE'],
  ofServer: ['BAD_REQUEST', 'HEADERS_TOO_LARGE'],
  afterLimit: ['EXPIRED', 'RATE_LIMITED', 'INTERNAL', 'UNAVAILABLE'],
  ownWords: {
    BAD_REQUEST: 'This is no HTTP request.',
    FORBIDDEN: 'A payload is no part of a page: fetch it, or open its link.',
    NOT_FOUND: 'There is nothing behind this link.',
    METHOD_NOT_ALLOWED: 'POST is not allowed here; the path allows GET, HEAD.',
    EXPIRED: 'The link has expired.',
    RATE_LIMITED: 'The organization is limited to 1000 fetches of payloads per minute.',
  },
};

/** The part of the OpenAPI document about the links of thin events, by path. The token names the organization, so the path does not. */
export function payloadPaths(components: Components, basePath: string): Json {
  return {
    [payloadLinkPath.replace(/^\/api/, '')]: {
      servers: [{ url: `${basePath}/api`, description: 'The url of a thin event is the whole address.' }],
      get: {
        operationId: 'fetchPayload',
        summary: 'Fetch the payload behind the link of a thin event',
        description:
          'Who has the link needs no key. It leads to the payload for 7 days after the attempt, as long as that is stored. The payload has the Content-Type and the Content-Encoding with which the form `full` would send it.',
        tags: [payloadTag.name],
        security: [],
        parameters: [
          {
            name: 'token',
            in: 'query',
            required: true,
            description: 'The token in the url of the thin event.',
            schema: { type: 'string', minLength: 1 },
          },
        ],
        responses: {
          '200': {
            description: 'The payload.',
            headers: headersOf(['X-Request-Id', ...withLimit]),
            content: {
              '*/*': { schema: { description: 'The payload as it came, or the output of the transform.' }, example: { order: 7 } },
            },
          },
          ...keylessErrors(errors, components),
        },
      },
    },
  };
}
