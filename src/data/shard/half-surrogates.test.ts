import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { sourceRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisRegistryPublisher } from '../registry/registry-publisher.ts';
import { RedisWebhookStore } from '../webhooks/redis-webhook-store.ts';

// JSON.stringify escapes half of a surrogate pair, and the JSON decoder of Redis refuses that escape.
const texts = ['\ud800', 'a\udfff b', '\ud83d', '\\ud800', '\u{1f600}', '\\\ud800'];

const prefix = 'test:';
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

test.each(texts)('an application named %j is deleted, and history names it', async (name) => {
  const store = new RedisWebhookStore({ redis: redis.client, prefix, clock: new FakeClock(), logger: silentLogger });
  const { id } = await store.createApplication({ org: 'org_a', name, shard: 0 });
  await store.deleteApplication('org_a', id);
  expect(await store.application('org_a', id)).toBeNull();
  expect((await store.deletedNames('org_a', { applications: [id] })).get(id)).toBe(name.toWellFormed());
});

test.each(texts)('a record that holds the text %j is published, changed and retracted', async (slug) => {
  const publisher = new RedisRegistryPublisher(redis.client, prefix);
  const epoch = await publisher.mintEpoch();
  for (const each of [slug, `${slug}2`]) expect(await publisher.publish(epoch, 'source', sourceRecord({ slug: each }))).toBe(true);
  expect(await publisher.retract(epoch, 'source', sourceRecord().id)).toBe(true);
});
