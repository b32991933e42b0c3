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

test.each([
  ['Invalid value: "object": give filterRef or filter, not both', 'give filterRef or filter, not both'],
  ['Invalid value: "a \\"b\\": c": must be a time zone: such as Europe/Berlin', 'must be a time zone: such as Europe/Berlin'],
  ['Invalid value: 5000: spec.a in body should be less than or equal to 1000', 'should be less than or equal to 1000'],
  ['Invalid value: needs a signingSecretRef when it is true', 'needs a signingSecretRef when it is true'],
  ['Invalid value: {"a: b":1}: must be smaller', 'Invalid value: {"a: b":1}: must be smaller'],
  ['Forbidden: cannot be taken back', 'cannot be taken back'],
  ['Required value', 'Required value'],
  [
    "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: the host a is not among those allowed",
    'the host a is not among those allowed',
  ],
])('the answer to the complaint %j has the words of the rule', (message, told) => {
  const body = status({ message: 'it is invalid', details: { causes: [{ message, field: 'spec.a' }] } });
  expect(statusError(422, body).details).toEqual({ 'spec.a': [told] });
});

test.each([
  [
    `destinations.posthorn.dev "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: the host a is not among those allowed`,
    'the host a is not among those allowed',
  ],
  [
    'destinations.posthorn.dev "a" is forbidden: User "b" cannot create resource',
    'destinations.posthorn.dev "a" is forbidden: User "b" cannot create resource',
  ],
  [
    `secrets "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not this one`,
    `secrets "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not this one`,
  ],
])('the answer to the refusal %j has the words of a policy', (message, told) => {
  expect(statusError(403, status({ message }))).toMatchObject({ code: 'FORBIDDEN', message: told });
});

test('why the API server is down is a cause, which is not reported to API users', () => {
  const body = status({ message: 'failed calling webhook "w": Post "https://10.96.0.12:443/": dial tcp' });
  for (const httpStatus of [401, 429, 500]) expect(statusError(httpStatus, body).cause).toBeInstanceOf(Error);
});

test('a body that is no Status, as a proxy sends it, is reported by its HTTP status', () => {
  expect(statusError(502, '<html>Bad Gateway</html>')).toMatchObject({ code: 'UNAVAILABLE', message: '<html>Bad Gateway</html>' });
});
