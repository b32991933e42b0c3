import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const root = new URL('../', import.meta.url);

test('each test that the table of shares names is there', () => {
  const named = readFileSync(new URL('docs/shares.md', root), 'utf8').match(/`[\w/.-]+\.test\.ts`/g) ?? [];
  expect(named.length).toBeGreaterThan(10);
  expect(named.map((each) => each.slice(1, -1)).filter((file) => !existsSync(new URL(file, root)))).toEqual([]);
});
