import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type CrashMoment, crashAtEveryCommand } from '../../test/support/crashing-client.ts';
import { forms, fromOlderLayout, makeOlder } from '../../test/support/older-layout.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { agreeOnShards } from '../data/membership/shard-count.ts';
import { storeLayout } from '../data/registry/store-layout.ts';
import { hashFields } from '../data/shard/hash-fields.ts';
import type { RedisClient } from '../redis/connection.ts';
import { migrateStore, migrationSteps } from './migrate.ts';

const prefix = 'test:';
const shards = 2;
const messages = [`${prefix}{s0}:m:a`, `${prefix}{s0}:m:b`, `${prefix}{s1}:m:c`];
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const store = () => ({ redis: redis.client, prefix, shards });
const layout = () => redis.client.get(`${prefix}{cfg}:layout`);

/** A store whose messages are in the layout before. */
async function prepare(): Promise<void> {
  await redis.client.flushall();
  await agreeOnShards({ redis: redis.client, prefix, known: shards });
  await redis.client.hset(`${prefix}{cfg}:rec:organization`, 'org_a', '{}');
  for (const key of messages) await redis.client.hset(key, hashFields.message.status, 'o');
  await makeOlder(store(), storeLayout - 1);
}

async function migrateWith(client: RedisClient): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = [];
  const steps = [...migrationSteps, fromOlderLayout];
  return { code: await migrateStore({ redis: client, prefix }, steps, (line) => void lines.push(line)), lines };
}

test.each<CrashMoment>(['before', 'after'])(
  'A migration that dies %s any of its commands says nothing that is not so, and the next one does the rest',
  async (moment) => {
    const seen = new Set<string>();
    await crashAtEveryCommand(redis.client, moment, {
      prepare,
      work: migrateWith,
      look: async () => {
        const { older, newer } = await forms(store());
        const said = (await layout()) ?? '';
        seen.add(`${older} older, layout ${said}`);
        expect(older + newer).toBe(messages.length);
        if (said === String(storeLayout)) expect(older).toBe(0);
        const { code, lines } = await migrateWith(redis.client);
        expect([code, lines.at(-2)]).toEqual([0, `${older} messages brought from the older layout`]);
        expect([await forms(store()), await layout()]).toEqual([{ older: 0, newer: messages.length }, String(storeLayout)]);
      },
    });
    for (const older of [0, 1, 2, 3]) expect(seen).toContain(`${older} older, layout ${storeLayout} begun`);
    expect(seen).toContain(`3 older, layout ${storeLayout - 1}`);
  },
  120_000,
);

test('A migration that is repeated finds nothing to do', async () => {
  await prepare();
  expect((await migrateWith(redis.client)).lines).toContain('3 messages brought from the older layout');
  const dump = async () => Promise.all(messages.map((key) => redis.client.hgetall(key)));
  const after = await dump();
  expect((await migrateWith(redis.client)).lines).toContain('0 messages brought from the older layout');
  expect(await dump()).toEqual(after);
});

test('What the steps have done stays without a number as long as the API server has refused an object', async () => {
  await prepare();
  const steps = [...migrationSteps, fromOlderLayout];
  expect(
    await migrateStore(
      { redis: redis.client, prefix },
      steps,
      () => {},
      async () => false,
    ),
  ).toBe(1);
  expect([await forms(store()), await layout()]).toEqual([{ older: 0, newer: 3 }, `${storeLayout} begun`]);
});
