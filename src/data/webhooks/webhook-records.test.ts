import { expect, test } from '@jest/globals';
import { decodeEndpoint, encodeEndpoint } from './webhook-records.ts';

const earlier = '{"a":"https://customer.example/","y":1,"k":["sealed","whsec_abcd"],"c":1}';

test('an endpoint that an earlier release has stored has no delays and no success statuses of its own, and is written as it was', () => {
  const endpoint = decodeEndpoint(earlier);
  expect(endpoint).toMatchObject({ rateLimitStrict: true, retryDelaysSeconds: null, successStatusCodes: null });
  expect(encodeEndpoint(endpoint)).toBe(earlier);
});

test('delays and success statuses of an endpoint are read as they were written, and ignored by what does not know them', () => {
  const own = { retryDelaysSeconds: [5, 60], successStatusCodes: ['2xx', 409] };
  const json = encodeEndpoint({ ...decodeEndpoint(earlier), ...own });
  expect(decodeEndpoint(json)).toEqual({ ...decodeEndpoint(earlier), ...own });
  const { r, o, ...known } = JSON.parse(json);
  expect([r, o, known]).toEqual([[5, 60], ['2xx', 409], JSON.parse(earlier)]);
});
