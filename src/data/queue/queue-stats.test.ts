import { expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { TargetSetting } from './delivery-queue.ts';

const suite = messageQueueSuite('test:');

const throttle = { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null } as const;

async function accept(count: number, ...destinations: string[]): Promise<void> {
  for (let i = 0; i < count; i++) await suite.acceptor.accept(newEvent({ destinations }));
}
const backlog = async (): Promise<number> => (await suite.queue.figures()).backlog;

/** Takes what can be taken; each target is met with the setting of its destination. */
async function takeAll(settings: Record<string, Partial<TargetSetting>>): Promise<void> {
  for (;;) {
    const { jobs, unconfigured } = await suite.queue.dequeue('w1', 64);
    if (jobs.length === 0 && unconfigured.length === 0) return;
    for (const target of unconfigured) await suite.queue.configure(target, targetSetting(settings[target.destinationId]));
  }
}

test('the backlog counts what waits for a worker and what one has under way', async () => {
  await accept(5, 'dst_a', 'dst_b');
  expect(await backlog()).toBe(10);
  await takeFrom(suite.queue, 'w1', 4);
  expect(await backlog()).toBe(10);
});

test('the backlog does not count what waits for its next attempt', async () => {
  await accept(3, 'dst_a');
  const jobs = await takeFrom(suite.queue, 'w1', 1);
  await settleAll(suite.queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: 60_000 });
  expect(await backlog()).toBe(2);
});

test('the backlog does not count what waits for a pause to end, a limit or the rest of its batch', async () => {
  await accept(7, 'dst_paused', 'dst_limited', 'dst_batch', 'dst_free');
  await takeAll({
    dst_paused: { paused: true },
    dst_limited: { throttle: { ...throttle, mode: 'concurrency', maxConcurrency: 1 } },
    dst_batch: { batch: { layout: 'x', records: 1000, bytes: 5_000_000, ageMs: 60_000 } },
  });
  // Messages taken of the free one are under way.
  expect(await backlog()).toBe(7);
});

test('the backlog does not count what waits for a circuit', async () => {
  await accept(4, 'dst_a');
  const circuit = { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 2 };
  const jobs = await takeFrom(suite.queue, 'w1', 1, { circuit });
  await settleAll(suite.queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: 60_000 });
  expect(await backlog()).toBe(0);
});
