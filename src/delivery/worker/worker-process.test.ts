import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { startDeliveryProgram } from '../../../test/support/delivery-program.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import type { Program } from '../../../test/support/program.ts';
import { type Receiver, startReceiver } from '../../../test/support/receiver.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { hashFields } from '../../data/shard/hash-fields.ts';

const prefix = 'posthorn:';
let redis: RedisServer;
let acceptor: RedisMessageAcceptor;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function startWorker(): Promise<Program> {
  const program = await startDeliveryProgram(redis.url);
  ends.push(() => program.stop());
  return program;
}

async function publishTo(url: string): Promise<void> {
  const publisher = new RedisRegistryPublisher(redis.client, prefix);
  const epoch = await publisher.mintEpoch();
  await publisher.publish(epoch, 'organization', organizationRecord());
  await publisher.publish(epoch, 'source', sourceRecord());
  await publisher.publish(epoch, 'route', routeRecord());
  await publisher.publish(epoch, 'destination', destinationRecord({ url, timeoutMs: 60_000 }));
}

async function receiver(answer?: Parameters<typeof startReceiver>[0]): Promise<Receiver> {
  const started = await startReceiver(answer);
  ends.push(() => started.close());
  return started;
}

test('what a killed worker held arrives through another under the same webhook-id', async () => {
  // The first five requests are never answered: they are under way when their worker dies.
  const to = await receiver((response, number) => (number <= 5 ? undefined : response.end()));
  await publishTo(to.url);
  const first = await startWorker();
  const events = Array.from({ length: 5 }, () => newEvent());
  await Promise.all(events.map((event) => acceptor.accept(event)));
  await to.arrived(5);
  await startWorker();
  first.signal('SIGKILL');
  await first.ended;
  const requests = await to.arrived(10, 60_000);
  const sent = events.map(({ targets }) => targets[0]?.messageId).sort();
  const ids = requests.map(({ headers }) => headers['webhook-id']);
  expect(ids.slice(0, 5).sort()).toEqual(sent);
  expect(ids.slice(5).sort()).toEqual(sent);
});

test('a worker that is told to stop finishes what is under way and ends with 0', async () => {
  const to = await receiver((response) => setTimeout(() => response.end(), 1000));
  await publishTo(to.url);
  const program = await startWorker();
  const event = newEvent();
  await acceptor.accept(event);
  await to.arrived(1);
  program.signal('SIGTERM');
  expect(await program.ended).toBe(0);
  expect(await redis.client.hget(`${prefix}{s0}:m:${event.targets[0]?.messageId.slice(6)}`, hashFields.message.status)).toBe('d');
  expect(to.requests).toHaveLength(1);
});
