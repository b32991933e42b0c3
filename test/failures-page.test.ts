import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { Failure } from './e2e/failure.ts';
import { groups } from './e2e/failure-groups.ts';

/** In the order of the columns. */
const columns = ['kubectl', 'helm', 'readyz', 'metrics', 'alerts', 'api', 'console'] as const satisfies (keyof Failure)[];
const failures = new Map(groups.flatMap((group) => Object.entries(group)));
const rows = new Map(
  readFileSync(new URL('../docs/failures.md', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.slice(2, -2).split(' | '))
    .filter(([title]) => title !== 'failure')
    .map(([title = '', ...cells]) => [title, cells] as const),
);
const quoted = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, name = '']) => name).sort();

test('the suite of the cluster makes each failure of the page, and no other', () => {
  expect([...failures.keys()].sort()).toEqual([...rows.keys()].sort());
  expect(groups.flatMap((group) => Object.keys(group))).toHaveLength(rows.size);
});

test.each([...rows])('%s: each cell of the row has a check, with the metrics and alerts that it names', (title, cells) => {
  const failure = failures.get(title);
  expect(cells).toHaveLength(columns.length);
  for (const [i, column] of columns.entries()) {
    const cell = cells[i] ?? '';
    expect([column, failure?.[column] === undefined]).toEqual([column, cell === '–']);
    if (column === 'helm') expect(failure?.helm === 'nothing').toBe(cell === 'nothing');
    if (column === 'metrics') expect((failure?.metrics ?? []).map(({ name }) => name).sort()).toEqual(quoted(cell, /`(posthorn_\w+)/g));
    if (column === 'alerts') expect([...(failure?.alerts ?? [])].sort()).toEqual(quoted(cell, /`(Posthorn\w+)`/g));
  }
});
