import { expect, test } from '@jest/globals';
import { lines } from './watch-lines.ts';

async function* chunks(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

async function read(source: AsyncIterable<Buffer>, maxBytes = 100): Promise<string[]> {
  const all: string[] = [];
  for await (const line of lines(source, maxBytes)) all.push(line);
  return all;
}

test('lines come out whole, however they are cut into chunks', async () => {
  expect(await read(chunks('on', 'e\ntwo\nth', '', 'ree\n'))).toEqual(['one', 'two', 'three']);
});

test('a character that is cut in two is put together', async () => {
  const bytes = Buffer.from('ü\n');
  async function* cut(): AsyncGenerator<Buffer> {
    yield bytes.subarray(0, 1);
    yield bytes.subarray(1);
  }
  expect(await read(cut())).toEqual(['ü']);
});

test('the rest of a torn stream is dropped', async () => {
  expect(await read(chunks('one\ntw'))).toEqual(['one']);
});

test('a line above the limit is refused before it is whole', async () => {
  await expect(read(chunks('x'.repeat(60), 'x'.repeat(60)))).rejects.toMatchObject({ code: 'INTERNAL' });
});
