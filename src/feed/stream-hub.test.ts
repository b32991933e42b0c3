import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { eventsOf, figure, sees } from '../../test/support/stream-clients.ts';
import { streamSuite } from '../../test/support/stream-suite.ts';
import { webhookOrganization } from '../core/webhook.ts';
import { shardKeys } from '../data/shard/shard-keys.ts';

const prefix = 'test:';
const { feed } = shardKeys(prefix, 0);
const patience = 20_000;
const suite = streamSuite(prefix);
const { hubWith, accept } = suite;

test('clients get the rows of their organization and of its webhooks, and no others', async () => {
  const { connect } = hubWith();
  const [one, two, other] = [await connect(), await connect(), await connect({ organization: 'org_b' })];
  const ids = [...(await accept(2)), ...(await accept(1, webhookOrganization('org_a')))];
  const [foreign] = await accept(1, 'org_b');
  await Promise.all([sees(one, 3), sees(two, 3), sees(other, 1)]);
  expect([eventsOf(one), eventsOf(two), eventsOf(other)]).toEqual([ids, ids, [foreign]]);
});

test('a client that comes back gets the rows that its organization and its webhooks have missed, and no others', async () => {
  const { connect } = hubWith();
  const [own, foreign] = [await connect(), await connect({ organization: 'org_b' })];
  await accept(1, 'org_b');
  await sees(foreign, 1);
  for (const client of [own, foreign]) client.hangUp();
  const missed: string[] = [];
  const foreignMissed: string[] = [];
  for (let round = 0; round < 3; round++) {
    foreignMissed.push(...(await accept(2, 'org_b')));
    missed.push(...(await accept(1)), ...(await accept(1, webhookOrganization('org_a'))));
    foreignMissed.push(...(await accept(1, webhookOrganization('org_b'))));
  }
  const [again, foreignAgain] = [
    await connect({ lastEventId: own.seen.lastId }),
    await connect({ organization: 'org_b', lastEventId: foreign.seen.lastId }),
  ];
  missed.push(...(await accept(1)));
  foreignMissed.push(...(await accept(1, 'org_b')));
  await Promise.all([sees(again, 7), sees(foreignAgain, 10)]);
  expect([eventsOf(again), eventsOf(foreignAgain)]).toEqual([missed, foreignMissed]);
  expect(again.seen.types()).not.toContain('reset');
});

test('a client gets the rows that it has selected', async () => {
  const { connect } = hubWith();
  const client = await connect({ matches: (row) => row.org !== 'org_a' });
  await accept(1);
  const ids = await accept(1, webhookOrganization('org_a'));
  await sees(client, 1);
  expect(eventsOf(client)).toEqual(ids);
});

test.each([0, 1, 7])('a client that comes back after %i rows gets what it has missed, once, and then what is new', async (seenBefore) => {
  const { connect } = hubWith();
  const first = await connect();
  const before = await accept(seenBefore);
  await sees(first, seenBefore);
  first.hangUp();
  const { lastId } = first.seen;
  const missed = await accept(30);
  const second = await connect({ lastEventId: lastId });
  const after = await accept(5);
  await sees(second, 35);
  expect(before).toHaveLength(seenBefore);
  expect(eventsOf(second)).toEqual([...missed, ...after]);
  expect(second.seen.types()).not.toContain('reset');
});

test('a client continues where it was at another process, also one that is behind', async () => {
  const [here, there] = [hubWith(), hubWith()];
  const [first, keeper] = [await here.connect(), await there.connect()];
  for (let round = 0; round < 5; round++) await accept(3);
  await sees(first, 15);
  first.hangUp();
  const second = await there.connect({ lastEventId: first.seen.lastId });
  const ids = await accept(2);
  await sees(second, 2);
  await sees(keeper, 17);
  expect(eventsOf(second)).toEqual(ids);
});

test('the last id of a client that wanted none of the rows moves on with its heartbeats', async () => {
  const clock = new FakeClock();
  const { connect } = hubWith({ clock });
  const client = await connect({ matches: () => false });
  const all = await connect();
  const before = client.seen.lastId;
  await accept(1);
  await sees(all, 1);
  await clock.advance(15_000);
  expect(client.seen.heartbeats).toBe(1);
  expect(client.seen.lastId).toBe(all.seen.lastId);
  expect(client.seen.lastId).not.toBe(before);
  await clock.advance(30_000);
  expect(client.seen.heartbeats).toBe(3);
});

