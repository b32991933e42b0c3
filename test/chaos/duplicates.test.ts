import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { routeRecord, sourceRecord } from '../support/records.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const prefix = 'posthorn:';
const shards = 4;

let redis: RedisServer;
let reader: RedisMessageReader;
const ports: number[] = [];
const programs: Program[] = [];

beforeAll(async () => {
  redis = await startRedis();
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  const publisher = new RedisRegistryPublisher(redis.client, prefix);
  const epoch = await publisher.mintEpoch();
  await publisher.publish(epoch, 'source', sourceRecord({ monthlyMessages: 100_000 }));
  const destinations = [1, 3].map((shard) => ({ id: `dst_${shard}`, shard }));
  await publisher.publish(epoch, 'route', routeRecord({ destinations }));
  await publisher.markComplete();
  for (let i = 0; i < 2; i++) {
    ports.push(await freePort());
    await startIngest(i);
  }
});
afterAll(async () => {
  await Promise.all(programs.map((program) => program.stop()));
  await redis.stop();
});

async function startIngest(i: number): Promise<void> {
  const program = startProgram(['ingest'], {
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    POSTHORN_SHARDS: String(shards),
    POSTHORN_HOST: '127.0.0.1',
    POSTHORN_PORT: String(ports[i]),
    POSTHORN_OPS_PORT: String(await freePort()),
    POSTHORN_LOG_LEVEL: 'warn',
  });
  programs[i] = program;
  await eventually('ingest', 90_000, async () => {
    const answer = await fetch(`http://127.0.0.1:${ports[i]}/ingest/acme/nobody`, { method: 'POST', body: '{}' }).catch(() => null);
    return answer?.status === 404;
  });
}

interface Taken {
  eventId: string;
  duplicate?: boolean;
}

/** Null: no answer, or 503. */
async function send(i: number, delivery: string): Promise<Taken | null> {
  const headers = { 'content-type': 'application/json', 'x-github-delivery': delivery };
  const sent = { method: 'POST', headers, body: JSON.stringify({ delivery }), signal: AbortSignal.timeout(5000) };
  const answer = await fetch(`http://127.0.0.1:${ports[i]}/ingest/acme/github`, sent).catch(() => null);
  return answer?.status === 200 ? ((await answer.json().catch(() => null)) as Taken | null) : null;
}

async function sendUntilTaken(delivery: string): Promise<Taken> {
  for (let tries = 0; tries < 200; tries++) {
    const taken = await send(tries % 2, delivery);
    if (taken !== null) return taken;
    await sleep(50);
  }
  throw new Error(`${delivery} was not taken`);
}

async function storedDeliveries(): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const { items, nextCursor } = await reader.events('org_a', {}, { limit: 100, ...(cursor !== undefined && { cursor }) });
    for (const { id } of items) {
      const event = await reader.event('org_a', id);
      found.push(String((JSON.parse(event?.payload?.toString() ?? '{}') as { delivery?: string }).delivery));
    }
    if (nextCursor === null) return found;
    cursor = nextCursor;
  }
}

test('64 equal events at once over two api processes are one event', async () => {
  const first = await Promise.all(Array.from({ length: 64 }, (_, i) => send(i % 2, 'at once')));
  // A busy machine lets some take too long: they are sent again, and which one was the first is unknown then.
  const answers = await Promise.all(first.map((taken) => taken ?? sendUntilTaken('at once')));
  expect(new Set(answers.map(({ eventId }) => eventId)).size).toBe(1);
  const fresh = answers.filter(({ duplicate }) => duplicate !== true).length;
  expect(fresh).toBeLessThanOrEqual(1);
  if (!first.includes(null)) expect(fresh).toBe(1);
  expect(await storedDeliveries()).toEqual(['at once']);
});

test('events that are sent again and again while an api is killed three times are stored once each, and all their answers name it', async () => {
  const deliveries = Array.from({ length: 400 }, (_, i) => `delivery ${i}`);
  const taken = new Map<string, Set<string>>();
  const queue = deliveries.flatMap((delivery) => [delivery, delivery, delivery]);
  let isKilling = true;
  const killing = (async () => {
    for (let kills = 0; kills < 3; kills++) {
      await sleep(150);
      programs[1]?.signal('SIGKILL');
      await programs[1]?.ended;
      await startIngest(1);
    }
    isKilling = false;
  })();
  const senders = Array.from({ length: 32 }, async () => {
    for (let delivery = queue.shift(); delivery !== undefined; delivery = queue.shift()) {
      const { eventId } = await sendUntilTaken(delivery);
      taken.set(delivery, (taken.get(delivery) ?? new Set()).add(eventId));
      if (isKilling && queue.length < 200) queue.push(...deliveries.slice(0, 100));
    }
  });
  await Promise.all([...senders, killing]);
  expect([...taken.values()].filter((ids) => ids.size !== 1)).toEqual([]);
  const stored = await storedDeliveries();
  expect(stored.filter((delivery) => delivery !== 'at once').sort()).toEqual([...deliveries].sort());
}, 120_000);
