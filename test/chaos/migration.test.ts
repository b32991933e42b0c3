import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { migrateStore, migrationSteps } from '../../src/cmd/migrate.ts';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { agreeOnShards } from '../../src/data/membership/shard-count.ts';
import { storeLayout } from '../../src/data/registry/store-layout.ts';
import { commandConnection, type RedisClient } from '../../src/redis/connection.ts';
import { fetchProgrammed } from '../support/api-writes.ts';
import { eventually } from '../support/eventually.ts';
import { forms, fromOlderLayout, makeOlder } from '../support/older-layout.ts';
import { type Standalone, startStandalone } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { sendEvent } from '../support/send-event.ts';

const prefix = 'posthorn:';
let directory: string;
let standalone: Standalone;
let receiver: Receiver;
let redis: RedisClient;
/** The first attempt of each event fails. */
const attempts = new Map<number, number>();
const successes = new Map<number, number>();

async function create(path: string, body: object): Promise<string> {
  const headers = { 'x-api-key': standalone.key, 'content-type': 'application/json' };
  const response = await fetchProgrammed(`${standalone.url}/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (response.status !== 201) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { id: string }).id;
}

const send = (number: number): Promise<void> => sendEvent(`${standalone.url}/ingest/default/orders`, number, JSON.stringify({ number }));

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-migration-'));
  receiver = await startReceiver((response, _, { body }) => {
    const { number } = JSON.parse(body.toString()) as { number: number };
    const attempt = (attempts.get(number) ?? 0) + 1;
    attempts.set(number, attempt);
    if (attempt > 1) successes.set(number, (successes.get(number) ?? 0) + 1);
    response.statusCode = attempt > 1 ? 204 : 503;
    response.end();
  });
  standalone = await startStandalone({ environment: { POSTHORN_DATA_DIR: directory } });
  redis = commandConnection(join(directory, 'redis/redis.sock'), { name: 'test' });
  await redis.connect();
  const sourceId = await create('sources', { name: 'Orders', provider: 'generic', dedupStrategy: 'idempotency_key' });
  // Longer than a slow machine takes to bring all into the older layout.
  const retryPolicy = { maxRetries: 25, initialDelay: 30_000, maxDelay: 30_000, backoffMultiplier: 1 };
  const id = await create('destinations', { name: 'Shop', url: receiver.url, retryPolicy });
  await create('routes', { name: 'All', sourceId, destinationIds: [id], circuitFailureThreshold: 100 });
}, 180_000);
afterAll(async () => {
  redis?.disconnect();
  await standalone?.stop();
  await receiver?.close();
  rmSync(directory, { recursive: true, force: true });
});

test('A store in an older layout is migrated while the program takes events and retries what has failed; each is delivered once', async () => {
  for (let number = 0; number < 30; number++) await send(number);
  const store = { redis, prefix, shards: await agreeOnShards({ redis, prefix, known: 0 }) };
  await makeOlder(store, storeLayout - 1);
  const older = (await forms(store)).older;
  expect(older).toBe(30);
  // The program works with the older layout as it is.
  await send(30);

  const lines: string[] = [];
  const [code] = await Promise.all([
    migrateStore({ redis, prefix }, [...migrationSteps, fromOlderLayout], (line) => void lines.push(line)),
    (async () => {
      for (let number = 31; number < 60; number++) await send(number);
    })(),
  ]);
  expect([code, lines.at(-2), lines.at(-1)]).toEqual([
    0,
    '30 messages brought from the older layout',
    `everything is in layout ${storeLayout}`,
  ]);
  expect(await forms(store)).toEqual({ older: 0, newer: 30 });

  await eventually('all that was accepted to arrive', 120_000, () => successes.size === 60);
  await eventually('all messages to be settled', 60_000, async () => (await checkShards(store)).unfinished === 0);
  expect([...successes].filter(([, times]) => times !== 1)).toEqual([]);
  expect((await checkShards(store)).findings).toEqual([]);
  expect(await forms(store)).toEqual({ older: 0, newer: 30 });
}, 240_000);
