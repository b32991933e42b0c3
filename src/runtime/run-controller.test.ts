import { afterEach, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { eventually } from '../../test/support/eventually.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { processorMs } from '../../test/support/longest-turn.ts';
import { expectShortTurns } from '../../test/support/short-work.ts';
import { PosthornError } from '../core/errors.ts';
import type { Key } from '../store/store.ts';
import { ControllerMetrics } from './controller-metrics.ts';
import { type ReconcileResult, runController } from './run-controller.ts';
import { WorkQueue } from './work-queue.ts';

const stop = new Set<() => Promise<void>>();
afterEach(async () => {
  for (const end of stop) await end();
  stop.clear();
});

function start(
  reconcile: (key: Key, signal: AbortSignal) => Promise<ReconcileResult>,
  options: { workers?: number; deadlineMs?: number } = {},
) {
  const clock = new FakeClock();
  const queue = new WorkQueue({ clock, random: () => 0.5 });
  const registry = new Registry();
  const lines: { level: number; msg: string }[] = [];
  const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const abort = new AbortController();
  const running = runController(
    {
      kind: 'Route',
      queue,
      workers: 2,
      deadlineMs: 30_000,
      reconcile,
      clock,
      logger,
      metrics: new ControllerMetrics(registry),
      ...options,
    },
    abort.signal,
  );
  stop.add(() => {
    abort.abort();
    return running;
  });
  const total = async (result: string): Promise<number | undefined> =>
    (await registry.getSingleMetric('posthorn_reconcile_total')?.get())?.values.find(({ labels }) => labels['result'] === result)?.value;
  return { clock, queue, lines, abort, running, total };
}

test('a reconcile gets the namespace and the name', async () => {
  const seen: Key[] = [];
  const { queue, clock } = start(async (key) => {
    seen.push(key);
    return {};
  });
  queue.add('shop/orders');
  queue.add('shop-organization');
  await clock.advance(0);
  expect(seen).toEqual([{ namespace: 'shop', name: 'orders' }, { name: 'shop-organization' }]);
});

test('as many objects are worked on at a time as there are workers', async () => {
  let running = 0;
  let most = 0;
  const { queue, clock } = start(
    async () => {
      most = Math.max(most, ++running);
      await clock.sleep(10);
      running--;
      return {};
    },
    { workers: 3 },
  );
  for (let i = 0; i < 9; i++) queue.add(`n/${i}`);
  await clock.advance(100);
  expect([most, running, queue.depth]).toEqual([3, 0, 0]);
});

test('a reconcile that requests another call gets it after that time', async () => {
  let calls = 0;
  const { queue, clock } = start(async () => (++calls === 1 ? { requeueAfterMs: 5000 } : {}));
  queue.add('n/a');
  await clock.advance(4999);
  expect(calls).toBe(1);
  await clock.advance(1);
  expect(calls).toBe(2);
});

test('a conflict is tried again without a line above debug', async () => {
  let calls = 0;
  const { queue, clock, lines, total } = start(async () => {
    if (++calls === 1) throw new PosthornError('CONFLICT', 'stale');
    return {};
  });
  queue.add('n/a');
  await clock.advance(10);
  expect(calls).toBe(2);
  expect(lines.filter(({ level }) => level > 20)).toEqual([]);
  expect(await total('conflict')).toBe(1);
});

test('an unavailable service is called again after its delay', async () => {
  let calls = 0;
  const { queue, clock } = start(async () => {
    if (++calls === 1) throw new PosthornError('UNAVAILABLE', 'busy', { retryAfterSeconds: 7 });
    return {};
  });
  queue.add('n/a');
  await clock.advance(6999);
  expect(calls).toBe(1);
  await clock.advance(1);
  expect(calls).toBe(2);
});

test('an outage that all objects notice is logged once in ten seconds', async () => {
  const { queue, clock, lines } = start(async () => {
    throw new PosthornError('UNAVAILABLE', 'away');
  });
  for (let i = 0; i < 20; i++) queue.add(`n/${i}`);
  await clock.advance(5000);
  expect(lines.filter(({ level }) => level === 40)).toHaveLength(1);
});

test('an unexpected error is logged and tried again with a growing delay', async () => {
  let calls = 0;
  const { queue, clock, lines } = start(async () => {
    calls++;
    throw new Error('boom');
  });
  queue.add('n/a');
  await clock.advance(5 + 10 + 20);
  expect(calls).toBe(4);
  expect(lines[0]).toMatchObject({ level: 50, kind: 'Route', key: 'n/a', err: { message: 'boom' } });
});

test('a reconcile that takes too long is told to stop', async () => {
  let told = false;
  const { queue, clock } = start(
    async (_key, signal) => {
      await clock.sleep(60_000, signal);
      told = signal.aborted;
      return {};
    },
    { deadlineMs: 1000 },
  );
  queue.add('n/a');
  await clock.advance(1000);
  expect(told).toBe(true);
});

test('stopping waits for the reconcile under way and takes no further one', async () => {
  let ended = 0;
  const { queue, clock, abort, running } = start(
    async () => {
      await clock.sleep(100);
      ended++;
      return {};
    },
    { workers: 1 },
  );
  queue.add('n/a');
  queue.add('n/b');
  await clock.advance(10);
  abort.abort();
  await clock.advance(1000);
  await running;
  expect(ended).toBe(1);
});

test('reconciles that wait for nothing do not make one long turn of the event loop', async () => {
  const { queue } = start(
    async () => {
      const before = process.threadCpuUsage();
      while (processorMs(before) < 5);
      return {};
    },
    { workers: 4 },
  );
  await expectShortTurns(100, async () => {
    for (let i = 0; i < 400; i++) queue.add(`shop/${i}`);
    await eventually(() => {
      if (!queue.isIdle) throw new Error('keys wait');
    });
  });
});

test('a controller with thousands of objects does not hold up another one', async () => {
  const work = (): void => {
    const before = process.threadCpuUsage();
    while (processorMs(before) < 0.5);
  };
  const many = start(
    async () => {
      work();
      return {};
    },
    { workers: 4 },
  );
  const lastIsDone = Promise.withResolvers<number>();
  let done = 0;
  const few = start(
    async () => {
      work();
      if (++done === 10) lastIsDone.resolve(many.queue.depth);
      return {};
    },
    { workers: 1 },
  );
  for (let i = 0; i < 2000; i++) many.queue.add(`shop/${i}`);
  for (let i = 0; i < 10; i++) few.queue.add(`shop/${i}`);
  expect(await lastIsDone.promise).toBeGreaterThan(1000);
});
