import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { Script } from './script.ts';

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
