import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { assertProperty } from '../../test/support/property.ts';
import { WorkQueue } from './work-queue.ts';

function make(options: { random?: () => number } = {}): { queue: WorkQueue; clock: FakeClock } {
  const clock = new FakeClock();
  return { queue: new WorkQueue({ clock, random: () => 0.5, ...options }), clock };
}

test('keys come out in the order they were added', async () => {
  const { queue } = make();
  for (const key of ['a', 'b', 'c']) queue.add(key);
  expect([await queue.get(), await queue.get(), await queue.get()]).toEqual(['a', 'b', 'c']);
});

test('a key that waits is not queued twice', async () => {
  const { queue } = make();
  queue.add('a');
  queue.add('a');
  expect(queue.depth).toBe(1);
  expect(await queue.get()).toBe('a');
  expect(queue.depth).toBe(0);
});

test('a key added while it is worked on is handed out again after done, not before', async () => {
  const { queue } = make();
  queue.add('a');
  await queue.get();
  queue.add('a');
  let again: string | undefined;
  const next = queue.get().then((key) => {
    again = key;
  });
  await Promise.resolve();
  expect(again).toBeUndefined();
  queue.done('a');
  await next;
  expect(again).toBe('a');
});

test('a live change overtakes the initial list', async () => {
  const { queue } = make();
  queue.add('listed-1', 'initial');
  queue.add('listed-2', 'initial');
  queue.add('changed');
  expect(await queue.get()).toBe('changed');
});

test('a listed key that changes moves to the front and comes out once', async () => {
  const { queue } = make();
  queue.add('listed-1', 'initial');
  queue.add('listed-2', 'initial');
  queue.add('listed-2');
  expect([await queue.get(), await queue.get()]).toEqual(['listed-2', 'listed-1']);
  queue.done('listed-2');
  expect(queue.depth).toBe(0);
});

test('a delayed key comes out when its time has come', async () => {
  const { queue, clock } = make();
  queue.addAfter('a', 1000);
  await clock.advance(999);
  expect(queue.depth).toBe(0);
  await clock.advance(1);
  expect(queue.depth).toBe(1);
});

test('the shorter of two delays of one key counts', async () => {
  const { queue, clock } = make();
  queue.addAfter('a', 10_000);
  queue.addAfter('a', 1000);
  queue.addAfter('a', 5000);
  await clock.advance(1000);
  expect(await queue.get()).toBe('a');
  queue.done('a');
  await clock.advance(20_000);
  expect(queue.depth).toBe(0);
});

test('retries of one key back off from 5 ms to 5 min and restart after forget', async () => {
  const { queue, clock } = make();
  const expectDelay = async (ms: number): Promise<void> => {
    queue.addRateLimited('a');
    await clock.advance(ms - 1);
    expect(queue.depth).toBe(0);
    await clock.advance(1);
    expect(await queue.get()).toBe('a');
    queue.done('a');
  };
  for (let failures = 0; failures < 16; failures++) await expectDelay(5 * 2 ** failures);
  await expectDelay(300_000);
  await expectDelay(300_000);
  queue.forget('a');
  await expectDelay(5);
});

test('retries are spread by 20 % both ways', async () => {
  const { queue, clock } = make({ random: () => 0 });
  queue.addRateLimited('a');
  await clock.advance(3.9);
  expect(queue.depth).toBe(0);
  await clock.advance(0.1);
  expect(queue.depth).toBe(1);
});

test('shutdown lets waiting workers go', async () => {
  const { queue } = make();
  const worker = queue.get();
  await queue.shutdown({ drain: false });
  expect(await worker).toBeUndefined();
});

test('shutdown with drain hands out what waits, and resolves after the last done', async () => {
  const { queue } = make();
  queue.add('a');
  queue.add('b');
  let over = false;
  const end = queue.shutdown({ drain: true }).then(() => {
    over = true;
  });
  queue.add('too late');
  expect(await queue.get()).toBe('a');
  queue.done('a');
  expect(await queue.get()).toBe('b');
  await Promise.resolve();
  expect(over).toBe(false);
  queue.done('b');
  await end;
  expect(await queue.get()).toBeUndefined();
});