test.each([
  ['what is no position', () => 'nonsense', 'epoch'],
  ['a position of another epoch', (id: string) => `000000000000${id.slice(12)}`, 'epoch'],
  ['a position of another number of shards', (id: string) => `${id}~0`, 'epoch'],
])('a client that comes back with %s is notified and gets live rows', async (_, wrong, reason) => {
  const { connect } = hubWith();
  const first = await connect();
  const client = await connect({ lastEventId: wrong(first.seen.lastId) });
  const ids = await accept(1);
  await sees(client, 1);
  expect(client.seen.all[0]).toMatchObject({ type: 'reset', data: { reason } });
  expect(eventsOf(client)).toEqual(ids);
});

test('a client whose position was trimmed is notified and gets live rows', async () => {
  const { connect } = hubWith();
  const keeper = await connect();
  await accept(3);
  await sees(keeper, 3);
  const [, second] = keeper.seen.all;
  await suite.redis.client.xtrim(feed, 'MAXLEN', '=', 1);
  const client = await connect({ lastEventId: second?.id ?? '' });
  await eventually('the reset', patience, () => client.seen.types().includes('reset') || undefined);
  const ids = await accept(1);
  await sees(client, 1);
  expect(client.seen.all[0]).toMatchObject({ type: 'reset', data: { reason: 'trimmed' } });
  expect(eventsOf(client)).toEqual(ids);
});

test('clients are notified when the feed restarts, as after the loss of Redis, and get live rows', async () => {
  const clock = new FakeClock();
  const { connect } = hubWith({ clock });
  const client = await connect();
  await suite.redis.client.flushall();
  await clock.advance(16_000);
  await eventually('the reset', patience, () => client.seen.types().includes('reset') || undefined);
  const ids = await accept(1);
  await sees(client, 1);
  expect(eventsOf(client)).toEqual(ids);
});

test('rows beyond those of a second are skipped, counted, and not brought back', async () => {
  const clock = new FakeClock();
  const world = hubWith({ clock });
  const client = await world.connect();
  const ids = await accept(80);
  await sees(client, 50);
  await eventually(
    'all rows to be read',
    patience,
    async () => (await figure(world, 'posthorn_stream_rows_skipped_total')) === 30 || undefined,
  );
  await clock.advance(1000);
  await eventually('the event', patience, () => client.seen.types().includes('skipped') || undefined);
  const skipped = client.seen.all.at(-1);
  expect(skipped).toMatchObject({ type: 'skipped', data: { count: 30, firstId: expect.any(String) } });
  expect(skipped?.data['lastId']).toBe(skipped?.id);
  expect(eventsOf(client)).toEqual(ids.slice(0, 50));
  expect(await figure(world, 'posthorn_stream_rows_sent_total')).toBe(50);
  const again = await world.connect({ lastEventId: client.seen.lastId });
  const [next] = await accept(1);
  await sees(again, 1);
  expect(eventsOf(again)).toEqual([next]);
});

test('what a client has missed is paced, and too many rows that come meanwhile are skipped', async () => {
  const clock = new FakeClock();
  const { connect } = hubWith({ clock, limits: { waitingRows: 5 } });
  const first = await connect();
  first.hangUp();
  const missed = await accept(60);
  const client = await connect({ lastEventId: first.seen.lastId });
  await sees(client, 50);
  const keeper = await connect();
  await accept(6);
  await sees(keeper, 6);
  const [last] = await accept(1);
  await sees(keeper, 7);
  await clock.advance(2000);
  await sees(client, 61);
  expect(eventsOf(client)).toEqual([...missed, last]);
  expect(client.seen.all.at(-2)).toMatchObject({ type: 'skipped', data: { count: 6 } });
});

test('a client that does not read is dropped while another gets everything', async () => {
  const clock = new FakeClock();
  const world = hubWith({ clock });
  const [hung, good] = [await world.connect({}, { reads: false }), await world.connect()];
  const ids: unknown[] = [];
  for (let second = 0; second < 12; second++) {
    ids.push(...(await accept(5)));
    await sees(good, ids.length);
    await clock.advance(1000);
  }
  expect(hung.stream.broken.aborted).toBe(true);
  expect([good.stream.broken.aborted, eventsOf(good)]).toEqual([false, ids]);
  expect(await figure(world, 'posthorn_stream_clients_dropped_total')).toBe(1);
  expect(await figure(world, 'posthorn_stream_clients')).toBe(1);
});

