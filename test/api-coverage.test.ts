import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const root = new URL('../', import.meta.url).pathname;

/** The rows of the table: what is promised, and the tests that show it. */
function rowsOf(page: string): { row: string; shownBy: { file: string; name: string }[]; isMarked: boolean }[] {
  return page.split('\n').flatMap((line) => {
    const [, row, files, names] = /^\| (.+) \| (.*) \| (.*) ?\|$/.exec(line) ?? [];
    if (row === undefined || row === 'row' || row.startsWith('---')) return [];
    const quoted = [...(names ?? '').matchAll(/“(.+?)”(?=<br>|\s*$)/g)].map((match) => match[1] ?? '');
    const paths = [...(files ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
    return [{ row, shownBy: paths.map((file, index) => ({ file, name: quoted[index] ?? '' })), isMarked: files?.trim() === 'not shown' }];
  });
}

const rows = rowsOf(readFileSync(`${root}docs/api-coverage.md`, 'utf8'));

test('the coverage of the API has a row for everything, each with its tests or marked as not shown', () => {
  expect(rows.length).toBeGreaterThan(250);
  expect(rows.filter(({ shownBy, isMarked }) => isMarked === shownBy.length > 0)).toEqual([]);
});

test('every test that the coverage of the API names exists', () => {
  const missing = rows.flatMap(({ row, shownBy }) =>
    shownBy.flatMap(({ file, name }) => (isThere(file, name) ? [] : [`${row}: ${file} has no test “${name}”`])),
  );
  expect(missing).toEqual([]);
});

test('the number of rows that are shown is the one that the page reports', () => {
  const page = readFileSync(`${root}docs/api-coverage.md`, 'utf8');
  expect(page).toContain(`${rows.filter(({ isMarked }) => !isMarked).length} of ${rows.length} rows are shown.`);
});

function isThere(file: string, name: string): boolean {
  if (name === '' || !existsSync(root + file)) return false;
  const text = readFileSync(root + file, 'utf8');
  const escaped = name.replaceAll("'", "\\'");
  return [`'${name}'`, `'${escaped}'`, `"${name}"`, `\`${name}\``].some((quoted) => text.includes(quoted));
}
