import { expect, test } from '@jest/globals';
import { SpareBuffer } from './spare-buffer.ts';

const mebibyte = 1_048_576;

test('the memory that was given back is that of the next buffer of its owner that has as many MiB', () => {
  const spare = new SpareBuffer();
  const first = spare.take('src_a', 25 * mebibyte);
  const beside = spare.take('src_a', 25 * mebibyte);
  expect(beside.buffer).not.toBe(first.buffer);
  spare.giveBack('src_a', first);
  expect(spare.take('src_a', 32 * mebibyte).buffer).not.toBe(first.buffer);
  expect(spare.take('src_a', 2 * mebibyte).buffer).not.toBe(first.buffer);
  expect(spare.take('src_b', 25 * mebibyte).buffer).not.toBe(first.buffer);
  expect(spare.take('src_a', 25 * mebibyte - 1).buffer).toBe(first.buffer);
  expect(spare.take('src_a', 25 * mebibyte).buffer).not.toBe(first.buffer);
});

test('the last one of several buffers that were given back is kept, and the memory of the others is free', () => {
  const spare = new SpareBuffer();
  const buffers = [4, 32, 8].map((mebibytes) => spare.take('src_a', mebibytes * mebibyte));
  for (const buffer of buffers) spare.giveBack('src_a', buffer);
  expect(buffers.map(({ length }) => length / mebibyte)).toEqual([0, 0, 8]);
});
