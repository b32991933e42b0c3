import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { startMessageQueue } from '../../test/support/message-queue.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { takeFrom } from '../../test/support/queue-worker.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import { deliveryMetrics } from './metrics.ts';
import { RedisTroubles } from './redis-trouble.ts';
import { ShardTender } from './shard-tender.ts';

test('what has waited in a disabled route for longer than the retention becomes a dead letter, although nothing happens in its shard', async () => {
  const { redis, queue, acceptor, reader, reset } = await startMessageQueue('test:');
  const clock = new FakeClock();
  const tender = new ShardTender({
    queue,
    worker: 'w1',
    clock,
    logger: silentLogger,
    metrics: deliveryMetrics(new Registry(), { queues: [queue], now: () => clock.now(), inFlight: () => 0 }),
    trouble: new RedisTroubles(silentLogger).watch(),
    retention: { finishedMs: -1000, deadLettersMs: 86_400_000 },
    totalSlots: () => 64,
    isActive: () => false,
    onState: () => undefined,
  });
  try {
    await reset();
    const event = newEvent();
    await acceptor.accept(event);
    expect(await takeFrom(queue, 'w1', 1, { paused: true })).toEqual([]);
    tender.start();
    const status = async () => (await reader.delivery('org_a', event.targets[0]?.messageId ?? ''))?.status;
    expect(await status()).toBe('pending');
    await waitUntil('the message to end', 30_000, async () => {
      await clock.advance(10_000);
      return (await status()) === 'dlq' || undefined;
    });
  } finally {
    await tender.stop();
    await redis.stop();
  }
});