test('a client with too much text that waits is dropped at once', async () => {
  const world = hubWith({ limits: { pendingBytes: 1000 } });
  const [hung, good] = [await world.connect({}, { reads: false }), await world.connect()];
  await accept(20);
  await sees(good, 20);
  expect([hung.stream.broken.aborted, good.stream.broken.aborted]).toEqual([true, false]);
});

test('a credential has 20 streams and a process 200, and each place is free again when its client has gone', async () => {
  const world = hubWith();
  const refused = expect.objectContaining({ code: 'RATE_LIMITED' });
  const own = await Promise.all(Array.from({ length: 20 }, () => world.connect()));
  await expect(world.connect()).rejects.toEqual(refused);
  const others = await Promise.all(Array.from({ length: 180 }, (_, i) => world.connect({ organization: `org_${i}` })));
  expect(others).toHaveLength(180);
  await expect(world.connect({ organization: 'org_z' })).rejects.toEqual(refused);
  own[0]?.hangUp();
  await eventually('the place', patience, async () => (await figure(world, 'posthorn_stream_clients')) === 199 || undefined);
  await world.connect({ organization: 'org_z' });
});

test('organizations that open as many streams as they may leave some to the next one', async () => {
  const world = hubWith({ limits: { perOrganization: 4, perProcess: 8 } });
  const open = async (organization: string): Promise<number> => {
    const opened = await Promise.allSettled(Array.from({ length: 5 }, (_, i) => world.connect({ organization, credential: `key_${i}` })));
    return opened.filter(({ status }) => status === 'fulfilled').length;
  };
  expect([await open('org_b'), await open('org_c'), await open('org_d')]).toEqual([4, 2, 1]);
});

test('credentials of an organization that open as many streams as they may leave some to the next one', async () => {
  const world = hubWith();
  const open = async (credential: string): Promise<number> => {
    const opened = await Promise.allSettled(Array.from({ length: 21 }, () => world.connect({ credential })));
    return opened.filter(({ status }) => status === 'fulfilled').length;
  };
  const places: number[] = [];
  for (const credential of ['key_a', 'key_b', 'key_c', 'key_d', 'key_e']) places.push(await open(credential));
  expect(places).toEqual([20, 3, 2, 1, 0]);
});

test('a client whose credentials no longer hold is notified and ends; while that is unknown it stays', async () => {
  const clock = new FakeClock();
  const { connect } = hubWith({ clock });
  let isAllowed: () => Promise<boolean> = () => Promise.reject(new Error('Redis is away'));
  const client = await connect({ isAllowed: () => isAllowed() });
  await clock.advance(31_000);
  expect(client.ended()).toBe(false);
  isAllowed = async () => false;
  await clock.advance(31_000);
  expect([client.ended(), client.seen.types()]).toEqual([true, ['revoked']]);
});

test('when the process ends its clients are told to connect again, and new ones are refused', async () => {
  const { connect, hub } = hubWith();
  const client = await connect();
  hub.close();
  await eventually('the end', patience, () => client.ended() || undefined);
  expect(client.seen.all).toMatchObject([{ type: 'reconnect', data: { reason: 'shutdown', retryMs: 2000 } }]);
  await expect(connect()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
});

test('nothing is read while nobody watches, and the feed is written for a while longer', async () => {
  const { connect } = hubWith();
  expect(await suite.redis.client.exists(feed)).toBe(0);
  (await connect()).hangUp();
  const reads = async (): Promise<number> =>
    Number(/cmdstat_xread:calls=(\d+)/.exec(await suite.redis.client.info('commandstats'))?.[1] ?? 0);
  const blocked = async (): Promise<number> => Number(/blocked_clients:(\d+)/.exec(await suite.redis.client.info('clients'))?.[1]);
  // Between two reads no client is blocked either.
  await eventually('the last read to end', patience, async () => {
    const before = await reads();
    await pause(200);
    return ((await blocked()) === 0 && (await reads()) === before) || undefined;
  });
  const before = await reads();
  await accept(3);
  expect([await reads(), await suite.redis.client.xlen(feed), await blocked()]).toEqual([before, 4, 0]);
});

test('a cut to Redis loses nothing, and nothing comes twice', async () => {
  const { connect } = hubWith();
  const client = await connect();
  const ids = await accept(3);
  await sees(client, 3);
  await suite.redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  ids.push(...(await accept(3)));
  await sees(client, 6);
  expect([eventsOf(client), client.seen.types()]).toEqual([ids, ids.map(() => 'event.pending')]);
});
