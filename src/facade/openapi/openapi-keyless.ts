import { type ErrorCode, errorCodes } from '../../core/errors.ts';
import { errorIn } from '../http/error-response.ts';
import { errorExample } from './error-examples.ts';
import type { Components } from './openapi-components.ts';
import { describeCodes, errorSchema, pascal } from './openapi-errors.ts';
import { headersOf, withLimit } from './openapi-headers.ts';

type Json = Record<string, unknown>;

/** Possible errors of a request that needs no key. */
export interface KeylessErrors {
  /** Prefix of the names of its responses in the document. */
  name: string;
  /** Subject of the error messages. */
  noun: string;
  /** The handler of the path. */
  ofHandler: readonly ErrorCode[];
  /** By the server, before it has parsed the path. */
  ofServer: readonly ErrorCode[];
  /** Sent once the limit was checked, if there is one. */
  afterLimit: readonly ErrorCode[];
  /** Messages that are not those of the API. */
  ownWords: Partial<Record<ErrorCode, string>>;
}

/** References to the answers by status. */
export function keylessErrors(errors: KeylessErrors, components: Components): Json {
  const byStatus = Map.groupBy([...errors.ofHandler, ...errors.ofServer], (code) => errorCodes[code].status);
  return Object.fromEntries([...byStatus].map(([status, codes]) => [status, answerOf(status, codes, errors, components)]));
}

function answerOf(status: number, codes: readonly ErrorCode[], errors: KeylessErrors, components: Components): Json {
  const { name, noun, ofHandler, afterLimit, ownWords } = errors;
  const shown = (code: ErrorCode) => ({ code, message: ownWords[code] ?? errorExample(code, noun), details: undefined });
  return components.refer('responses', `${name}${pascal(errorCodes[codes[0] ?? 'INTERNAL'].error)}`, {
    description: describeCodes(codes),
    headers: headersOf([
      ...(codes.some((code) => ofHandler.includes(code)) ? (['X-Request-Id'] as const) : []),
      ...(codes.some((code) => afterLimit.includes(code)) ? withLimit : []),
      'X-Error-Code',
      ...(status === 405 ? (['Allow'] as const) : []),
      ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
    ]),
    content: {
      'application/json': {
        schema: errorSchema('code'),
        examples: Object.fromEntries(codes.map((code) => [code, { value: errorIn('code', shown(code)) }])),
      },
    },
  });
}
