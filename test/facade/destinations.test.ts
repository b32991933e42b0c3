import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

const url = 'https://hooks.example.com/in';
const create = (body: object) => world.request('POST', '/api/destinations', { body });

describe('creating', () => {
  test('answers 201 with the record and its defaults, in force', async () => {
    const { status, body, headers } = await create({ name: 'Plain one', url });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      id: expect.stringMatching(/^dst_[a-z2-7]{26}$/),
      name: 'Plain one',
      slug: 'plain-one',
      type: 'http',
      enabled: true,
      url,
      method: 'POST',
      headers: {},
      authType: 'none',
      authConfig: null,
      timeoutMs: 30_000,
      throttle: { mode: 'off', rateLimit: null, rateUnit: null, strict: null, maxConcurrency: null, queueLimit: null },
      retryPolicy: { maxRetries: 10, initialDelay: 1000, maxDelay: 3_600_000, backoffMultiplier: 4, delays: null },
      signingSecret: null,
      successRate: null,
      avgLatency: null,
      deliveriesCount: 0,
      lastDeliveryAt: null,
    });
    expect(headers.get('warning')).toBeNull();
  });
});
