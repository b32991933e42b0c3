import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { type AlertDecision, type AlertRules, AlertStates, type DueAlert, type EndEntry } from './alert-states.ts';

const log = { shard: 1, marker: 'marker' };
let redis: RedisServer;
let states: AlertStates;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  states = new AlertStates({ redis: redis.client, prefix: 'test:', windowMs: 1 });
});

const rules: AlertRules = {
  org: 'org_a',
  routeId: 'rte_a',
  wanted: ['opened', 'closed'],
  failureThreshold: 1,
  destinationIds: ['dst_a'],
  pagers: [],
};
const entry = (id: string, kind: string): EndEntry => ({
  entry: id,
  routeId: 'rte_a',
  destinationId: 'dst_a',
  atMs: 1,
  kind,
  count: 1,
  messageId: '-',
});
const { alertState } = hashFields;

const decide = (entries: readonly EndEntry[], alerts: readonly DueAlert[] = []): Promise<AlertDecision> =>
  states.decide(0, rules, { ...log, entries }, { alerts });
const subjects = ({ alerts }: AlertDecision): string[] => alerts.map(({ subject }) => subject);

test('an entry of a log counts whose number a failover has set back', async () => {
  expect(subjects(await decide([entry('1040-5000', 'o')]))).toEqual(['opened']);
  expect(subjects(await decide([entry('1001-9000', 'c'), entry('1002-9000', 'o'), entry('1033-9001', 'c')]))).toEqual(['opened', 'closed']);
  expect(await redis.client.hget('test:{s0}:al:rte_a', `${alertState.openCircuitOf}dst_a`)).toBeNull();
});

test('an entry of a log counts once, however often it is read, also of a release that remembers its number alone', async () => {
  const { alerts } = await decide([entry('1040-5000', 'o')]);
  expect(alerts).toMatchObject([{ subject: 'opened', count: 1 }]);
  expect((await decide([entry('1040-5000', 'o')], alerts)).alerts).toEqual([]);
  expect(await redis.client.hget('test:{s0}:al:rte_a', `${alertState.positionOf}1`)).toBe('marker 1040');
  await redis.client.hset('test:{s0}:al:rte_a', `${alertState.positionOf}1`, 'marker 1042');
  expect((await decide([entry('1040-5000', 'o'), entry('1042-6000', 'c')])).alerts).toEqual([]);
  expect(subjects(await decide([entry('1043-6001', 'c')]))).toEqual(['closed']);
});

test('an entry of a log counts once, though the clock of Redis was set back', async () => {
  const told = [entry('1040-5000', 'o'), entry('1041-4999', 'c'), entry('1042-4999', 'o')];
  const { alerts } = await decide(told);
  expect(alerts).toMatchObject([
    { subject: 'opened', count: 2 },
    { subject: 'closed', count: 1 },
  ]);
  for (let i = 0; i < 2; i++) expect((await decide(told, alerts)).alerts).toEqual([]);
});

test('the confirmation of an alert that a failover has lost does not confirm another one with its number', async () => {
  const [alert] = (await decide([entry('1040-5000', 'o')])).alerts;
  if (alert === undefined) throw new Error('no alert is due');
  expect(subjects(await decide([], [{ ...alert, decidedAtMs: alert.decidedAtMs - 5000 }]))).toEqual(['opened']);
  expect(subjects(await decide([], [alert]))).toEqual([]);
});
