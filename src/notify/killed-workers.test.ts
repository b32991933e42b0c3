import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { startDeliveryProgram } from '../../test/support/delivery-program.ts';
import { eventually } from '../../test/support/eventually.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { newEvent } from '../../test/support/new-event.ts';
import type { Program } from '../../test/support/program.ts';
import { publishRecords } from '../../test/support/published-records.ts';
import { startReceiver } from '../../test/support/receiver.ts';
import { destinationRecord, routeRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { checkShards } from '../data/check/shard-check.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { hashFields } from '../data/shard/hash-fields.ts';

const prefix = 'posthorn:';
const events = 400;
let redis: RedisServer;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function startWorker(): Promise<Program> {
  const program = await startDeliveryProgram(redis.url, { POSTHORN_SHARDS: '1' });
  ends.push(() => program.stop());
  return program;
}

/** The unreported failures in the route's state in Redis: those beyond the alerts that went out. */
async function untold(): Promise<number> {
  const [waiting, log] = await Promise.all([
    redis.client.hget(`${prefix}{s0}:al:rte_a`, hashFields.alerts.failed),
    redis.client.xlen(`${prefix}{s0}:ends`),
  ]);
  return log > 0 ? Number.NaN : Number(waiting?.split(' ')[0] ?? 0);
}

test('a burst of failures is reported and counted once, although one worker after the other is killed in it', async () => {
  const [shop, ops] = [await startReceiver((response) => response.writeHead(500).end()), await startReceiver()];
  ends.push(
    () => shop.close(),
    () => ops.close(),
  );
  const retryPolicy = { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
  const circuit = { failureThreshold: 1000, cooldownSeconds: 60, probeSuccessThreshold: 1 };
  const notifications = { onFailure: true, onSuccess: false, onRecovery: false, failureThreshold: 1, channelIds: null, emails: [] };
  await publishRecords(redis.client, prefix, {
    route: routeRecord({ circuit, notifications }),
    destination: destinationRecord({ url: shop.url }, { retryPolicy }),
    notificationChannel: {
      v: 1,
      id: 'nch_a',
      org: 'org_a',
      slug: 'ops',
      name: 'Ops',
      enabled: true,
      channel: { type: 'webhook', url: ops.url, headers: [], signingSecrets: [] },
      generation: 1,
    },
  });

  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  let isOver = false;
  const sending = (async () => {
    for (let i = 0; i < events; i++) {
      await acceptor.accept(newEvent());
      while (i > shop.requests.length + 150) await sleep(20);
      await sleep(20);
    }
    isOver = true;
  })();
  let worker = await startWorker();
  for (let kills = 0; kills < 4 && !isOver; kills++) {
    const seen = shop.requests.length;
    await eventually('more deliveries', 30_000, () => shop.requests.length > seen + 20);
    worker.signal('SIGKILL');
    await worker.ended;
    worker = await startWorker();
  }
  await sending;

  await ops.arrived(1, 30_000);
  const told = (): number => {
    const alerts = new Map(ops.requests.map(({ headers, body }) => [headers['webhook-id'], JSON.parse(body.toString()).count]));
    return [...alerts.values()].reduce((sum, count) => sum + count, 0);
  };
  await eventually('everything is counted', 60_000, async () => told() + (await untold()) === events);
  expect(new Set(ops.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  await eventually('nothing is under way', 30_000, async () => (await checkShards({ redis: redis.client, prefix })).unfinished === 0);
  expect((await checkShards({ redis: redis.client, prefix })).findings).toEqual([]);
}, 180_000);
