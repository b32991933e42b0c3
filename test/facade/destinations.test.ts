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
      expiresAfterSeconds: null,
      signingSecret: null,
      successRate: null,
      avgLatency: null,
      deliveriesCount: 0,
      lastDeliveryAt: null,
    });
    expect(headers.get('warning')).toBeNull();
  });

  test('warns of a header to forward that is not kept with events', async () => {
    const { status, headers } = await create({
      name: 'Behind a proxy',
      url,
      forwardHeaders: ['X-Shop-Topic', 'X-Forwarded-For', 'CF-Ray'],
    });
    expect(status).toBe(201);
    expect(headers.get('warning')).toContain('forwardHeaders: X-Forwarded-For, CF-Ray of a sender is not kept with its event');
  });
});

test.each([
  [['X-A', 'Authorization'], 'forwardHeaders[1] must not name a credential'],
  [['User-Agent'], 'forwardHeaders[0] must be none that the connection or Posthorn sets'],
  [['X-A', 'x-a'], 'forwardHeaders must name each header once'],
  [['X-*'], 'must be the name of a header'],
])('the refusal of the headers to forward %j says %s', async (forwardHeaders, words) => {
  const { status, body } = await create({ name: 'Refused', url, forwardHeaders });
  expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
  expect(body.message).toContain(words);
});

test('a destination with a signing secret has no header of the signature in its list, whichever comes first', async () => {
  const signingSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const { body: made } = await create({ name: 'Signing later', url, forwardHeaders: ['Webhook-Id'] });
  const change = (body: object) => world.request('PATCH', `/api/destinations/${made.id}`, { body });
  const refused = await change({ signingSecret });
  expect([refused.status, refused.body.message]).toEqual([
    400,
    expect.stringContaining('beside signingSecret: they are those of the signature'),
  ]);
  expect((await change({ signingSecret, forwardHeaders: null })).body).toMatchObject({ forwardHeaders: null, signingSecret: '••••Bwc=' });
  expect((await change({ forwardHeaders: ['X-A'] })).body.forwardHeaders).toEqual(['X-A']);
  expect((await change({ timeoutMs: 5000 })).body.forwardHeaders).toEqual(['X-A']);
  expect((await change({ forwardHeaders: ['webhook-signature'] })).status).toBe(400);
  expect((await change({ forwardHeaders: [] })).body.forwardHeaders).toEqual([]);
});
