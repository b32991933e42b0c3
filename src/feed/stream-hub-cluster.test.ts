import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { eventForShards } from '../../test/support/new-event.ts';
import { clusterClient, type RedisGroup, startRedisCluster } from '../../test/support/redis-group.ts';
import { startHub, type TestClient, type TestHub } from '../../test/support/stream-clients.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import type { RedisClient } from '../redis/connection.ts';

const prefix = 'test:';
const shards = 6;
let cluster: RedisGroup;
let redis: RedisClient;
let acceptor: RedisMessageAcceptor;
let world: TestHub;

beforeAll(async () => {
  cluster = await startRedisCluster();
  redis = await clusterClient(cluster);
  acceptor = new RedisMessageAcceptor({ redis, prefix, clock: lenientClock, shards: () => shards });
  world = startHub({ client: redis, blocking: 'redis://127.0.0.1:1' }, { prefix, shards });
});
afterAll(async () => {
  world.close();
  redis.disconnect();
  await cluster.stop();
});

async function acceptInEach(): Promise<string[]> {
  const events = Array.from({ length: shards }, (_, shard) => eventForShards([shard]));
  for (const event of events) await acceptor.accept(event);
  return events.map(({ id }) => id).sort();
}

const eventsOf = ({ seen }: TestClient) =>
  seen.all
    .filter(({ type }) => type === 'event.pending')
    .map(({ data }) => String(data['eventId']))
    .sort();
const sees = (client: TestClient, count: number) =>
  eventually(`${count} events`, 20_000, () => eventsOf(client).length >= count || undefined);

test('in a Cluster a client gets the rows of all shards, and after a cut those that it has missed, once', async () => {
  const first = await world.connect();
  const before = await acceptInEach();
  await sees(first, shards);
  expect(eventsOf(first)).toEqual(before);
  first.hangUp();
  const missed = await acceptInEach();
  const second = await world.connect({ lastEventId: first.seen.lastId });
  const after = await acceptInEach();
  await sees(second, 2 * shards);
  expect(eventsOf(second)).toEqual([...missed, ...after].sort());
  expect(second.seen.types()).not.toContain('reset');
});

test('in a Cluster a client whose position was trimmed in one shard is notified', async () => {
  const client = await world.connect();
  const { lastId } = client.seen;
  await acceptInEach();
  await sees(client, shards);
  await redis.xtrim(`${prefix}{s3}:feed`, 'MAXLEN', '=', 1);
  await acceptInEach();
  await redis.xtrim(`${prefix}{s3}:feed`, 'MAXLEN', '=', 1);
  const again = await world.connect({ lastEventId: lastId });
  await eventually('the reset', 20_000, () => again.seen.types().includes('reset') || undefined);
});
