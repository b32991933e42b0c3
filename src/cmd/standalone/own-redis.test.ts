import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { commandConnection } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { OwnRedis } from './own-redis.ts';

/** Two writes of one script, and how often it has run. */
const script = `return { redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2]) }`;
const lastWriteBytes = '*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n'.length;
const execBytes = '*1\r\n$4\r\nEXEC\r\n'.length;

let directory: string;
let logged: string;
let redis: OwnRedis;
let stopping: AbortController;
let running: Promise<unknown>;
let client: ReturnType<typeof commandConnection>;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-own-redis-'));
  logged = '';
  const write = (line: string): void => {
    logged += line;
  };
  redis = new OwnRedis(directory, { clock: systemClock, logger: pino({ level: 'warn' }, { write }) });
  client = commandConnection(redis.url, { commandTimeoutMs: 10_000 });
  client.on('error', () => {});
  start();
  expect(await redis.waitUntilUp(stopping.signal)).toBe(true);
  await client.connect();
});
afterEach(async () => {
  if (client.status !== 'end') client.disconnect();
  stopping.abort();
  await running;
  rmSync(directory, { recursive: true, force: true });
});

function start(): void {
  stopping = new AbortController();
  running = redis.run(stopping.signal).catch((error: unknown) => error);
}

/** As soon as Redis can be reached. */
const runScript = (): Promise<unknown> => eventually('the script to run', 30_000, () => client.eval(script, 2, 'a', 'b').then(() => true));
const counts = (): Promise<unknown> => eventually('the counts', 30_000, () => client.mget('a', 'b'));

async function kill(): Promise<void> {
  const pid = Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
  // Every write before this one is in the file then, also where the disk is slow.
  await client.config('SET', 'appendfsync', 'always');
  process.kill(pid, 'SIGKILL');
  expect(await running).toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining('SIGKILL') });
}

/** Rest of the last file after an aborted write. */
function cut(bytes: number): void {
  const files = join(directory, 'redis', 'appendonlydir');
  const manifest = readFileSync(join(files, 'appendonly.aof.manifest'), 'utf8').trimEnd().split('\n');
  const last = join(files, manifest.at(-1)?.split(' ')[1] ?? '');
  truncateSync(last, statSync(last).size - bytes);
}

test.each([
  ['in the end of the script', 3],
  ['between the last command and the end of the script', execBytes],
  ['in the last command', execBytes + 2],
  ['in the first command', execBytes + lastWriteBytes + 2],
])('a write cut off %s is never applied, although Redis is killed twice', async (_, bytes) => {
  await runScript();
  await runScript();
  await kill();
  cut(bytes);
  start();
  // Clients that wait for Redis write as soon as they can.
  await runScript();
  expect(await counts()).toEqual(['2', '2']);
  await kill();
  start();
  expect(await counts()).toEqual(['2', '2']);
  expect(logged.match(/killed in the middle of a write/g) ?? []).toHaveLength(bytes === execBytes ? 0 : 1);
});

test('a Redis that was killed between two writes starts once', async () => {
  await runScript();
  await kill();
  start();
  expect(await counts()).toEqual(['1', '1']);
  const log = readFileSync(join(directory, 'redis', 'redis.log'), 'utf8');
  expect(log.match(/ready to accept connections/gi)).toHaveLength(2);
  expect(logged).toBe('');
});

test('a Redis whose file was damaged in the middle does not start, and its file stays as it is', async () => {
  for (let i = 0; i < 3; i++) await runScript();
  await kill();
  const files = join(directory, 'redis', 'appendonlydir');
  const file = join(files, 'appendonly.aof.1.incr.aof');
  const damaged = readFileSync(file, 'latin1').replace('*2\r\n$4\r\nINCR', '*2\r\n?4\r\nINCR');
  writeFileSync(file, damaged, 'latin1');
  start();
  expect(await running).toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining('Bad file format') });
  expect(readFileSync(file, 'latin1')).toBe(damaged);
});

test('a redis-server that a killed standalone left behind while it started is stopped', async () => {
  const pid = Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
  client.disconnect();
  renameSync(redis.url, join(directory, 'redis', 'start.sock'));
  await new OwnRedis(directory, { clock: systemClock, logger: silentLogger }).takeOver();
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  expect(await running).toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining('stopped with 0') });
});

test('a Redis that is stopped leaves no socket', async () => {
  client.disconnect();
  stopping.abort();
  expect(await running).toBeUndefined();
  expect(await new OwnRedis(directory, { clock: systemClock, logger: silentLogger }).waitUntilUp(AbortSignal.timeout(100))).toBe(false);
  for (const name of ['redis.sock', 'start.sock']) expect(() => statSync(join(directory, 'redis', name))).toThrow('ENOENT');
});

test.each([
  ['256 MB', {}, 256],
  ['GB where payloads may be above 1 MiB', { takesLargePayloads: true }, 1024],
])('the append-only file is rewritten for every %s', async (_what, options, mebibytes) => {
  client.disconnect();
  stopping.abort();
  await running;
  redis = new OwnRedis(directory, { clock: systemClock, logger: silentLogger, ...options });
  start();
  expect(await redis.waitUntilUp(stopping.signal)).toBe(true);
  const again = commandConnection(redis.url);
  await again.connect();
  expect(await again.config('GET', 'auto-aof-rewrite-min-size')).toEqual(['auto-aof-rewrite-min-size', String(mebibytes * 1_048_576)]);
  again.disconnect();
});
