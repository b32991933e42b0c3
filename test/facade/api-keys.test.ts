import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { describeApiKeys } from './suites/api-keys.ts';

describeApiKeys(() => startFacadeWorld());

describe('rate limits', () => {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await startFacadeWorld();
  });
  afterAll(() => world.stop());

  test('are counted for each credential alone', async () => {
    await world.addOrganization('metered', 'pro');
    const [one, other] = [await world.addKey('metered'), await world.addKey('metered')];
    const remaining = async (key: string) =>
      Number((await world.request('GET', '/api/sources', { key })).headers.get('x-ratelimit-remaining'));
    const [before, after] = [await remaining(one), await remaining(one)];
    expect(after).toBe(before - 1);
    expect(await remaining(other)).toBe(999);
  });

  test('end within a minute, and there are none for enterprise', async () => {
    const key = await world.addKey('metered');
    const { headers } = await world.request('GET', '/api/sources', { key });
    const leftSeconds = Number(headers.get('x-ratelimit-reset')) - Date.now() / 1000;
    expect(leftSeconds).toBeGreaterThan(-2);
    expect(leftSeconds).toBeLessThanOrEqual(61);
    const unlimited = await world.request('GET', '/api/sources');
    expect([...unlimited.headers.keys()].filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
  });
});
