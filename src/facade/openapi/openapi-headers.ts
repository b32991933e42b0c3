type Json = Record<string, unknown>;

/** Headers of answers, `components/headers` of the document. */
export const answerHeaders = {
  'X-Request-Id': { description: 'Id of the request in the logs: that which was sent, or a new one.', schema: { type: 'string' } },
  'X-RateLimit-Limit': { description: 'Requests per minute; absent without a limit.', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': { description: 'Requests left in this minute.', schema: { type: 'integer' } },
  'X-RateLimit-Reset': { description: 'When the minute ends: Unix time in seconds.', schema: { type: 'integer' } },
  'X-Error-Code': { description: 'The code of the error.', schema: { type: 'string' } },
  'WWW-Authenticate': { description: 'Bearer.', schema: { type: 'string' } },
  Allow: { description: 'The methods of this path.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds to wait before the request is sent again.', schema: { type: 'integer' } },
  'Idempotent-Replayed': {
    description: 'true where this is the answer to an earlier request with the same Idempotency-Key.',
    schema: { type: 'string' },
  },
  ETag: { description: 'Version of the record, for `If-Match` of a change or a deletion.', schema: { type: 'string' } },
  Warning: { description: '199 and a notice for the client, such as "not yet in force".', schema: { type: 'string' } },
};
export type AnswerHeader = keyof typeof answerHeaders;

export const withLimit: readonly AnswerHeader[] = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];

/** References to the headers of single responses. The description of the API documents those of all responses or all writes. */
export function headersOf(names: readonly AnswerHeader[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
