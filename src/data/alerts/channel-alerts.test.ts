import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { type ChannelAlert, ChannelAlerts, maxAlertsOfChannel } from './channel-alerts.ts';

const prefix = 'test:';
let redis: RedisServer;
let alerts: ChannelAlerts;
beforeAll(async () => {
  redis = await startRedis();
  alerts = new ChannelAlerts({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

const alert = (messageId: string, fields: Partial<ChannelAlert> = {}): ChannelAlert => ({
  messageId,
  type: 'delivery.failed',
  route: { id: 'rte_a', name: 'Orders\n"all"' },
  destination: { id: 'dst_a', name: 'Shop %1' },
  count: 1,
  isTest: false,
  state: 'delivered',
  attempts: 1,
  lastAttemptAtMs: 1_700_000_000_123,
  responseStatus: 200,
  errorMessage: null,
  ...fields,
});
const idsOf = async (channel: string): Promise<string[]> => (await alerts.newest('org_a', channel)).map(({ messageId }) => messageId);

test('a channel shows its newest alerts first, as they were recorded, and no more than it keeps', async () => {
  for (let n = 0; n < maxAlertsOfChannel + 5; n++) await alerts.note('org_a', 'nch_a', alert(`msg_${n}`));
  await alerts.note('org_a', 'nch_b', alert('msg_other'));
  expect(await idsOf('nch_a')).toEqual(Array.from({ length: maxAlertsOfChannel }, (_, i) => `msg_${maxAlertsOfChannel + 4 - i}`));
  expect(await alerts.newest('org_a', 'nch_b')).toEqual([alert('msg_other')]);
  expect(await alerts.newest('org_b', 'nch_b')).toEqual([]);
});

test('a later attempt takes the place of the earlier one of the same message, also where an id begins with another', async () => {
  await alerts.note('org_a', 'nch_a', alert('msg_1', { state: 'retrying', responseStatus: 503 }));
  await alerts.note('org_a', 'nch_a', alert('msg_12'));
  await alerts.note('org_a', 'nch_a', alert('msg_1', { attempts: 2 }));
  expect(await alerts.newest('org_a', 'nch_a')).toEqual([alert('msg_1', { attempts: 2 }), alert('msg_12')]);
});

test('only an alert that arrived and is no test says when an alert last arrived', async () => {
  await alerts.note('org_a', 'nch_a', alert('msg_1', { state: 'failed' }));
  await alerts.note('org_a', 'nch_a', alert('msg_2', { state: 'retrying' }));
  await alerts.note('org_a', 'nch_a', alert('msg_3', { isTest: true }));
  expect(await alerts.lastArrivalMs('org_a', 'nch_a')).toBeNull();
  await alerts.note('org_a', 'nch_a', alert('msg_4', { lastAttemptAtMs: 42 }));
  expect(await alerts.lastArrivalMs('org_a', 'nch_a')).toBe(42);
});

test('the reason of a failure is cut', async () => {
  await alerts.note('org_a', 'nch_a', alert('msg_1', { errorMessage: 'x'.repeat(5000) }));
  expect((await alerts.newest('org_a', 'nch_a'))[0]?.errorMessage).toBe('x'.repeat(300));
});

test('what a later release has recorded in another form is left out', async () => {
  await alerts.note('org_a', 'nch_a', alert('msg_1'));
  await alerts.note('org_a', 'nch_a', alert('msg_2', { type: 'a later type' as ChannelAlert['type'] }));
  expect(await idsOf('nch_a')).toEqual(['msg_1']);
});

test('alerts expire, also those of a channel that is deleted without a word', async () => {
  await alerts.note('org_a', 'nch_a', alert('msg_1'));
  const keys = await redis.client.keys(`${prefix}{notified*}:*`);
  expect(keys).toHaveLength(2);
  for (const key of keys) expect(await redis.client.pttl(key)).toBeGreaterThan(29 * 86_400_000);
});

test('nothing is left of a channel that is forgotten, nor of an organization that is purged', async () => {
  for (const channel of ['nch_a', 'nch_b']) await alerts.note('org_a', channel, alert('msg_1'));
  await alerts.forget('org_a', 'nch_a');
  expect([await idsOf('nch_a'), await alerts.lastArrivalMs('org_a', 'nch_a'), await idsOf('nch_b')]).toEqual([[], null, ['msg_1']]);
  await new RedisMessagePurger({ redis: redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
  expect(await redis.client.keys(`${prefix}*notified*`)).toEqual([]);
});
