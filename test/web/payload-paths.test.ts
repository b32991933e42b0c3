import { expect, test } from '@jest/globals';
import { fieldReader } from '../../src/core/filter-path.ts';
import { jsonLines, pathOf } from '../../src/web/ui/json-lines.ts';

test('a path that the payload viewer copies is one that a filter reads, and names the same value', () => {
  const payload = { items: [{ sku: 'a' }, { "it's": { 'x.y': 1, '': 2, ' z ': 3, 'a"b\\c': 4, 'ü\n': 5, 7: 6 } }], payload: { a: 8 } };
  const text = JSON.stringify(payload);
  const work = jsonLines(text);
  let turn = work.next();
  while (turn.done !== true) turn = work.next();
  const { lines } = turn.value;
  expect(lines.length).toBeGreaterThan(10);
  lines.forEach((line, at) => {
    if (line.kind === 'close') return;
    const path = pathOf(text, lines, at);
    const read = fieldReader(path);
    if (typeof read === 'string') throw new Error(`${path} ${read}`);
    expect([path, read({ payload, headers: {}, query: {} })]).toEqual([path, JSON.parse(text.slice(line.valueStart, line.valueEnd))]);
  });
});
