import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { Readiness } from './readiness.ts';
import { releaseStartMemory } from './start-memory.ts';

test('what only starting needed is collected as soon as everything works, and not before', async () => {
  const readiness = new Readiness(['redis', 'worker']);
  const released = releaseStartMemory(readiness);
  const loaded = new WeakRef({ needed: 'while starting' });
  readiness.set('redis', { ok: true });
  await nextTurn();
  expect(loaded.deref()).toBeDefined();
  await nextTurn();
  readiness.set('worker', { ok: true });
  await released;
  await nextTurn();
  expect(loaded.deref()).toBeUndefined();
});
