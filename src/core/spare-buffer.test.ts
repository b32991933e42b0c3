import { expect, test } from '@jest/globals';
import { SpareBuffer } from './spare-buffer.ts';

const mebibyte = 1_048_576;

test('the memory that was given back is that of the next buffer which is not larger', () => {
  const spare = new SpareBuffer();
  const first = spare.take(25 * mebibyte);
  const beside = spare.take(25 * mebibyte);
  expect(beside.buffer).not.toBe(first.buffer);
  spare.giveBack(first);
  expect(spare.take(32 * mebibyte).buffer).not.toBe(first.buffer);
  expect(spare.take(2 * mebibyte).buffer).toBe(first.buffer);
  expect(spare.take(2 * mebibyte).buffer).not.toBe(first.buffer);
});

test('of several that were given back the largest is kept, and the memory of the others is free', () => {
  const spare = new SpareBuffer();
  const buffers = [4, 32, 8].map((mebibytes) => spare.take(mebibytes * mebibyte));
  for (const buffer of buffers) spare.giveBack(buffer);
  expect(buffers.map(({ length }) => length / mebibyte)).toEqual([0, 32, 0]);
});
