import { expect, test } from '@jest/globals';
import { decodeEndpoint, encodeEndpoint } from './webhook-records.ts';

const earlier = '{"a":"https://customer.example/","y":1,"k":["sealed","whsec_abcd"],"c":1}';

test('an endpoint that an earlier release has stored has no order, no delays, no success statuses and no expiry of its own, and is written as it was', () => {
  const endpoint = decodeEndpoint(earlier);
  expect(endpoint).toMatchObject({
    rateLimitStrict: true,
    ordered: false,
    retryDelaysSeconds: null,
    expiresAfterSeconds: null,
    successStatusCodes: null,
  });
  expect(encodeEndpoint(endpoint)).toBe(earlier);
});

test('order, delays, expiry and success statuses of an endpoint are read as they were written, and ignored by what does not know them', () => {
  const own = { ordered: true, retryDelaysSeconds: [5, 60], expiresAfterSeconds: 60, successStatusCodes: ['2xx', 409] };
  const json = encodeEndpoint({ ...decodeEndpoint(earlier), ...own });
  expect(decodeEndpoint(json)).toEqual({ ...decodeEndpoint(earlier), ...own });
  const { m, r, j, o, ...known } = JSON.parse(json);
  expect([m, r, j, o, known]).toEqual([1, [5, 60], 60, ['2xx', 409], JSON.parse(earlier)]);
});

test('header templates of an endpoint are read as they were written, and ignored by what does not know them', () => {
  const before = decodeEndpoint(earlier);
  expect(before.headerTemplates).toEqual([]);
  const headerTemplates = [{ name: 'X-Order', template: '{{ payload.order.id }}' }];
  const json = encodeEndpoint({ ...before, headerTemplates });
  expect(decodeEndpoint(json)).toEqual({ ...before, headerTemplates });
  const { H, ...known } = JSON.parse(json);
  expect([H, known]).toEqual([[['X-Order', '{{ payload.order.id }}']], JSON.parse(earlier)]);
});

test('the payload form of an endpoint is read as it was written, and ignored by what does not know it', () => {
  const before = decodeEndpoint(earlier);
  expect(before).toMatchObject({ payloadForm: 'full' });
  const json = encodeEndpoint({ ...before, payloadForm: 'thin' });
  expect(decodeEndpoint(json)).toEqual({ ...before, payloadForm: 'thin' });
  const { T, ...known } = JSON.parse(json);
  expect([T, known]).toEqual([1, JSON.parse(earlier)]);
});

test('signature scheme and Ed25519 keys of an endpoint are read as they were written; what does not know them reads a secret that signs', () => {
  const previous = [{ sealed: 'sealed before', publicKey: 'whpk_old', validUntilMs: 5 }];
  const before = decodeEndpoint(earlier);
  expect(before).toMatchObject({ signatureScheme: 'hmac-sha256', signingKey: null });
  for (const signatureScheme of ['ed25519', 'both', 'hmac-sha256'] as const)
    for (const signingKey of [
      { sealed: 'sealed key', publicKey: 'whpk_new', previous },
      { sealed: 'sealed key', publicKey: 'whpk_new', previous: [] },
    ]) {
      const json = encodeEndpoint({ ...before, signatureScheme, signingKey });
      expect(decodeEndpoint(json)).toEqual({ ...before, signatureScheme, signingKey });
      const { n, e, f, ...known } = JSON.parse(json);
      expect(known).toEqual(JSON.parse(earlier));
    }
});
