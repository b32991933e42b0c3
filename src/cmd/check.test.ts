import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { eventForShards } from '../../test/support/new-event.ts';
import { freePort } from '../../test/support/ports.ts';
import { startProgram } from '../../test/support/program.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { agreeOnShards } from '../data/membership/shard-count.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { registryKeys } from '../data/registry/registry-keys.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { systemClock } from '../runtime/system-clock.ts';

const prefix = 'posthorn:';
const org = 'org_a';
const application = `app_${'b'.repeat(26)}`;
let redis: RedisServer;
let messageId: string;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await redis.client.hset(registryKeys(prefix).records('organization'), org, '{}');
  await agreeOnShards({ redis: redis.client, prefix, known: 2 });
  const event = eventForShards([1]);
  messageId = event.targets[0]?.messageId ?? '';
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(event);
  const store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  await store.createApplication({ org, id: application, name: 'a', externalId: 'x', shard: 0 });
});

async function check(url = redis.url): Promise<{ code: unknown; lines: string[] }> {
  const program = startProgram(['check'], { POSTHORN_REDIS_URL: url });
  return { code: await program.ended, lines: program.output().trim().split('\n') };
}

test('check ends with 0 when it finds no fault, and prints how much it has read', async () => {
  expect(await check()).toEqual({
    code: 0,
    lines: ['webhooks: 1 applications, 0 endpoints, 0 subscriptions, 0 findings', 'shards 2: 1 messages, 1 unfinished, 0 findings'],
  });
});

test('check ends with 1 and a line for each message that is not, in whatever shard', async () => {
  await redis.client.del(`${prefix}{s1}:w:1`);
  expect(await check()).toEqual({
    code: 1,
    lines: [
      `${messageId} has status p and is nowhere`,
      'webhooks: 1 applications, 0 endpoints, 0 subscriptions, 0 findings',
      'shards 2: 1 messages, 1 unfinished, 1 findings',
    ],
  });
});

test('check ends with 1 when a webhook store does not hold together', async () => {
  await redis.client.hdel(`${prefix}{wh:${org}}:ax`, 'x');
  expect(await check()).toEqual({
    code: 1,
    lines: [
      `${org} webhook application 1 is not found by its external id`,
      'webhooks: 1 applications, 0 endpoints, 0 subscriptions, 1 findings',
      'shards 2: 1 messages, 1 unfinished, 0 findings',
    ],
  });
});

test('check ends with 2 and prints the reason when Redis does not answer', async () => {
  const { code, lines } = await check(`redis://127.0.0.1:${await freePort()}`);
  expect(code).toBe(2);
  expect(lines.join('\n')).toContain('Redis');
});
