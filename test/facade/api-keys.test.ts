import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Plan } from '../../src/core/records.ts';
import { type Answer, type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { describeApiKeys } from './suites/api-keys.ts';

describeApiKeys(() => startFacadeWorld());

describe('rate limits', () => {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await startFacadeWorld();
  });
  afterAll(() => world.stop());

  test.each<[string, Plan, number, (key: string) => Promise<Answer>]>([
    ['of requests', 'pro', 1000, (key) => world.request('GET', '/api/sources', { key })],
    [
      'of sent events',
      'free',
      100,
      (key) => world.request('POST', '/api/send-event', { key, body: { eventType: 'no.such_type', payload: 1 } }),
    ],
    [
      'of events that are sent together',
      'free',
      100,
      (key) => world.request('POST', '/api/send-events', { key, body: { events: [{ eventType: 'no.such_type', payload: 1 }] } }),
    ],
  ])('rate limits hold for all keys of an organization together, %s', async (what, plan, limit, ask) => {
    const [organization, neighbour] = [`metered-${what.replaceAll(' ', '-')}`, `beside-${what.replaceAll(' ', '-')}`];
    for (const each of [organization, neighbour]) await world.addOrganization(each, plan);
    const keys = [await world.addKey(organization), await world.addKey(organization), await world.addKey(organization)];
    const remaining = async (key: string) => Number((await ask(key)).headers.get('x-ratelimit-remaining'));
    const left: number[] = [];
    for (const key of keys) left.push(await remaining(key));
    expect(left).toEqual([limit - 1, limit - 2, limit - 3]);
    expect(await remaining(await world.addKey(neighbour))).toBe(limit - 1);
  });

  test('rate limits are not multiplied by keys', async () => {
    await world.addOrganization('many-keys', 'free');
    const keys = await Promise.all(Array.from({ length: 4 }, () => world.addKey('many-keys')));
    const body = { eventType: 'no.such_type', payload: 1 };
    const sent = await Promise.all(
      keys.flatMap((key) => Array.from({ length: 40 }, () => world.request('POST', '/api/send-event', { key, body }))),
    );
    expect([sent.filter(({ status }) => status === 404).length, sent.filter(({ status }) => status === 429).length]).toEqual([100, 60]);
  });

  test('rate limits end within a minute, and there are none for enterprise', async () => {
    await world.addOrganization('metered', 'pro');
    const key = await world.addKey('metered');
    const askedAtMs = Date.now();
    const { headers } = await world.request('GET', '/api/sources', { key });
    const reset = Number(headers.get('x-ratelimit-reset'));
    expect(reset - askedAtMs / 1000).toBeGreaterThan(-2);
    expect(reset - Date.now() / 1000).toBeLessThanOrEqual(61);
    const unlimited = await world.request('GET', '/api/sources');
    expect([...unlimited.headers.keys()].filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
  });
});
