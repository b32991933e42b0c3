import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { field } from './support/redis-fields.ts';

const root = new URL('..', import.meta.url).pathname;
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8');

test('every field of a hash that suites may use is one that a script names, and none has two words', () => {
  const scripts = globSync('src/data/**/*.lua', { cwd: root }).map(textOf).join('\n');
  for (const [hash, letters] of Object.entries(field)) {
    const names = Object.values(letters);
    expect([hash, names.filter((name) => !scripts.includes(`'${name}'`))]).toEqual([hash, []]);
    expect([hash, names.length]).toEqual([hash, new Set(names).size]);
  }
});

test('no suite says the letters of a field itself', () => {
  // A hash of external ids, `ax`, has no letters.
  const raw = /\.h(?:get|set|del|exists|incrby|mget)\((?:`(?:[^`](?!ax`))*`|[\w.]+), '[a-z]{1,2}'.*/g;
  const files = globSync('{src,test}/**/*.ts', { cwd: root }).filter((file) => file.startsWith('test/') || file.endsWith('.test.ts'));
  expect(files.length).toBeGreaterThan(300);
  expect(files.flatMap((file) => [...textOf(file).matchAll(raw)].map(([found]) => `${file}: ${found}`))).toEqual([]);
});