test('shutdown without drain drops what waits', async () => {
  const { queue } = make();
  queue.add('a');
  await queue.shutdown({ drain: false });
  expect(await queue.get()).toBeUndefined();
});

type Step =
  | { do: 'add' | 'addInitial' | 'addRateLimited' | 'finish' | 'forget'; key: string }
  | { do: 'addAfter'; key: string; ms: number }
  | { do: 'wait'; ms: number };

const key = fc.constantFrom('a', 'b', 'c', 'd');
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constantFrom('add' as const, 'addInitial' as const, 'addRateLimited' as const, 'finish' as const, 'forget' as const),
    key,
  }),
  fc.record({ do: fc.constant('addAfter' as const), key, ms: fc.integer({ min: -1, max: 50 }) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 40 }) }),
);

test('no sequence of calls gives one key to two workers or loses an add', async () => {
  await assertProperty(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), async (steps, workers) => {
      const { queue, clock } = make();
      const inHand = new Set<string>();
      const finish = new Map<string, () => void>();
      /** Number of the add by key, and of the newest add that a worker has begun after. */
      const added = new Map<string, number>();
      const served = new Map<string, number>();
      const worker = async (): Promise<void> => {
        for (let taken = await queue.get(); taken !== undefined; taken = await queue.get()) {
          expect(inHand.has(taken)).toBe(false);
          inHand.add(taken);
          served.set(taken, added.get(taken) ?? 0);
          await new Promise<void>((resolve) => finish.set(taken ?? '', resolve));
          inHand.delete(taken);
          queue.done(taken);
        }
      };
      const running = Array.from({ length: workers }, worker);
      const count = (name: string): void => void added.set(name, (added.get(name) ?? 0) + 1);
      for (const action of steps) {
        switch (action.do) {
          case 'add':
            count(action.key);
            queue.add(action.key);
            break;
          case 'addInitial':
            count(action.key);
            queue.add(action.key, 'initial');
            break;
          case 'addRateLimited':
            count(action.key);
            queue.addRateLimited(action.key);
            break;
          case 'addAfter':
            count(action.key);
            queue.addAfter(action.key, action.ms);
            break;
          case 'forget':
            queue.forget(action.key);
            break;
          case 'finish':
            finish.get(action.key)?.();
            break;
          case 'wait':
            await clock.advance(action.ms);
            break;
        }
        await Promise.resolve();
      }
      for (let i = 0; i < 1000 && (inHand.size > 0 || !queue.isIdle || clock.pending > 0); i++) {
        for (const end of finish.values()) end();
        await clock.advance(60_000);
      }
      for (const [name, number] of added) expect(served.get(name)).toBe(number);
      await queue.shutdown({ drain: true });
      await Promise.all(running);
    }),
    150,
  );
});

test('namespaces are served in turn, each in the order in which its keys were added', async () => {
  const { queue } = make();
  for (let i = 0; i < 1000; i++) queue.add(`many/${i}`);
  for (const key of ['few/a', 'few/b', 'organization']) queue.add(key);
  const served: (string | undefined)[] = [];
  for (let i = 0; i < 6; i++) served.push(await queue.get());
  expect(served).toEqual(['many/0', 'few/a', 'organization', 'many/1', 'few/b', 'many/2']);
  // A key that comes back stands behind the others of its namespace.
  queue.add('many/0');
  queue.done('many/0');
  queue.add('few/a');
  queue.done('few/a');
  expect([await queue.get(), await queue.get(), await queue.get()]).toEqual(['many/3', 'few/a', 'many/4']);
});

test('a listed key that changes takes its namespace no turn among the listed ones', async () => {
  const { queue } = make();
  for (const key of ['one/a', 'one/b', 'two/a', 'two/b']) queue.add(key, 'initial');
  queue.add('one/a');
  const served: (string | undefined)[] = [];
  for (let i = 0; i < 4; i++) served.push(await queue.get());
  expect(served).toEqual(['one/a', 'one/b', 'two/a', 'two/b']);
});
