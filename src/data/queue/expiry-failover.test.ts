import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll } from '../../../test/support/queue-worker.ts';
import { newTimedId } from '../../core/ids.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { checkShards } from '../check/shard-check.ts';
import type { DeliveryView } from '../shard/messages.ts';
import { messagesAtOnce } from './accept-batch.ts';
import type { Outcome } from './delivery-queue.ts';
import { OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const shards = 2;
const hourMs = 3_600_000;
const failover = { destinations: [{ id: 'dst_b', shard: 1 }], afterAttempts: 1 };
const expiredLetter = { status: 'dlq', deadLetterReason: 'expired' };

const suite = failoverSuite({ shards });
const { prefix } = suite;

async function accept(expiresAtMs = Date.now() + hourMs): Promise<string> {
  const [messageId, id] = [newTimedId('msg_', 0, Date.now()), newTimedId('evt_', 0, Date.now())];
  const target = { messageId, routeId: 'rte_a', destinationId: 'dst_a', shard: 0, maxAttempts: 3, expiresAtMs };
  await acceptOnly(suite.redis.client, prefix, newEvent({ id, targets: [target] }));
  return messageId;
}
const view = async (id: string): Promise<DeliveryView | null> => await suite.reader.delivery('org_a', id);
const expire = (shard: number) => expireMessages(suite.redis.client, suite.queues.base(shard));
const retry: Outcome = { type: 'retry', attempt: failure, delayMs: 0 };
/** Fails at its first destination, and moves to the other shard. */
async function fail(): Promise<void> {
  await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0, { failover }), retry);
}

describe('a message that expires and has failed over to another shard', () => {
  test('a message that expires and has failed over to another shard keeps its time there, and is a dead letter at that', async () => {
    const id = await accept();
    const { expiresAtMs } = (await view(id)) ?? {};
    await fail();
    await suite.queues.carry(0);
    expect(await view(id)).toMatchObject({ destinationId: 'dst_b', expiresAtMs });
    expect(await suite.redis.client.exists(`${suite.queues.base(0)}exp`)).toBe(0);
    await expire(1);
    await suite.queues.of(1).promote();
    expect(await view(id)).toMatchObject({ ...expiredLetter, destinationId: 'dst_b', attempts: 1 });
    expect(await suite.queues.take(1)).toEqual([]);
  });

  test('a message that expires and has failed over to another shard is a dead letter as soon as it arrives when it has expired on its way', async () => {
    // Long enough for a busy machine to let it fail before.
    const expiresAtMs = Date.now() + 3000;
    const id = await accept(expiresAtMs);
    await fail();
    expect(await suite.redis.client.exists(`${suite.queues.base(0)}exp`)).toBe(0);
    await sleep(expiresAtMs - Date.now() + 20);
    await suite.queues.carry(0);
    expect(await view(id)).toMatchObject({ ...expiredLetter, destinationId: 'dst_b', attempts: 1 });
  });
});

describe('a message that has expired does not fail over', () => {
  test('a message that has expired does not fail over when it fails after its time', async () => {
    const id = await accept();
    const jobs = await suite.queues.take(0, { failover });
    await expire(0);
    await settleAll(suite.queues.of(0), 'w1', jobs, dead);
    expect(await view(id)).toMatchObject({ ...expiredLetter, destinationId: 'dst_a' });
  });

  test('a message that has expired does not fail over when it waits for an open circuit', async () => {
    const id = await accept();
    await suite.queues.put(0, 'dst_a', { failover });
    await suite.queues.setCircuit(0, 'dst_a', 'open');
    await expire(0);
    expect(await suite.queues.take(0)).toEqual([]);
    await suite.queues.of(0).promote();
    expect(await view(id)).toMatchObject({ ...expiredLetter, destinationId: 'dst_a' });
  });

  test('a message that has expired does not fail over when its destination does not serve any more', async () => {
    const id = await accept();
    await suite.queues.put(0, 'dst_a', { failover, movesOn: 'all' });
    await expire(0);
    expect(await suite.queues.take(0)).toEqual([]);
    await suite.queues.of(0).promote();
    expect(await view(id)).toMatchObject({ ...expiredLetter, destinationId: 'dst_a' });
  });
});

test('messages that go through the outbox expire where they are made, those that arrive too late at once', async () => {
  const evt = newTimedId('evt_', 0, Date.now());
  const times = [Date.now() + hourMs, Date.now() - 1];
  const targets = Array.from({ length: messagesAtOnce + 2 }, (_, i) => {
    const shard = i % shards;
    const messageId = newTimedId('msg_', shard, Date.now());
    return { messageId, routeId: 'rte_a', destinationId: `dst_${i}`, shard, maxAttempts: 3, expiresAtMs: times[i % 4 < 2 ? 0 : 1] ?? 0 };
  });
  await acceptOnly(suite.redis.client, prefix, newEvent({ id: evt, targets }));
  await suite.queues.carry(0);
  for (const [i, { messageId }] of targets.entries())
    expect(await view(messageId)).toMatchObject(i % 4 < 2 ? { status: 'pending', expiresAtMs: times[0] } : expiredLetter);
});

describe('a process that', () => {
  test.each<CrashMoment>(['before', 'after'])(
    'ends messages that have expired, and dies %s any of its commands, leaves each in one place, and the next one ends it',
    async (moment) => {
      let deaths = 0;
      await crashAtEveryCommand(suite.redis.client, moment, {
        prepare: async () => {
          await suite.queues.begin();
          const ids = [await accept(), await accept()];
          await settleAll(suite.queues.of(0), 'w1', (await suite.queues.take(0)).slice(0, 1), { ...retry, delayMs: 60_000 });
          await suite.queues.of(0).reclaim(['w1']);
          await expire(0);
          return ids;
        },
        work: (client) => new RedisDeliveryQueue({ redis: client, prefix, shard: 0 }).promote(),
        look: async (ids) => {
          expect((await checkShards({ redis: suite.redis.client, prefix, shards })).findings).toEqual([]);
          await suite.queues.of(0).promote();
          for (const id of ids) expect(await view(id)).toMatchObject(expiredLetter);
          expect((await suite.queues.of(0).figures()).unfinished).toBe(0);
          deaths++;
        },
      });
      expect(deaths).toBeGreaterThan(0);
    },
  );

  test.each<CrashMoment>(['before', 'after'])(
    'carries messages to another shard, and dies %s any of its commands, loses no time of theirs',
    async (moment) => {
      await crashAtEveryCommand(suite.redis.client, moment, {
        prepare: async () => {
          await suite.queues.begin();
          const id = await accept();
          await fail();
          return id;
        },
        work: (client: RedisClient) => new OutboxCarrier({ redis: client, prefix }).carry(0),
        look: async (id) => {
          await suite.queues.carry(0);
          expect(await view(id)).toMatchObject({ destinationId: 'dst_b', status: 'retrying', expiresAtMs: expect.any(Number) });
          await expire(1);
          await suite.queues.of(1).promote();
          expect(await view(id)).toMatchObject(expiredLetter);
          await settleAll(suite.queues.of(1), 'w1', await suite.queues.take(1), delivered);
          expect(await checkShards({ redis: suite.redis.client, prefix, shards })).toMatchObject({ findings: [], unfinished: 0 });
        },
      });
    },
  );
});
