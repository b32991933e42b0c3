import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from '@jest/globals';
import { expandScript } from './script-text.ts';

/** Writes the files into a folder of their own, and returns the URL of the first and the folder. */
function written(files: Record<string, string>): { script: URL; folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-script-text-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return { script: pathToFileURL(join(folder, Object.keys(files)[0] ?? '')), folder };
}

const textOf = (script: URL): string =>
  expandScript(script)
    .map((part) => part.text)
    .join('');

test('an include that several files need is taken once, before all of them', () => {
  const { script } = written({
    'script.lua': '#!lua\n-- @include "left.lua"\n-- @include "right.lua"\nreturn left() + right()\n',
    'right.lua': '-- @include "base.lua"\nlocal function right() return base end\n',
    'left.lua': '-- @include "base.lua"\nlocal function left() return base end\n',
    'base.lua': 'local base = 1\n',
  });
  expect(textOf(script)).toBe(
    '#!lua\nlocal base = 1\nlocal function left() return base end\nlocal function right() return base end\nreturn left() + right()\n',
  );
});

test('a field of a hash represents the short name in the table, in a script and in an include that scripts share', () => {
  const { script, folder } = written({
    'script.lua': '-- @include "base.lua"\nreturn { redis.call(\'HGET\', key, F.target.circuit_state), base[F.target.route] }\n',
    'base.lua': 'local key = KEYS[1]\nlocal base = { [F.target.route] = SELF.target.route }\n',
  });
  const other = pathToFileURL(join(folder, 'other.lua'));
  writeFileSync(other, '-- @include "base.lua"\nreturn base, key\n');
  const tables = { target: { circuitState: 'cs', route: 'r' } };
  const [base, text] = expandScript(script, tables);
  expect(base?.text).toBe("local key = KEYS[1]\nlocal base = { ['r'] = SELF.target.route }\n");
  expect(text?.text).toBe("return { redis.call('HGET', key, 'cs'), base['r'] }\n");
  expect(expandScript(other, tables)[0]).toBe(base);
  expect(expandScript(script, { target: { circuitState: 'c', route: 't' } })[0]?.text).toContain("['t']");
});

test.each([
  ['of a word that the table does not have', { target: { route: 'r' } }],
  ['of a hash without a table', {}],
  ['of a script that is loaded without tables', undefined],
])('a field %s is reported with file and line', (_, tables) => {
  const { script } = written({
    'script.lua': '-- @include "base.lua"\nreturn base\n',
    'base.lua': '\nlocal base = F.target.state\n',
  });
  expect(() => expandScript(script, tables)).toThrow(/\/base\.lua:2: no table of fields has F\.target\.state$/);
});

test('each piece of an expanded script says its file and line', () => {
  const { script } = written({
    'script.lua': '#!lua\n-- @include "base.lua"\nreturn base\n',
    'base.lua': '-- @include "deep.lua"\nlocal base = deep',
    'deep.lua': 'local deep = 1\n',
  });
  expect(expandScript(script).map(({ file, line, text }) => [file.pathname.split('/').at(-1), line, text])).toEqual([
    ['script.lua', 1, '#!lua\n'],
    ['deep.lua', 1, 'local deep = 1\n'],
    ['base.lua', 2, 'local base = deep\n'],
    ['script.lua', 3, 'return base\n'],
  ]);
});

test('a script is read once per process, and so are its includes', () => {
  const { script, folder } = written({ 'script.lua': '-- @include "base.lua"\nreturn base\n', 'base.lua': 'local base = 1\n' });
  const other = pathToFileURL(join(folder, 'other.lua'));
  writeFileSync(other, '-- @include "base.lua"\nreturn -base\n');
  expandScript(script);
  writeFileSync(join(folder, 'base.lua'), 'local base = 2\n');
  expect(expandScript(script)).toBe(expandScript(new URL(script.href)));
  expect(textOf(other)).toBe('local base = 1\nreturn -base\n');
});

test.each([
  [
    'a missing include',
    { 'script.lua': '#!lua\n-- @include "base.lua"\n', 'base.lua': '\n-- @include "none.lua"\n' },
    'base.lua:2: cannot read the include <folder>/none.lua',
  ],
  [
    'a circular include',
    {
      'script.lua': '-- @include "base.lua"\n',
      'base.lua': '-- @include "deep.lua"\n',
      'deep.lua': '--\n--\n-- @include "base.lua"\n',
    },
    'deep.lua:3: circular include: base.lua → deep.lua → base.lua',
  ],
  [
    'a script that includes itself',
    { 'script.lua': '-- @include "script.lua"\n' },
    'script.lua:1: circular include: script.lua → script.lua',
  ],
  [
    'an include in another form',
    { 'script.lua': "\n--@include 'base.lua'\n", 'base.lua': '' },
    'script.lua:2: an include reads: -- @include "<file>"',
  ],
])('%s is an error with file and line', (_, files, message) => {
  const { script, folder } = written(files);
  const expected = `${folder}/${message.replace('<folder>', folder)}`;
  expect(() => expandScript(script)).toThrow(expected);
  // And again: what could not be read is not kept.
  expect(() => expandScript(script)).toThrow(expected);
});

test('a script that is missing is an error with its path', () => {
  const { script } = written({ 'script.lua': '' });
  expect(() => expandScript(new URL('none.lua', script))).toThrow('none.lua');
});
