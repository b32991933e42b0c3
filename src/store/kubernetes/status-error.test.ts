import { expect, test } from '@jest/globals';
import { statusError } from './status-error.ts';

const status = (fields: object): string => JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', ...fields });

test.each([
  [403, 'FORBIDDEN'],
  [404, 'RESOURCE_NOT_FOUND'],
  [409, 'CONFLICT'],
  [410, 'EXPIRED'],
  [413, 'PAYLOAD_TOO_LARGE'],
  [422, 'VALIDATION_FAILED'],
  [429, 'UNAVAILABLE'],
  [500, 'UNAVAILABLE'],
  [503, 'UNAVAILABLE'],
])('%i is %s', (httpStatus, code) => {
  expect(statusError(httpStatus, status({ message: 'what it says' }))).toMatchObject({ code, message: 'what it says' });
});

test('refused credentials are UNAVAILABLE, as they are not those of an API user', () => {
  expect(statusError(401, status({ message: 'Unauthorized' })).code).toBe('UNAVAILABLE');
});

test('Retry-After is passed on, from the header or the body', () => {
  expect(statusError(429, status({}), 7).retryAfterSeconds).toBe(7);
  expect(statusError(503, status({ details: { retryAfterSeconds: 3 } })).retryAfterSeconds).toBe(3);
});

test('a conflict of field managers names each field and its owners', () => {
  const cause = (manager: string, field: string) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with "${manager}" using v1`,
    field,
  });
  const body = status({
    reason: 'Conflict',
    details: { causes: [cause('kubectl', '.spec.a'), cause('argocd', '.spec.a'), cause('argocd', '.spec.l[name="q"].v')] },
  });
  expect(statusError(409, body)).toMatchObject({
    code: 'FIELD_MANAGED',
    details: { 'spec.a': ['kubectl', 'argocd'], 'spec.l[name="q"].v': ['argocd'] },
  });
});

test('a typed patch that the schema refuses is VALIDATION_FAILED, although the API server says 500', () => {
  const message =
    'failed to create typed patch object (a/b; posthorn.dev/v1alpha1, Kind=Route): errors:\n  .spec.zz: field not declared in schema\n  .spec.l[name="q"].v: expected string, got 1';
  expect(statusError(500, status({ message, code: 500 }))).toMatchObject({
    code: 'VALIDATION_FAILED',
    details: { 'spec.zz': ['field not declared in schema'], 'spec.l[name="q"].v': ['expected string, got 1'] },
  });
});

test('an unknown field of a strict decoding error is VALIDATION_FAILED', () => {
  const message = 'Route in version "v1alpha1" cannot be handled as a Route: strict decoding error: unknown field "spec.zz"';
  expect(statusError(400, status({ message }))).toMatchObject({ code: 'VALIDATION_FAILED', details: { 'spec.zz': ['unknown field'] } });
});

test('a body that is no Status, as a proxy sends it, is told by its HTTP status', () => {
  expect(statusError(502, '<html>Bad Gateway</html>')).toMatchObject({ code: 'UNAVAILABLE', message: '<html>Bad Gateway</html>' });
});
