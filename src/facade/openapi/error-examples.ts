import type { ErrorCode } from '../../core/errors.ts';

/** A message of each code; where it names a record, by what the API calls that. */
const errorExamples: Record<ErrorCode, string | ((noun: string) => string)> = {
  BAD_REQUEST: 'The body does not match its Content-Encoding.',
  MALFORMED_JSON: 'The body is not valid JSON in UTF-8.',
  UNKNOWN_FIELD: 'unknown field "nmae".',
  VALIDATION_FAILED: 'name is required.',
  INVALID_QUERY: 'Query: pageSize must be at most 100.',
  INVALID_URL: 'url must be an absolute http or https URL without user, password, spaces and port 0.',
  INVALID_SOURCE: 'sourceId: there is no source "shop".',
  INVALID_CONFIG: 'config.webhookUrl must start with https://hooks.slack.com/.',
  CREDENTIALS_REQUIRED: 'The URL has another origin: send the credentials for it, too.',
  UNAUTHORIZED: 'Send an API key as "Authorization: Bearer <key>" or "x-api-key: <key>".',
  INVALID_SIGNATURE: 'The signature does not match.',
  FORBIDDEN: 'The API key does not have the scope write.',
  SOURCE_DISABLED: 'The source is disabled.',
  IP_NOT_ALLOWED: 'The source does not take events from this address.',
  NOT_FOUND: 'There is nothing at this path.',
  RESOURCE_NOT_FOUND: (noun) =>
    noun === 'organization' ? 'There is no such organization, or these credentials have no rights in it.' : `There is no such ${noun}.`,
  METHOD_NOT_ALLOWED: 'PUT is not possible here; possible are GET, POST, HEAD.',
  REQUEST_TIMEOUT: 'The body did not arrive in time.',
  CONFLICT: 'Another request has changed it meanwhile; read it and try again.',
  ALREADY_EXISTS: (noun) => `There is already ${/^[aeiou]/i.test(noun) ? 'an' : 'a'} ${noun} with the slug "orders".`,
  DUPLICATE_ROUTE: 'The route "orders" connects the same source and destinations.',
  FIELD_MANAGED: 'spec.name is managed by argocd; change it there.',
  IN_USE: (noun) => `The ${noun} is used by the routes "orders"; take it out of them first.`,
  PAYLOAD_NOT_FOUND: 'The payload is no longer there.',
  IDEMPOTENCY_CONFLICT: 'This Idempotency-Key was used with another body.',
  EXPIRED: 'The list has moved on; begin again.',
  PRECONDITION_FAILED: 'The record has changed since it was read; read it again.',
  PAYLOAD_TOO_LARGE: 'The body is larger than 1048576 bytes.',
  URI_TOO_LONG: 'The query is longer than 8192 characters',
  UNSUPPORTED_MEDIA_TYPE: 'Send the body as application/json in UTF-8.',
  QUOTA_EXCEEDED: 'This would exceed the 10000 messages that the organization may queue in a month (UTC)',
  QUEUE_FULL:
    'The events of the organization that wait for their delivery take more than its share of memory: no more are taken until some of them have ended',
  RATE_LIMITED: 'The organization is limited to 1000 requests per minute.',
  APPLICATION_RATE_LIMITED: 'The application takes at most 100 messages per second.',
  HEADERS_TOO_LARGE: 'The request line and the headers are more than 16 KiB together.',
  INTERNAL: 'The request failed with an internal error; find it in the logs by the request id.',
  UNAVAILABLE: 'A service that this needs does not respond; send the request again later.',
};

/** A message of the code as the OpenAPI document shows it, of what `noun` names. */
export function errorExample(code: ErrorCode, noun: string): string {
  const message = errorExamples[code];
  return typeof message === 'string' ? message : message(noun);
}
