import { isRecord } from '../../src/resources/field-tree.ts';
import type { Answer } from '../facade/facade-world.ts';
import type { DescribedOperation } from './described-operations.ts';
import type { DocumentSchemas } from './document-schemas.ts';

/** Differences of a response from the document of the operation; none when it is as described. */
export function differences(
  operation: Pick<DescribedOperation, 'answers' | 'otherwise' | 'needsKey'>,
  schemas: DocumentSchemas,
  answer: Answer,
): string[] {
  const { status, headers, text } = answer;
  const described = operation.answers.get(status) ?? (status >= 400 ? operation.otherwise : undefined);
  if (status >= 500 || described === undefined) return [`the status ${status} is not described`];
  const found: string[] = [];
  if (headers.get('x-request-id') === null) found.push('there is no X-Request-Id');
  // Refusals before authentication have no limit of an organization.
  const hasLimit = status !== 401 && (operation.needsKey || status < 400);
  for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']) {
    if (hasLimit && !/^\d+$/.test(headers.get(name) ?? '')) found.push(`${name} is ${headers.get(name)}`);
  }
  if (status === 429 && headers.get('retry-after') === null) found.push('there is no Retry-After');
  if (described.content.size === 0) return text === '' ? found : [...found, 'there is a body and none is described'];
  const mediaType = headers.get('content-type')?.split(';')[0] ?? '';
  const schema = described.content.get(mediaType);
  if (schema === undefined) return [...found, `the media type "${mediaType}" is not described`];
  if (mediaType === 'application/json') found.push(...schemas.complaints(schema, JSON.parse(text), 'closed'));
  if (status >= 400) found.push(...errorForm(answer, described.codes));
  return found;
}

/** `{error, message, code}` with the code in the header too; cron paths answer `{error}` alone. */
function errorForm({ body, headers }: Answer, codes: readonly string[]): string[] {
  const code = headers.get('x-error-code');
  if (code === null) return ['there is no X-Error-Code'];
  if (!codes.includes(code)) return [`the code ${code} is not described for this status`];
  if (!isRecord(body) || typeof body['error'] !== 'string') return ['the body is no error'];
  return Object.hasOwn(body, 'code') && body['code'] !== code
    ? [`the code of the body is ${body['code']}, that of the header ${code}`]
    : [];
}
