import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newApiKey } from '../../src/core/api-key-hash.ts';
import { stoppedClock } from '../support/lenient-clock.ts';
import { type Answer, type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  // The limit of guesses refills every second, and a slow machine needs longer for the answers.
  world = await startFacadeWorld({ trustedProxies: ['127.0.0.0/8'], clock: stoppedClock() });
});
afterAll(() => world.stop());

const from = (address: string, headers: Record<string, string>, path = '/api/sources'): Promise<Answer> =>
  world.request('GET', path, { key: null, headers: { 'x-forwarded-for': address, ...headers } });
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

test.each<[string, string, (key: string) => Record<string, string>, string]>([
  ['as bearers', '192.0.2.1', bearer, '/api/sources'],
  ['in x-api-key', '192.0.2.2', (key) => ({ 'x-api-key': key }), '/api/webhook-endpoints'],
  ['at a path with an organization', '192.0.2.3', bearer, '/api/organizations/acme/cron/jobs'],
  ['at a path that there is not', '192.0.2.4', bearer, '/api/nothing'],
])(
  'a client that guesses keys %s gets 429 after 60, its neighbours do not, and no key that is right does',
  async (_, address, headers, path) => {
    const answers = await Promise.all(Array.from({ length: 120 }, () => from(address, headers(newApiKey().key), path)));
    const [refused, heldUp] = [401, 429].map((status) => answers.filter((each) => each.status === status));
    expect([refused?.length, heldUp?.length]).toEqual([60, 60]);
    expect(heldUp?.[0]?.headers.get('retry-after')).toBe('1');
    expect(heldUp?.[0]?.headers.get('x-error-code')).toBe('RATE_LIMITED');
    expect((await from(`${address}0`, headers(newApiKey().key), path)).status).toBe(401);
    const fresh = await world.request('POST', '/api/api-keys', { body: { name: `New at ${address}` } });
    expect((await from(address, headers(fresh.body.key))).status).toBe(200);
  },
);

test('a key in use passes beside a guesser of the same address, and requests without a key are no guesses', async () => {
  expect((await from('192.0.2.9', bearer(world.admin))).status).toBe(200);
  const without = await Promise.all(Array.from({ length: 100 }, () => from('192.0.2.9', {})));
  expect(without.filter(({ status }) => status === 401)).toHaveLength(100);
  const guesses = await Promise.all(Array.from({ length: 100 }, () => from('192.0.2.9', bearer(newApiKey().key))));
  expect(guesses.filter(({ status }) => status === 429).length).toBeGreaterThan(20);
  expect((await from('192.0.2.9', bearer(world.admin))).status).toBe(200);
});
