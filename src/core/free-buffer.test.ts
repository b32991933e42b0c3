import { expect, test } from '@jest/globals';
import { freeBuffer } from './free-buffer.ts';

const mebibyte = 1_048_576;

test('a buffer that is freed is empty, and so is every view of it', () => {
  const buffer = Buffer.allocUnsafeSlow(32 * mebibyte);
  const view = buffer.subarray(5, 10);
  const before = process.memoryUsage().arrayBuffers;
  freeBuffer(buffer);
  expect([buffer.length, view.length]).toEqual([0, 0]);
  expect(before - process.memoryUsage().arrayBuffers).toBeGreaterThanOrEqual(32 * mebibyte);
});

test('a buffer that shares its memory with others stays as it is', () => {
  const whole = Buffer.from('what came in one piece, more than once');
  const part = whole.subarray(0, 4);
  for (const each of [part, Buffer.from('of the pool')]) freeBuffer(each);
  expect([String(part), String(whole)]).toEqual(['what', 'what came in one piece, more than once']);
});
