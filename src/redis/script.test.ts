import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { namedArgument, Script } from './script.ts';
import { scriptText } from './script-layout.ts';
import { expandScript } from './script-text.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('a script runs on a server that has not seen it, and again after the server forgot it', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'posthorn-script-')), 'sum.lua');
  writeFileSync(file, 'return {KEYS[1], ARGV[1] + ARGV[2]}');
  const script = new Script(pathToFileURL(file));
  expect(await script.run(redis.client, ['k'], [1, 2])).toEqual(['k', 3]);
  await redis.client.script('FLUSH');
  expect(await script.runBuffer(redis.client, ['k'], [2, 2])).toEqual([Buffer.from('k'), 4]);
});

test('Redis keeps no comments and no indentation of a script, and errors name the lines of the file', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'posthorn-script-')), 'lines.lua');
  writeFileSync(
    file,
    "#!lua flags=no-writes\n-- A comment.\nlocal text = ' -- kept'\n  -- Another one.\n  if ARGV[1] == 'text' then\n    return text\n  end\nerror('broken')\n",
  );
  const script = new Script(pathToFileURL(file));
  expect(await script.run(redis.client, [], ['text'])).toBe(' -- kept');
  await expect(script.run(redis.client, [], [])).rejects.toThrow(/user_script:8: broken/);
});

test('a script whose includes have many locals runs in functions that are called in place: it returns early or at its end, and errors name its lines', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-script-'));
  const many = (name: string): string => Array.from({ length: 40 }, (_, i) => `local ${name}${i} = ${i}\n`).join('');
  writeFileSync(join(folder, 'a.lua'), many('a'));
  writeFileSync(join(folder, 'b.lua'), `${many('b')}local function sum()\n  return a20 + b17\nend\n`);
  const file = join(folder, 'script.lua');
  const body = "if ARGV[1] == 'early' then\n  return 'early'\nelseif ARGV[1] == 'error' then\n  error('broken')\nend\nreturn sum() -- 37\n";
  writeFileSync(file, `#!lua flags=no-writes\n-- @include "a.lua"\n-- @include "b.lua"\n${body}`);
  const script = new Script(pathToFileURL(file));
  expect(scriptText(expandScript(pathToFileURL(file))).match(/return \(function\(\)/g)).toHaveLength(2);
  expect(await script.run(redis.client, [], ['early'])).toBe('early');
  expect(await script.run(redis.client, [], ['end'])).toBe(37);
  await expect(script.run(redis.client, [], ['error'])).rejects.toThrow(/user_script:88: broken/);
});

test('an include that is created on first use, and what only that includes, is created at the first call of a function or the first access to a table of it, once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-script-'));
  const files = {
    'base.lua': 'local created = {}\nlocal function note(what)\n  created[#created + 1] = what\nend\n',
    'counter.lua':
      '-- @include "base.lua"\nlocal count = 0\nnote(\'counter\')\nlocal function next_number()\n  count = count + 1\n  return count\nend\n',
    'rare.lua':
      '-- @include "counter.lua"\n-- @created-on-first-use\nlocal unit = 10\nlocal function ten_times()\n  return unit * next_number()\nend\nlocal rare\ndo\n  local function value(more)\n    return next_number() + more\n  end\n  rare = { value = value, ten_times = ten_times }\nend\n',
    'user.lua': '-- @include "rare.lua"\nlocal function twice()\n  return ten_times() + ten_times()\nend\n',
    'script.lua': `#!lua flags=no-writes
-- @include "base.lua"
-- @include "rare.lua"
-- @include "user.lua"
local before, kept = rawget(rare, 'value'), ten_times
if ARGV[1] == 'functions' then
  return { twice(), kept(), rare.value(0.5) * 2, #created, tostring(before) }
elseif ARGV[1] == 'tables' then
  rare.mark = 5
  return { rare.mark, rare.value(0), rare.ten_times(), ten_times(), #created, tostring(rawget(rare, 'value') ~= nil) }
elseif ARGV[1] == 'error' then
  error('broken')
end
return #created
`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const script = new Script(pathToFileURL(join(folder, 'script.lua')));
  expect(await script.run(redis.client, [], ['neither'])).toBe(0);
  expect(await script.run(redis.client, [], ['functions'])).toEqual([30, 30, 9, 1, 'nil']);
  expect(await script.run(redis.client, [], ['tables'])).toEqual([5, 1, 20, 30, 1, 'true']);
  await expect(script.run(redis.client, [], ['error'])).rejects.toThrow(/broken/);
});

test('an include that uses itself while it is created on first use is an error', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-script-'));
  const files = {
    'base.lua': 'local hooks = {}\n',
    'rare.lua': '-- @include "base.lua"\n-- @created-on-first-use\nlocal function rare()\n  return 1\nend\nhooks.early()\n',
    'script.lua': '#!lua flags=no-writes\n-- @include "base.lua"\n-- @include "rare.lua"\nhooks.early = rare\nreturn rare()\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const run = new Script(pathToFileURL(join(folder, 'script.lua'))).run(redis.client, [], []);
  await expect(run).rejects.toThrow(/an include is used while it is created/);
});

test('what an include that is created on first use includes is created with the script when that needs it, too', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-script-'));
  const files = {
    'shared.lua': 'local shared = { count = 0 }\n',
    'rare.lua': '-- @include "shared.lua"\n-- @created-on-first-use\nlocal function count()\n  shared.count = shared.count + 1\nend\n',
    'script.lua': '#!lua flags=no-writes\n-- @include "shared.lua"\n-- @include "rare.lua"\ncount()\ncount()\nreturn shared.count\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  expect(await new Script(pathToFileURL(join(folder, 'script.lua'))).run(redis.client, [], [])).toBe(2);
});

test('a script finds the values that it is given by name, and nil for one that is null or undefined', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'posthorn-script-')), 'named.lua');
  const include = new URL('./scripts/includes/json.lua', import.meta.url).pathname;
  const names = [
    'g.cooldown_ms',
    'g.is_paused',
    'g.batch.max_records',
    'g.entries[2].at_ms',
    'g.name',
    '#g.none',
    'g.no_limit',
    'g.no_name',
  ];
  writeFileSync(
    file,
    `-- @include "${include}"\nlocal g = decoded(ARGV[1])\nlocal found = {}\nfor k, v in ipairs({ ${names.map((name) => `tostring(${name})`).join(', ')} }) do\nfound[k] = v\nend\nreturn found\n`,
  );
  const argument = namedArgument({
    cooldownMs: 1_764_460_000_123,
    isPaused: false,
    batch: { maxRecords: 5, noLimit: null },
    entries: [{ atMs: 1 }, { atMs: 2 }],
    name: 'half \ud83d of a pair',
    none: [],
    noLimit: null,
    noName: undefined,
  });
  expect(await new Script(pathToFileURL(file)).run(redis.client, [], [argument])).toEqual([
    '1764460000123',
    'false',
    '5',
    '2',
    'half \ufffd of a pair',
    '0',
    'nil',
    'nil',
  ]);
});
