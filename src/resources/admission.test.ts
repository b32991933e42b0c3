import { describe, expect, test } from '@jest/globals';
import { admit, admitStatus } from './admission.ts';
import { invalidObject } from './causes.ts';

const metadata = { name: 'shop', namespace: 'acme' };
const http = { url: 'https://shop.example/hooks', useStaticIp: false };

function messages(kind: Parameters<typeof admit>[0], object: unknown): Record<string, string> {
  const { causes = [] } = admit(kind, object);
  return Object.fromEntries(causes.map(({ field, message }) => [field, message]));
}

describe('what admit makes of an object', () => {
  test('it has the defaults, also in the blocks that are there', () => {
    const { object } = admit('Destination', { metadata, spec: { http, retryPolicy: { maxRetries: 3 } } });
    expect(object?.spec).toEqual({
      type: 'http',
      enabled: true,
      http: { ...http, method: 'POST', timeoutMs: 30_000, useStaticIp: false },
      retryPolicy: { maxRetries: 3, initialDelayMs: 1000, maxDelayMs: 3_600_000, backoffMultiplier: 4 },
    });
  });

  test('it has apiVersion and kind, and no status', () => {
    const { object } = admit('Source', { metadata, spec: {}, status: { id: 'src_a' } });
    expect(object).toEqual({ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Source', metadata, spec: expect.anything() });
  });

  test('it is another object than the one that was given', () => {
    const given = Object.freeze({ metadata: Object.freeze({ ...metadata, labels: null }), spec: Object.freeze({ provider: null }) });
    expect(admit('Source', given).object?.spec.provider).toBe('generic');
    expect(given.spec.provider).toBeNull();
  });

  test('an object of the wrong kind is refused', () => {
    expect(Object.keys(messages('Source', { apiVersion: 'v1', kind: 'Route', metadata, spec: {} }))).toEqual(['apiVersion', 'kind']);
  });

  test.each([null, [], 'text', 3])('%j is no object', (input) => {
    expect(admit('Source', input).causes).toHaveLength(1);
  });

  test('a key named __proto__ is an unknown field like any other', () => {
    expect(messages('Source', { metadata, spec: JSON.parse('{"__proto__": {"enabled": false}}') })).toHaveProperty(['spec.__proto__']);
  });
});

describe('a header that an earlier release took', () => {
  const withHeaders = (...names: string[]) => ({
    metadata,
    spec: { http: { ...http, headers: names.map((name) => ({ name, value: 'a' })) } },
  });
  const stored = withHeaders('X-A', 'Sec-GPC') as unknown as Parameters<typeof admit<'Destination'>>[2];

  test('a header that an earlier release took stays in the object when that changes otherwise', () => {
    const changed = { ...withHeaders('Sec-GPC', 'X-B'), spec: { ...withHeaders('Sec-GPC', 'X-B').spec, enabled: false } };
    expect(admit('Destination', changed, stored).causes).toBeUndefined();
  });

  test('is refused beside it, and in another object', () => {
    const field = (index: number) => [{ field: `spec.http.headers[${index}].name`, message: expect.stringContaining('browsers alone') }];
    expect(admit('Destination', withHeaders('Sec-GPC', 'Sec-Fetch-Site'), stored).causes).toEqual(field(1));
    expect(admit('Destination', withHeaders('Sec-GPC')).causes).toEqual(field(0));
  });
});

describe('complaints say what to do', () => {
  test.each([
    ['a required field', { http: {} }, 'spec.http.url', 'is required'],
    ['a wrong type', { http: { ...http, timeoutMs: '1000' } }, 'spec.http.timeoutMs', 'must be a number, not a string'],
    ['a fraction', { http: { ...http, timeoutMs: 1000.5 } }, 'spec.http.timeoutMs', 'must be a whole number'],
    ['a number too large', { http: { ...http, timeoutMs: 60_001 } }, 'spec.http.timeoutMs', 'must be at most 60000'],
    ['an unknown choice', { http: { ...http, method: 'GET' } }, 'spec.http.method', 'must be one of POST, PUT, PATCH'],
    ['an unknown field', { http: { ...http, uri: '' } }, 'spec.http.uri', 'is not a field of this kind; remove it or correct its name'],
    ['a text too long', { http, name: 'a'.repeat(201) }, 'spec.name', 'must be at most 200 characters long'],
    [
      'a list too long',
      { http: { ...http, headers: Array.from({ length: 51 }, (_, index) => ({ name: `a${index}`, value: '' })) } },
      'spec.http.headers',
      'must be at most 50 items long',
    ],
    [
      'a block of another type',
      { http, s3: { bucket: 'abc', region: 'r' } },
      'spec.s3',
      's3 is required with type s3 and must be left out otherwise',
    ],
  ])('%s', (_, spec, field, message) => {
    expect(messages('Destination', { metadata, spec })).toHaveProperty([field], message);
  });
});

test.each([1e30, 1e16, Number.POSITIVE_INFINITY])('%d is complained of once, with the bound of its field', (timeoutMs) => {
  const { causes } = admit('Destination', { metadata, spec: { http: { ...http, timeoutMs } } });
  expect(causes).toEqual([{ field: 'spec.http.timeoutMs', message: 'must be at most 60000' }]);
});

test('the error of a refused object has the complaints by field', () => {
  const { causes = [] } = admit('Source', { metadata, spec: { provider: 'x', enabled: 1 } });
  const error = invalidObject('Source', 'shop', causes);
  expect(error).toMatchObject({ code: 'VALIDATION_FAILED', details: { 'spec.enabled': ['must be a boolean, not a number'] } });
  expect(error.message).toContain('Source shop is invalid: spec.provider: must be one of generic, custom, github');
});

test('a status is validated by itself', () => {
  expect(admitStatus('Source', { id: 'src_a', conditions: null }).object).toEqual({ id: 'src_a' });
  expect(admitStatus('Source', { phase: 'x' }).causes?.[0]?.field).toBe('status.phase');
});
