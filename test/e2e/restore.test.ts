import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { commandConnection } from '../../src/redis/connection.ts';
import { eventually } from '../support/eventually.ts';
import { type Standalone, startProgram, startStandalone } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { sendEvent } from '../support/send-event.ts';
import { spawnServer } from '../support/server-process.ts';
import { RestClient } from './rest.ts';

const key = `ph_${'k'.repeat(40)}`;
const run = promisify(execFile);
const withoutFile = ['--save', '', '--appendonly', 'no'];
const withFile = ['--save', '', '--appendonly', 'yes'];

/** One way to save and restore, as docs/backup.md describes it. `data` is the directory of Redis. */
interface Way {
  args: readonly string[];
  save(redis: RedisServer, data: string, backup: string): Promise<void>;
  /** Redis is down and its directory empty. */
  restore(data: string, backup: string): Promise<void>;
}

const saveRdb: Way['save'] = async ({ port }, _, backup) => {
  await run('redis-cli', ['-p', String(port), '--rdb', join(backup, 'dump.rdb')]);
};
const copyRdb: Way['restore'] = async (data, backup) => cpSync(join(backup, 'dump.rdb'), join(data, 'dump.rdb'));

const ways: Record<string, Way> = {
  'an RDB file, without an append-only file': { args: withoutFile, save: saveRdb, restore: copyRdb },
  'an RDB file, from which the append-only file is made': {
    args: withFile,
    save: saveRdb,
    restore: async (data, backup) => {
      await copyRdb(data, backup);
      const socket = join(data, 'restore.sock');
      const server = spawnServer('redis-server', ['--port', '0', '--unixsocket', socket, '--dir', data, ...withoutFile], data);
      const redis = commandConnection(socket);
      redis.on('error', () => {});
      await eventually(() => redis.ping());
      await redis.config('SET', 'appendonly', 'yes');
      await eventually(async () => {
        const info = await redis.info('persistence');
        expect(info).toMatch(/aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/);
        expect(info).toMatch(/aof_last_bgrewrite_status:ok/);
      });
      redis.disconnect();
      await server.stop('SIGTERM');
    },
  },
  'a copy of the append-only files': {
    args: withFile,
    save: async ({ client }, data, backup) => {
      await client.config('SET', 'auto-aof-rewrite-percentage', '0');
      cpSync(join(data, 'appendonlydir'), join(backup, 'appendonlydir'), { recursive: true });
      await client.config('SET', 'auto-aof-rewrite-percentage', '100');
    },
    restore: async (data, backup) => cpSync(join(backup, 'appendonlydir'), join(data, 'appendonlydir'), { recursive: true }),
  },
};

let folder: string;
let data: string;
let backup: string;
let redis: RedisServer;
let standalone: Standalone | null;
let receiver: Receiver;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'posthorn-restore-'));
  [data = '', backup = ''] = ['data-', 'backup-'].map((name) => mkdtempSync(join(folder, name)));
  receiver = await startReceiver();
});
afterEach(async () => {
  await standalone?.stop();
  await receiver.close();
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const environment = (): Record<string, string> => ({
  POSTHORN_REDIS_URL: redis.url,
  POSTHORN_DATA_DIR: join(folder, 'standalone'),
  POSTHORN_API_KEY: key,
});
const start = async (): Promise<RestClient> => {
  standalone = await startStandalone({ environment: environment() });
  return new RestClient(standalone.url, key);
};

const send = (n: number): Promise<void> => sendEvent(`${standalone?.url}/ingest/default/orders`, n, JSON.stringify({ n }));

/** The ids of messages by what they hold. */
function arrived(): Map<number, string[]> {
  const ids = new Map<number, string[]>();
  for (const { body, headers } of receiver.requests) {
    const { n } = JSON.parse(body.toString());
    ids.set(n, [...(ids.get(n) ?? []), String(headers['webhook-id'])]);
  }
  return ids;
}

test.each(Object.keys(ways))(
  'everything that was acknowledged before the backup is delivered after its restore with %s',
  async (name) => {
    const way = ways[name] as Way;
    redis = await startRedis([...way.args, '--dir', data]);
    let rest = await start();
    await rest.send('POST', '/api/sources', { name: 'Orders', dedupStrategy: 'idempotency_key' });
    await rest.send('POST', '/api/destinations', { name: 'Shop', url: receiver.url, isActive: false });
    await rest.send('POST', '/api/routes', { name: 'All', sourceId: 'orders', destinationIds: ['shop'] });
    for (let n = 0; n < 60; n++) await send(n);
    // The program runs on while the backup is made.
    const saved = way.save(redis, data, backup);
    for (let n = 60; n < 80; n++) await send(n);
    await saved;
    await rest.send('PATCH', '/api/destinations/shop', { isActive: true });
    await eventually(() => expect(arrived().size).toBe(80), 60_000);
    const before = arrived();

    await standalone?.program.stop();
    await redis.kill('SIGKILL');
    for (const file of readdirSync(data)) rmSync(join(data, file), { recursive: true });
    await way.restore(data, backup);
    receiver.requests.length = 0;
    await redis.start();

    rest = await start();
    expect((await rest.send('GET', '/api/destinations/shop')).body.isActive).toBe(false);
    await rest.send('PATCH', '/api/destinations/shop', { isActive: true });
    await send(1000);
    await eventually(() => {
      const after = arrived();
      for (let n = 0; n < 60; n++) expect([n, after.get(n)]).toEqual([n, before.get(n)]);
      expect(after.get(1000)).toHaveLength(1);
    }, 60_000);

    const check = startProgram(['check'], environment());
    expect(await check.ended).toBe(0);
  },
  240_000,
);

test('an RDB file alone is not read by a Redis with an append-only file', async () => {
  redis = await startRedis([...withFile, '--dir', data]);
  await redis.client.set('kept', '1');
  await saveRdb(redis, data, backup);
  await redis.kill('SIGKILL');
  for (const file of readdirSync(data)) rmSync(join(data, file), { recursive: true });
  await copyRdb(data, backup);
  await redis.start();
  expect(existsSync(join(data, 'dump.rdb'))).toBe(true);
  // The client connects again by itself.
  await eventually(async () => expect(await redis.client.exists('kept')).toBe(0));
});
