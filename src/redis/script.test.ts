import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { namedArgument, Script } from './script.ts';
import { expandScript, scriptText } from './script-text.ts';

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
  const many = (name: string): string => Array.from({ length: 20 }, (_, i) => `local ${name}${i} = ${i}\n`).join('');
  writeFileSync(join(folder, 'a.lua'), many('a'));
  writeFileSync(join(folder, 'b.lua'), `${many('b')}local function sum()\n  return a19 + b18\nend\n`);
  const file = join(folder, 'script.lua');
  const body = "if ARGV[1] == 'early' then\n  return 'early'\nelseif ARGV[1] == 'error' then\n  error('broken')\nend\nreturn sum() -- 37\n";
  writeFileSync(file, `#!lua flags=no-writes\n-- @include "a.lua"\n-- @include "b.lua"\n${body}`);
  const script = new Script(pathToFileURL(file));
  expect(scriptText(expandScript(pathToFileURL(file))).match(/return \(function\(\)/g)).toHaveLength(2);
  expect(await script.run(redis.client, [], ['early'])).toBe('early');
  expect(await script.run(redis.client, [], ['end'])).toBe(37);
  await expect(script.run(redis.client, [], ['error'])).rejects.toThrow(/user_script:48: broken/);
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
