import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const root = new URL('..', import.meta.url).pathname;
/** Words with which no sentence begins that has its subject first. */
const withoutSubject =
  /^(?:is|are|has|have|does|do|was|were|can|cannot|may|must|of|that|whose|which|and|nor|takes|gives|goes|keeps|knows|refuses|says|loses|delivers|leaves|it|one (?:that|whose)|who|whoever|those|these)\b/;

test('a title of a test that is in no describe begins with its subject', () => {
  const files = globSync('{src,test}/**/*.test.{ts,tsx}', { cwd: root });
  expect(files.length).toBeGreaterThan(500);
  const found = files.flatMap((file) => titlesOf(readFileSync(join(root, file), 'utf8')).map((title) => `${file}: ${title}`));
  expect(found.length).toBeGreaterThan(1000);
  expect(found.filter((each) => withoutSubject.test(each.slice(each.indexOf(': ') + 2)))).toEqual([]);
});

/** Titles of the tests that begin in the first column, with those of tables. */
function titlesOf(text: string): string[] {
  let block = '';
  return text.split('\n').flatMap((line) => {
    block = /^\(?(test|describe|\w+)/.exec(line)?.[1] ?? block;
    const [, , title] = /^(?:test(?:\.\w+)*|\]\))\((['"`])(.+?)\1,/.exec(line) ?? [];
    return block === 'test' && title !== undefined ? [title] : [];
  });
}
