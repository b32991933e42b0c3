import { expect, jest, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { eventsOf, figure, sees } from '../../test/support/stream-clients.ts';
import { streamSuite } from '../../test/support/stream-suite.ts';

const prefix = 'test:';
const watch = `${prefix}{s0}:watch`;
const feed = `${prefix}{s0}:feed`;
const patience = 20_000;
const suite = streamSuite(prefix);
const { hubWith, accept } = suite;

test('a client that hangs up while its stream opens has none, and its place is free', async () => {
  const world = hubWith();
  const keeper = await world.connect();
  const { lastId } = keeper.seen;
  for (const lastEventId of [null, lastId, lastId.replace('~', '~z')]) {
    const leaving = new AbortController();
    const opening = world.connect({ lastEventId, signal: leaving.signal });
    leaving.abort();
    await expect(opening).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  }
  expect(await figure(world, 'posthorn_stream_clients')).toBe(1);
});

test('a stream that opens while the process ends is refused', async () => {
  const world = hubWith();
  const opening = world.connect();
  world.hub.close();
  await expect(opening).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(await figure(world, 'posthorn_stream_clients')).toBe(0);
});

test('a client that comes back and cannot keep up with what is new becomes live, and what it does not get is counted', async () => {
  const clock = new FakeClock();
  const { connect } = hubWith({ clock, limits: { waitingRows: 5 } });
  const first = await connect();
  first.hangUp();
  const missed = await accept(60);
  const client = await connect({ lastEventId: first.seen.lastId });
  await sees(client, 50);
  const keeper = await connect();
  const late = await accept(4);
  await sees(keeper, 4);
  while (eventsOf(client).length < 61) await clock.advance(20);
  await accept(7);
  await sees(keeper, 11);
  await clock.advance(1000);
  await eventually('the event', patience, () => client.seen.types().includes('skipped') || undefined);
  expect(client.seen.all.at(-1)).toMatchObject({ type: 'skipped', data: { count: 10 } });
  const last = await accept(1);
  await sees(client, 62);
  expect(eventsOf(client)).toEqual([...missed, late[0], ...last]);
});

test('when the feed restarts a client that gets what it has missed continues with live rows', async () => {
  const clock = new FakeClock();
  const { connect } = hubWith({ clock, limits: { rowsPerSecond: 1 } });
  const first = await connect();
  first.hangUp();
  await accept(30);
  const client = await connect({ lastEventId: first.seen.lastId });
  const keeper = await connect();
  await accept(1);
  await sees(keeper, 1);
  await suite.redis.client.flushall();
  await clock.advance(16_000);
  await eventually('the reset', patience, () => keeper.seen.types().includes('reset') || undefined);
  await clock.advance(1000);
  const [live] = await accept(1);
  await eventually('the live row', patience, () => eventsOf(client).includes(live) || undefined);
  const rest = client.seen.all.slice(client.seen.types().indexOf('reset'));
  expect(rest.map(({ type }) => type)).toEqual(['reset', 'event.pending']);
  expect(new Set(rest.map(({ id }) => id.split('~')[0])).size).toBe(1);
});

test('rows are read while the feed cannot be renewed', async () => {
  const clock = new FakeClock();
  const { connect } = hubWith({ clock });
  const client = await connect();
  const epoch = (await suite.redis.client.get(watch)) ?? '';
  await suite.redis.client.pipeline().del(watch).lpush(watch, 'no epoch').exec();
  await clock.advance(16_000);
  for (let count = 1; count <= 3; count++) {
    await accept(1);
    await sees(client, count);
  }
  await suite.redis.client.set(watch, epoch);
  await clock.advance(2000);
  await accept(1);
  await eventually('the renewal', patience, async () => (await suite.redis.client.pttl(watch)) > 0 || undefined);
  await sees(client, 4);
  expect(client.seen.types()).not.toContain('reset');
});

test('four pages of missed rows are read at a time, and all clients get theirs', async () => {
  const { connect } = hubWith();
  const first = await connect();
  const missed = await accept(5);
  await sees(first, 5);
  const { xrange } = suite.redis.client;
  const reads = { now: 0, most: 0 };
  const counted = async (...sent: Parameters<typeof xrange>): Promise<unknown> => {
    reads.now++;
    reads.most = Math.max(reads.most, reads.now);
    return await xrange.apply(suite.redis.client, sent).finally(() => reads.now--);
  };
  const counting = jest.spyOn(suite.redis.client, 'xrange').mockImplementation(counted as never);
  const lastEventId = first.seen.all[0]?.id ?? '';
  const clients = await Promise.all(Array.from({ length: 12 }, () => connect({ lastEventId })));
  await Promise.all(clients.map((client) => sees(client, 4)));
  counting.mockRestore();
  expect(reads).toEqual({ now: 0, most: 4 });
  expect(clients.map(eventsOf)).toEqual(clients.map(() => missed.slice(1)));
});

test('a client that comes back after very many rows of another organization gets what it has missed, and one of that is notified', async () => {
  const { connect } = hubWith();
  const [few, many] = [await connect({ organization: 'org_b' }), await connect()];
  for (const client of [few, many]) client.hangUp();
  const missed = await accept(3, 'org_b');
  const rows = suite.redis.client.pipeline();
  for (let i = 0; i < 12_000; i++) rows.xadd(feed, '*', '', 'e p org_a x y');
  await rows.exec();
  while ((await suite.redis.client.xlen(feed)) >= 10_100) await accept(1);
  const [again, other] = [
    await connect({ organization: 'org_b', lastEventId: few.seen.lastId }),
    await connect({ lastEventId: many.seen.lastId }),
  ];
  await sees(again, 3);
  await eventually('the reset', patience, () => other.seen.types().includes('reset') || undefined);
  const last = await accept(1, 'org_b');
  await sees(again, 4);
  expect([eventsOf(again), again.seen.types()]).toEqual([[...missed, ...last], missed.concat(last).map(() => 'event.pending')]);
  expect(other.seen.all[0]).toMatchObject({ type: 'reset', data: { reason: 'trimmed' } });
});
