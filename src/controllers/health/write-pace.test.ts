import { expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { WritePace } from './write-pace.ts';

const { signal } = new AbortController();

test('fifty writes that are due at once begin at once and end within five seconds, ten in each second', async () => {
  const clock = new FakeClock();
  const pace = new WritePace(clock);
  const startedAtMs = clock.now();
  const turns: number[] = [];
  for (let i = 0; i < 50; i++) void pace.turn(0, signal).then(() => turns.push(clock.now() - startedAtMs));
  await clock.advance(5000);
  expect(turns).toEqual(Array.from({ length: 50 }, (_, i) => i * 100));
});

test('a pause saves up no turns', async () => {
  const clock = new FakeClock();
  const pace = new WritePace(clock);
  await pace.turn(0, signal);
  await clock.advance(60_000);
  const startedAtMs = clock.now();
  const turns: number[] = [];
  for (let i = 0; i < 3; i++) void pace.turn(0, signal).then(() => turns.push(clock.now() - startedAtMs));
  await clock.advance(1000);
  expect(turns).toEqual([0, 100, 200]);
});

test('a yielding writer waits for others, but no longer than its limit', async () => {
  const clock = new FakeClock();
  const pace = new WritePace(clock);
  const order: string[] = [];
  const keepComing = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) {
      await pace.turn(0, signal);
      order.push('urgent');
    }
  };
  void keepComing();
  void pace.turn(1000, signal).then(() => order.push('yielding'));
  await clock.advance(5000);
  expect(order).toHaveLength(21);
  expect(order.indexOf('yielding')).toBeGreaterThanOrEqual(10);
  expect(order.indexOf('yielding')).toBeLessThanOrEqual(12);
});

test('nobody waits for a turn once it is over', async () => {
  const clock = new FakeClock();
  const pace = new WritePace(clock);
  const end = new AbortController();
  const turns = Array.from({ length: 30 }, () => pace.turn(0, end.signal));
  end.abort();
  await Promise.all(turns);
  expect(clock.pending).toBe(0);
});
