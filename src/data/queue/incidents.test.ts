import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { type AlertRules, AlertStates } from '../alerts/alert-states.ts';

const prefix = 'test:';
const pager = { channelId: 'nch_a', routingKey: 'sealed' };
let redis: RedisServer;
let states: AlertStates;
let entries: number;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  states = new AlertStates({ redis: redis.client, prefix, windowMs: 0 });
  entries = 0;
});

const rules = (overrides: Partial<AlertRules> = {}): AlertRules => ({
  org: 'org_a',
  routeId: 'rte_a',
  wanted: ['failed', 'recovered'],
  failureThreshold: 1,
  destinationIds: ['dst_a'],
  pagers: [pager],
  ...overrides,
});

/** A message of the route ends, and its alerts are sent to its channels. */
async function end(kind: 'f' | 's'): Promise<void> {
  const entry = { entry: `${++entries}-0`, routeId: 'rte_a', destinationId: 'dst_a', atMs: 1, kind, count: 1, messageId: '-' };
  const decided = await states.decide(0, rules(), { shard: 0, marker: 'm', entries: [entry] });
  expect(decided.alerts).toHaveLength(1);
  await states.decide(0, rules(), undefined, decided);
}
const closing = async (overrides: Partial<AlertRules>) => (await states.decide(0, rules(overrides))).closing;

test('an incident is closed at a channel that gets the alerts of the route no more, until that is confirmed', async () => {
  await end('f');
  expect(await closing({})).toEqual([]);
  const left = await states.decide(0, rules({ pagers: [] }));
  expect(left).toMatchObject({ org: 'org_a', closing: [pager] });
  expect(left.nextMs).toBeGreaterThan(0);
  expect(await closing({ pagers: [] })).toEqual(left.closing);
  await states.decide(0, rules({ pagers: [] }), undefined, left);
  expect(await closing({ pagers: [] })).toEqual([]);
});

test('an incident is closed when the route is gone, of which then nothing is left', async () => {
  await end('f');
  const gone = rules({ org: '', wanted: [], destinationIds: [], pagers: [] });
  const left = await states.decide(0, gone);
  expect(left).toMatchObject({ org: 'org_a', closing: [pager], alerts: [] });
  await states.decide(0, gone, undefined, left);
  expect((await redis.client.keys('*')).filter((key) => /:(?:al|alr|alerts|incidents)(?::|$)/.test(key))).toEqual([]);
});

test('an incident is not closed again after a recovery, nor one that was opened again', async () => {
  await end('f');
  await end('s');
  expect(await closing({ pagers: [] })).toEqual([]);
  await end('f');
  expect(await closing({ pagers: [] })).toMatchObject([pager]);
  await end('f');
  expect(await closing({})).toEqual([]);
});

test('an incident makes its route due when the route or the channel changes, or any may have', async () => {
  await end('f');
  for (const [routes, channels, isDue] of [
    [['rte_b'], ['nch_b'], false],
    [['rte_a'], [], true],
    [[], ['nch_a'], true],
    [[], ['*'], true],
  ] as const) {
    expect(await states.review(0, routes, channels)).toBe(isDue);
    expect((await states.due(0)).routeIds).toEqual(isDue ? ['rte_a'] : []);
    await states.decide(0, rules());
    expect((await states.due(0)).routeIds).toEqual([]);
  }
});
