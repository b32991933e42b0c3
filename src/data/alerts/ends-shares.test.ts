import { expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import type { Outcome } from '../queue/delivery-queue.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { AlertStates } from './alert-states.ts';

/** The share of an organization in the log of ended messages (`../queue/includes/ends.lua`). Alerts are made from that log. */
const prefix = 'test:';
const log = `${prefix}{s0}:ends`;
const counts = `${prefix}{s0}:ends-of`;

const suite = messageQueueSuite(prefix);

/** Ends a message of the organization at a target with alerts. Returns how many entries that has added. */
async function end(org: string, outcome: Outcome = dead): Promise<number> {
  const before = await suite.redis.client.xlen(log);
  await suite.acceptor.accept(newEvent({ org }));
  await settleAll(suite.queue, 'w1', await takeFrom(suite.queue, 'w1', 64, { hasAlerts: true }), outcome);
  return (await suite.redis.client.xlen(log)) - before;
}

async function fill(count: number): Promise<void> {
  const chain = suite.redis.client.pipeline();
  const { route, destination, atMs, kind, count: many, message } = hashFields.ends;
  const entry = [route, 'rte_x', destination, 'dst_x', atMs, 1, kind, 'f', many, 1, message, '-'];
  for (let i = 0; i < count; i++) chain.xadd(log, `0-${i + 1}`, ...entry);
  await chain.exec();
}

test('an organization with 10,000 entries in a long log adds no more until it was read, and others do', async () => {
  await fill(9999);
  expect(await end('org_a')).toBe(1);
  expect([await end('org_a'), await end('+org_a', delivered), await end('org_b')]).toEqual([1, 1, 1]);
  expect(await suite.redis.client.hgetall(counts)).toEqual({ org_a: '2', org_b: '1' });
  await suite.redis.client.hset(counts, 'org_a', 10_000);
  expect([await end('org_a'), await end('org_a', delivered), await end('+org_a'), await end('org_b')]).toEqual([0, 0, 0, 1]);
  const states = new AlertStates({ redis: suite.redis.client, prefix });
  for (let left = await states.read(0, 'reader'); left !== null && left.entries.length > 0; left = await states.read(0, 'reader'))
    await states.forget(0, left.entries);
  expect(await suite.redis.client.exists(log, counts)).toBe(0);
  expect(await end('org_a')).toBe(1);
});

test('a short log counts nobody', async () => {
  await fill(9000);
  expect([await end('org_a'), await end('org_a', delivered)]).toEqual([1, 1]);
  expect(await suite.redis.client.exists(counts)).toBe(0);
});
