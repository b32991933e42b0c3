import { type ErrorCode, errorCodes } from '../../core/errors.ts';
import { type ErrorForm, errorFormOf, errorIn } from '../http/error-response.ts';
import { type Operation, takesIdempotencyKey, takesIfMatch } from '../http/operation.ts';
import { errorExample } from './error-examples.ts';
import type { Components } from './openapi-components.ts';
import { type AnswerHeader, headersOf, withLimit } from './openapi-headers.ts';

type Json = Record<string, unknown>;

/** Codes that any operation can answer: 404 below the path of another organization. */
const everywhere: readonly ErrorCode[] = ['RESOURCE_NOT_FOUND', 'NOT_FOUND', 'RATE_LIMITED'];
/** Responses that all operations share as their `default`: independent of the operation, such as 405 to other methods of their paths. */
const otherwise: readonly ErrorCode[] = [
  'UNAUTHORIZED',
  'FORBIDDEN',
  'RATE_LIMITED',
  'METHOD_NOT_ALLOWED',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
  'UNAVAILABLE',
];
const withQuery: readonly ErrorCode[] = ['INVALID_QUERY'];
const ofContent: readonly ErrorCode[] = ['BAD_REQUEST', 'MALFORMED_JSON', 'UNKNOWN_FIELD', 'VALIDATION_FAILED'];
const withIdempotencyKey: readonly ErrorCode[] = ['VALIDATION_FAILED', 'IDEMPOTENCY_CONFLICT'];
const withIfMatch: readonly ErrorCode[] = ['PRECONDITION_FAILED'];
/** Other requests kept writing the record, or the routes that name it, while it was to be deleted. */
const withIfMatchOfDeletion: readonly ErrorCode[] = ['CONFLICT'];

const errorSchemas: Record<ErrorForm, string> = { code: 'Error', text: 'TextError', webhook: 'WebhookError' };
const namesOfForms: Record<ErrorForm, string> = { code: '', text: 'Cron', webhook: 'Webhook' };

/** Subjects of error messages: what may be missing, and what is made or changed. */
export interface Nouns {
  missing: string;
  record: string;
}

const nounIn = (code: ErrorCode, { missing, record }: Nouns): string => (code === 'RESOURCE_NOT_FOUND' ? missing : record);

/** References to the errors of an operation by status. Equal ones of several operations are one component. */
export function errorsOf(operation: Operation, nouns: Nouns, components: Components): Json {
  const { method, path, query, body, errors = [] } = operation;
  const codes = new Set([
    ...everywhere,
    ...(takesIdempotencyKey(operation) ? withIdempotencyKey : []),
    ...(takesIfMatch(operation) ? withIfMatch : []),
    ...(takesIfMatch(operation) && method === 'DELETE' ? withIfMatchOfDeletion : []),
    ...(query === undefined ? [] : withQuery),
    ...(body === undefined && method !== 'POST' ? [] : ofContent),
    ...errors,
  ]);
  const form = errorFormOf(path.slice(1));
  const byStatus = Map.groupBy([...codes].sort(), (code) => errorCodes[code].status);
  for (const [status, ofStatus] of byStatus) if (ofStatus.every((code) => otherwise.includes(code))) byStatus.delete(status);
  const answers = [...byStatus].map(([status, ofStatus]) => [status, errorAnswer(status, ofStatus, { form, nouns, components })]);
  return { ...Object.fromEntries(answers), default: otherError(form, components) };
}

function errorAnswer(
  status: number,
  codes: readonly ErrorCode[],
  { form, nouns, components }: { form: ErrorForm; nouns: Nouns; components: Components },
): Json {
  const headers = headersOf([
    'X-Error-Code',
    ...headersOfStatus(status),
    ...(codes.includes('IDEMPOTENCY_CONFLICT') ? (['Retry-After'] as const) : []),
  ]);
  const examples = codes.map((code) => {
    const details = form === 'webhook' ? detailExamples[code] : undefined;
    const example = { value: errorIn(form, { code, message: errorExample(code, nounIn(code, nouns)), details }) };
    return [code, codes.length === 1 ? example : components.refer('examples', inForm(form, errorName([code], nouns)), example)];
  });
  return components.refer('responses', inForm(form, errorName(codes, nouns)), {
    description: describeCodes(codes),
    headers,
    content: { 'application/json': { schema: errorSchema(form), examples: Object.fromEntries(examples) } },
  });
}

function otherError(form: ErrorForm, components: Components): Json {
  const examples = otherwise.map((code) => [code, { value: errorIn(form, { code, message: errorExample(code, ''), details: undefined }) }]);
  const codes = otherwise.map((code) => `${code} (${errorCodes[code].status})`);
  return components.refer('responses', inForm(form, 'OtherError'), {
    description: `Others: ${codes.join(', ')}.`,
    headers: headersOf(['X-Error-Code', 'WWW-Authenticate', 'Allow', ...withLimit, 'Retry-After']),
    content: { 'application/json': { schema: errorSchema(form), examples: Object.fromEntries(examples) } },
  });
}

/** The name of an error in this form. */
function inForm(form: ErrorForm, name: string): string {
  return name.startsWith(namesOfForms[form]) ? name : namesOfForms[form] + name;
}

/** Such as `ALREADY_EXISTS, IDEMPOTENCY_CONFLICT.` The status implies the rest. */
export function describeCodes(codes: readonly ErrorCode[]): string {
  return `${codes.join(', ')}.`;
}

export function errorSchema(form: ErrorForm): Json {
  return { $ref: `#/components/schemas/${errorSchemas[form]}` };
}

/** Such as `InvalidBodyOrInvalidUrl` or `DestinationNotFound`: what can be wrong, and whose error it is where the codes speak of a record. */
function errorName(codes: readonly ErrorCode[], nouns: Nouns): string {
  const isOfContent = ofContent.every((code) => codes.includes(code));
  const rest = codes.filter(
    (code) => !(isOfContent && ofContent.includes(code)) && !(code === 'NOT_FOUND' && codes.includes('RESOURCE_NOT_FOUND')),
  );
  const words = rest.map((code) => {
    const owner = ofRecords.has(code) ? pascal(nounIn(code, nouns)) : '';
    return owner + pascal((code === 'RESOURCE_NOT_FOUND' ? 'NOT_FOUND' : code).toLowerCase());
  });
  return [...(isOfContent ? ['InvalidBody'] : []), ...words].join('Or');
}

/** Their messages name the record. */
const ofRecords: ReadonlySet<ErrorCode> = new Set(['RESOURCE_NOT_FOUND', 'ALREADY_EXISTS', 'IN_USE']);

/** `API key` → `ApiKey`. */
export function pascal(words: string): string {
  return words
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + (/^[A-Z]+$/.test(word) ? word.slice(1).toLowerCase() : word.slice(1)))
    .join('');
}

const detailExamples: Partial<Record<ErrorCode, Record<string, string[]>>> = {
  UNKNOWN_FIELD: { nmae: ['is not a field'] },
  VALIDATION_FAILED: { name: ['is required'] },
  INVALID_QUERY: { limit: ['must be at most 100'] },
};

function headersOfStatus(status: number): readonly AnswerHeader[] {
  switch (status) {
    case 429:
      return [...withLimit, 'Retry-After'];
    default:
      return [];
  }
}
