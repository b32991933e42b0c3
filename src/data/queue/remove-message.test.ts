import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { dead, delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { Script } from '../../redis/script.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import type { Outcome } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const org = 'org_a';
const keys = shardKeys(prefix, 0);
const sharedLimiter = { id: 'app_a', revision: 1, windows: [{ ms: 1000, most: 1000 }] };
const include = (file: string): string => `-- @include "${new URL(file, import.meta.url).href}"\n`;

/** Includes what outbox-done.lua does, and what writes the counts after the file that needs it. */
function removal(): Script {
  const file = join(mkdtempSync(join(tmpdir(), 'posthorn-remove-')), 'remove.lua');
  const includes = [
    '../shard/includes/shard.lua',
    ...['outbox', 'remove', 'remote-holds', 'status-counts'].map((name) => `includes/${name}.lua`),
  ]
    .map(include)
    .join('');
  writeFileSync(file, `#!lua\n${includes}remove_message(ARGV[1])\nwrite_status_counts()\nreturn 1\n`);
  return new ShardScript(pathToFileURL(file));
}

let redis: RedisServer;
let queue: RedisDeliveryQueue;
beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix, tallyMs: 0 });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await queue.refreshShard('w1', 1000);
});

test.each<[string, Outcome | null]>([
  ['delivered', delivered],
  ['dead', dead],
  ['queued', null],
])('a script that includes remove.lua can remove a %s message of a webhook endpoint and counts it out', async (_, outcome) => {
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  await acceptor.accept(newWebhookEvent(org, [{ id: 'ep_a', applicationId: 'app_a' }]));
  const jobs = outcome === null ? [] : await takeFrom(queue, 'w1', 64, { sharedLimiter });
  if (outcome !== null) await settleAll(queue, 'w1', jobs, outcome);
  const counts = keys.statusCounts(webhookOrganization(org));
  expect(await redis.client.hvals(counts)).toEqual(['1']);
  const [message = ''] = await redis.client.keys(`${prefix}{s0}:m:*`);
  expect(await removal().run(redis.client, keys.declared, [message.slice(message.indexOf(':m:') + 3)])).toBe(1);
  expect(await redis.client.keys(`${prefix}{s0}:[me]:*`)).toEqual([]);
  expect(await redis.client.exists(counts)).toBe(0);
});
