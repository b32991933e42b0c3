import { expect, test } from '@jest/globals';
import {
  decodeApplication,
  decodeEndpoint,
  decodeSubscription,
  encodeApplication,
  encodeEndpoint,
  encodeSubscription,
} from './webhook-records.ts';

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

test('records of an earlier release are read with each member, and written as they were, byte for byte', () => {
  const application = '{"n":"Shop","e":"shop-1","m":{"plan":"pro"},"l":[1,2,3],"s":2,"x":"manual","z":5,"c":1,"u":2,"v":3,"g":"posthorn"}';
  expect(decodeApplication(application)).toEqual({
    name: 'Shop',
    externalId: 'shop-1',
    metadata: { plan: 'pro' },
    rateLimits: { perSecond: 1, perMinute: 2, perHour: 3 },
    shard: 2,
    isDisabled: true,
    disabledReason: 'manual',
    disableAfterHours: 5,
    createdAtMs: 1,
    updatedAtMs: 2,
    revision: 3,
    managedBy: 'posthorn',
  });
  expect(encodeApplication(decodeApplication(application))).toBe(application);

  const endpoint =
    '{"a":"https://customer.example/","d":"Orders","h":[["x-a","1"]],"s":[[1,"x-b","sealed-b"]],"H":[["x-c","{{ payload.id }}"]],"t":5,"l":7,"y":1,"m":1,' +
    '"r":[5,60],"j":60,"o":["2xx",409],"xv":4,"b":[1,2,3],"k":["sealed","whsec_abcd"],"w":2,"p":[["old",5]],"q":"mark","T":1,"n":"both","e":["key","public"],' +
    '"f":[["old-key","old-public",6]],"i":"recovered","c":1}';
  expect(decodeEndpoint(endpoint)).toEqual({
    url: 'https://customer.example/',
    description: 'Orders',
    headers: [
      { name: 'x-a', value: '1' },
      { name: 'x-b', sealed: 'sealed-b' },
    ],
    headerTemplates: [{ name: 'x-c', template: '{{ payload.id }}' }],
    timeoutSeconds: 5,
    rateLimitPerSecond: 7,
    rateLimitStrict: true,
    ordered: true,
    retryDelaysSeconds: [5, 60],
    expiresAfterSeconds: 60,
    successStatusCodes: ['2xx', 409],
    disabledRevision: 4,
    circuit: { failureThreshold: 1, successThreshold: 2, cooldownSeconds: 3 },
    secret: { sealed: 'sealed', prefix: 'whsec_abcd', version: 2, previous: [{ sealed: 'old', validUntilMs: 5 }], rotatedBy: 'mark' },
    payloadForm: 'thin',
    signatureScheme: 'both',
    signingKey: { sealed: 'key', publicKey: 'public', previous: [{ sealed: 'old-key', publicKey: 'old-public', validUntilMs: 6 }] },
    isDisabled: false,
    disabledReason: 'recovered',
    disableAfterHours: null,
    createdAtMs: 1,
    updatedAtMs: 1,
    revision: 1,
    managedBy: null,
  });
  expect(encodeEndpoint(decodeEndpoint(endpoint))).toBe(endpoint);

  const subscription = '{"f":"payload.total > 1","l":{"shop":["a","b"]},"y":1,"t":"trf_a","o":1,"r":"failed","c":1}';
  expect(decodeSubscription(subscription)).toEqual({
    filterExpression: 'payload.total > 1',
    labelFilters: { shop: ['a', 'b'] },
    labelFilterMode: 'any',
    transformId: 'trf_a',
    isEnabled: false,
    lastFilterError: 'failed',
    createdAtMs: 1,
    updatedAtMs: 1,
    revision: 1,
    managedBy: null,
  });
  expect(encodeSubscription(decodeSubscription(subscription))).toBe(subscription);
});
