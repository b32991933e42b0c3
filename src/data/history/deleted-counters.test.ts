import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { forgetStaleNames } from '../../../test/support/make-due.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import type { Outcome } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { WebhookMessages } from '../webhooks/webhook-messages.ts';

const prefix = 'test:';
const org = 'org_a';
const owner = webhookOrganization(org);
const [first, second] = [
  { id: 'ep_a', applicationId: 'app_a' },
  { id: 'ep_b', applicationId: 'app_a' },
];
const keys = shardKeys(prefix, 0);
const signal = new AbortController().signal;
let redis: RedisServer;
let queue: RedisDeliveryQueue;
let acceptor: RedisMessageAcceptor;
let purger: RedisMessagePurger;
beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix, tallyMs: 0 });
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  purger = new RedisMessagePurger({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await queue.refreshShard('w1', 1000);
});

const sharedLimiter = { id: 'app_a', revision: 1, windows: [{ ms: 1000, most: 1000 }] };
async function send(endpoints: readonly (typeof first)[], outcome: Outcome | null = delivered): Promise<void> {
  await acceptor.accept(newWebhookEvent(org, endpoints));
  if (outcome !== null) await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64, { sharedLimiter }), outcome);
}
async function prune(): Promise<void> {
  await queue.prune({ finishedMs: -1000, deadLettersMs: -1000 });
}
const forget = (gone: string[], of = owner) =>
  purger.removeDeletedCounters(of, async (ids) => new Set(ids.filter((id) => gone.includes(id))), signal);
const targets = () => redis.client.hkeys(keys.targetNumbers(owner));
/** Keys that name a target or a limiter. */
async function keysOf(pattern: string): Promise<string[]> {
  return (await redis.client.keys(`${prefix}{s0}:${pattern}`)).toSorted();
}

test('what was counted for a deleted endpoint goes at once, its target with the last of its messages', async () => {
  await send([first, second]);
  const number = await redis.client.hget(keys.targetNumbers(owner), 'app_a ep_a');
  expect(await forget(['ep_a'])).toBe(1);
  expect((await redis.client.hkeys(keys.counters(owner))).toSorted()).toEqual(['app_a', 'ep_b', 'etp_order.paid', 'total:app_a']);
  const messages = new WebhookMessages({ redis: redis.client, prefix });
  expect((await messages.messages(org, { endpointId: 'ep_a' }, { limit: 10 })).items).toMatchObject([{ applicationId: 'app_a' }]);
  expect((await targets()).toSorted()).toEqual(['app_a ep_a', 'app_a ep_b']);
  await prune();
  expect(await forget(['ep_a'])).toBe(1);
  expect(await targets()).toEqual(['app_a ep_b']);
  for (const kept of ['t', 'ra', 'probe', 'w']) expect(await keysOf(`${kept}:${number}`)).toEqual([]);
  expect(await keysOf('*ep_a')).toEqual([]);
  expect(await keysOf('[lu]*:app_a')).toEqual([`${prefix}{s0}:l:app_a`, `${prefix}{s0}:used:app_a`]);
  await send([second]);
  expect((await messages.messages(org, { endpointId: 'ep_b' }, { limit: 10 })).items).toMatchObject([{ status: 'success' }]);
});

test.each<[string, Outcome | null]>([
  ['is queued', null],
  ['waits for a retry', { type: 'retry', attempt: failure, delayMs: 60_000 }],
])('a target of which a message %s stays', async (_, outcome) => {
  await send([first], outcome);
  await prune();
  await forget(['ep_a', 'app_a']);
  expect(await targets()).toEqual(['app_a ep_a']);
});

test('nothing of a deleted application is left once its messages are gone', async () => {
  for (let n = 0; n < 3; n++) await send([first, second], n === 1 ? { type: 'retry', attempt: failure, delayMs: 0 } : delivered);
  await sleep(2);
  await queue.promote();
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), delivered);
  while (await queue.foldTallies());
  await prune();
  await forget(['ep_a', 'ep_b', 'app_a', 'etp_order.paid']);
  await forgetStaleNames(redis.client, `${prefix}{s0}:`, queue);
  const left = (await redis.client.keys('*')).map((key) => key.slice(prefix.length + '{s0}:'.length)).toSorted();
  // Statistics of periods end by themselves.
  expect(left.filter((key) => !/^(?:st:.*|bell|ctl|o:.+)$/.test(key))).toEqual([]);
  for (const key of await keysOf('st:*')) expect(await redis.client.ttl(key)).toBeGreaterThan(0);
});

test('a target of a deleted route goes, and leaves the queue limit of the destination', async () => {
  const setting = { throttle: { mode: 'concurrency', rateLimit: null, rateUnit: null, maxConcurrency: 9, queueLimit: 2 } } as const;
  const sendTo = async (routeId: string, outcome: Outcome | null = delivered): Promise<void> => {
    const event = newEvent({ destinations: ['dst_a'] });
    await acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId })) });
    if (outcome !== null) await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64, setting), outcome);
  };
  await sendTo('rte_a');
  await sendTo('rte_b');
  await prune();
  expect(await forget(['rte_a'], org)).toBe(2);
  expect(await redis.client.hkeys(keys.targetNumbers(org))).toEqual(['rte_b dst_a']);
  const number = await redis.client.hget(keys.targetNumbers(org), 'rte_b dst_a');
  expect(await redis.client.hget(`${prefix}{s0}:l:dst_a`, hashFields.limiter.targets)).toBe(number);
});

test('an organization that is purged loses what matches its events before its messages', async () => {
  const key = `${prefix}{wh:${org}}:ep`;
  await send([first], null);
  await redis.client.hset(key, '1', 'record');
  await expect(purger.purgeOrganization(org, AbortSignal.abort())).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(await redis.client.exists(key)).toBe(0);
  await redis.client.hset(key, '1', 'record of somebody who has not heard of it yet');
  await purger.purgeOrganization(org, signal);
  expect(await redis.client.exists(key)).toBe(0);
});
