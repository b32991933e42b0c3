import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { startDeliveryProgram } from '../../../test/support/delivery-program.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import type { Program } from '../../../test/support/program.ts';
import { publishRecords } from '../../../test/support/published-records.ts';
import type { Receiver } from '../../../test/support/receiver.ts';
import { destinationRecord, routeRecord, sourceRecord } from '../../../test/support/records.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { sealWebhookSecret } from '../../../test/support/webhook-program-suite.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import type { HttpDestinationRecord } from '../../core/records.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { checkShards } from '../../data/check/shard-check.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const suite = deliverySuite();
const retryPolicy = { maxRetries: 3, initialDelayMs: 100, maxDelayMs: 200, backoffMultiplier: 1 };
let underWay: number;
let atOnce: number;
beforeEach(() => {
  underWay = 0;
  atOnce = 0;
});

type Answer = (response: ServerResponse, number: number) => void;

/** A receiver that records its concurrent requests. `answer`: how it ends the request after 5 ms. */
async function counting(answer: Answer = (response) => response.end()): Promise<Receiver> {
  return await suite.receiver((response, number) => {
    underWay++;
    atOnce = Math.max(atOnce, underWay);
    response.once('close', () => underWay--);
    setTimeout(() => answer(response, number), 5);
  });
}

function put(to: Receiver, changes: Partial<HttpDestinationRecord> = {}): void {
  suite.registry.put('destination', destinationRecord({ url: to.url, timeoutMs: 60_000 }, { ordered: true, retryPolicy, ...changes }));
}

/** Accepts so many messages, one after the other; returns their ids. */
async function send(count: number, acceptor = suite.acceptor): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const event = newEvent({ maxAttempts: 4 });
    await acceptor.accept(event);
    ids.push(event.targets[0]?.messageId ?? '');
  }
  return ids;
}
const received = ({ requests }: Receiver): string[] => requests.map(({ headers }) => String(headers['webhook-id']));

/** Each once, in the order of their first requests. Throws for a request of one after the next has begun. */
function sequence(to: Receiver): string[] {
  const seen: string[] = [];
  for (const id of received(to)) {
    if (seen.includes(id)) expect(id).toBe(seen.at(-1));
    else seen.push(id);
  }
  return seen;
}

const allEnd = async (ids: readonly string[], { org = 'org_a', reader = suite.reader } = {}): Promise<void> =>
  eventually(async () => {
    const { items } = await reader.deliveries(org, {}, { limit: 100 });
    const ended = new Set(items.filter(({ completedAtMs }) => completedAtMs !== null).map(({ id }) => id));
    expect(ids.filter((id) => !ended.has(id))).toEqual([]);
  }, 90_000);

test('two workers deliver in order through failures, 429 with Retry-After and connections that break, and continue after a dead letter', async () => {
  const answers: Answer[] = [
    (response) => response.end(),
    (response) => response.writeHead(500).end(),
    (response) => response.writeHead(429, { 'retry-after': '1' }).end(),
    (response) => response.end(),
    (response) => void response.destroy(),
  ];
  // The first four requests use up all attempts of the first message.
  const to = await counting((response, number) => (number <= 4 ? response.writeHead(503).end() : answers[number % 5]?.(response, number)));
  put(to);
  suite.registry.put('route', routeRecord({ circuit: { failureThreshold: 1000, cooldownSeconds: 300, probeSuccessThreshold: 2 } }));
  suite.worker();
  suite.worker();
  const ids = await send(20);
  await allEnd(ids);
  expect(sequence(to)).toEqual(ids);
  expect(atOnce).toBe(1);
  expect(received(to).slice(0, 5)).toEqual([...Array.from({ length: 4 }, () => ids[0]), ids[1]]);
  await suite.becomes(ids[0] ?? '', { status: 'dlq', deadLetterReason: 'max_retries_exceeded' });
  expect((await checkShards({ redis: suite.redis.client, prefix: suite.prefix })).findings).toEqual([]);
});

test('a circuit that opens and closes keeps the order: its probes are the next messages', async () => {
  let isDown = true;
  const to = await counting((response) => response.writeHead(isDown ? 500 : 200).end());
  put(to, { retryPolicy: { ...retryPolicy, maxRetries: 20 } });
  suite.registry.put('route', routeRecord({ circuit: { failureThreshold: 2, cooldownSeconds: 1, probeSuccessThreshold: 3 } }));
  suite.worker();
  suite.worker();
  const ids = await send(6);
  await suite.becomes(ids[0] ?? '', { status: 'circuit_open' });
  await eventually(() => expect(to.requests.length).toBeGreaterThanOrEqual(3));
  isDown = false;
  await allEnd(ids);
  expect(sequence(to)).toEqual(ids);
  expect(atOnce).toBe(1);
});

test('a target that hangs holds its own messages, and no others of its organization', async () => {
  const hanging = await suite.receiver(() => {});
  const others = await suite.receiver();
  put(hanging);
  suite.registry.put('destination', destinationRecord({ url: others.url }, { id: 'dst_b', ordered: true }));
  suite.registry.put('destination', destinationRecord({ url: others.url }, { id: 'dst_c' }));
  suite.registry.put('route', routeRecord({ destinations: ['dst_a', 'dst_b', 'dst_c'].map((id) => ({ id, shard: 0 })) }));
  suite.worker({ concurrency: 16 });
  for (let i = 0; i < 20; i++) await suite.acceptor.accept(newEvent({ destinations: ['dst_a', 'dst_b', 'dst_c'] }));
  await others.arrived(40);
  expect(hanging.requests).toHaveLength(1);
});

test('order that is switched on while messages are under way holds for those that follow, and ends when it is switched off', async () => {
  const waiting: ServerResponse[] = [];
  let holds = true;
  const to = await counting((response) => (holds ? waiting.push(response) : response.end()));
  put(to, { ordered: undefined });
  suite.registry.put('route', routeRecord());
  suite.worker();
  const first = await send(3);
  await eventually(() => expect(waiting).toHaveLength(3));
  put(to, { generation: 2 });
  await eventually(async () => expect(await suite.redis.client.scard(`${suite.prefix}{s0}:ordered`)).toBe(1));
  const ids = await send(5);
  expect(to.requests).toHaveLength(3);
  holds = false;
  for (const response of waiting.splice(0)) response.end();
  await allEnd([...first, ...ids]);
  expect(received(to).slice(3)).toEqual(ids);
  holds = true;
  await send(3);
  await eventually(() => expect(waiting).toHaveLength(1));
  put(to, { ordered: undefined, generation: 3 });
  await eventually(() => expect(waiting).toHaveLength(3));
  for (const response of waiting) response.end();
});

test('order that was switched on while no worker ran holds for all that waits', async () => {
  const to = await counting();
  put(to, { ordered: undefined });
  suite.registry.put('route', routeRecord());
  const worker = suite.worker();
  await allEnd(await send(1));
  await worker.stop(10_000);
  put(to, { generation: 2 });
  const ids = await send(20);
  suite.worker();
  await allEnd(ids);
  expect(received(to).slice(1)).toEqual(ids);
  expect(atOnce).toBe(1);
});

test('a destination that is disabled and enabled again continues in order', async () => {
  const to = await counting();
  put(to);
  suite.registry.put('route', routeRecord());
  suite.worker();
  suite.worker();
  const ids = await send(5);
  for (let generation = 2; generation < 8; generation += 2) {
    put(to, { enabled: false, generation });
    ids.push(...(await send(5)));
    put(to, { generation: generation + 1 });
  }
  await allEnd(ids);
  expect(sequence(to)).toEqual(ids);
  expect(atOnce).toBe(1);
});

test('messages stay with their destination in a route that names a failover destination', async () => {
  const to = await suite.receiver((response) => response.writeHead(500).end());
  const spare = await suite.receiver();
  put(to);
  suite.registry.put('destination', destinationRecord({ url: spare.url }, { id: 'dst_spare' }));
  suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_spare', shard: 0 }], afterAttempts: 1 } }));
  suite.worker();
  const ids = await send(2);
  await suite.becomes(ids[0] ?? '', { status: 'dlq', destinationId: 'dst_a' });
  expect(spare.requests).toEqual([]);
});

test('no message moves to a failover destination that sends in order', async () => {
  const to = await suite.receiver((response) => response.writeHead(500).end());
  const spare = await suite.receiver();
  put(to, { ordered: undefined });
  suite.registry.put('destination', destinationRecord({ url: spare.url }, { id: 'dst_spare', ordered: true }));
  suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_spare', shard: 0 }], afterAttempts: 1 } }));
  suite.worker();
  const ids = await send(1);
  await suite.becomes(ids[0] ?? '', { status: 'dlq', destinationId: 'dst_a' });
  expect(spare.requests).toEqual([]);
});

describe('worker processes', () => {
  const prefix = 'posthorn:';
  const programs: Program[] = [];
  const environment = { POSTHORN_SHARDS: '1', POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true', POSTHORN_WEBHOOK_RETRY_DELAYS: '1,1,1' };
  const start = async (): Promise<Program> => {
    const program = await startDeliveryProgram(suite.redis.url, environment);
    programs.push(program);
    return program;
  };
  afterEach(async () => {
    for (const program of programs.splice(0)) await program.stop();
  });

  test('workers that are killed in an attempt, and between two, leave the order as it is: what they held comes before what was accepted later', async () => {
    const unanswered = [5, 20];
    const to = await counting((response, number) => {
      if (unanswered.includes(number)) return;
      if (number % 7 === 0) response.writeHead(500).end();
      else setTimeout(() => response.end(), 20);
    });
    const destination = destinationRecord({ url: to.url, timeoutMs: 60_000 }, { ordered: true, retryPolicy });
    await publishRecords(suite.redis.client, prefix, { source: sourceRecord(), route: routeRecord(), destination });
    const acceptor = new RedisMessageAcceptor({ redis: suite.redis.client, prefix, clock: systemClock });
    await start();
    await start();
    const ids = await send(60, acceptor);
    // The last one may hold nothing.
    for (const count of [...unanswered, 35]) {
      await to.arrived(count, 60_000);
      const dying = programs.splice(0, count === 35 ? 1 : 2);
      for (const program of dying) program.signal('SIGKILL');
      for (const program of dying) {
        await program.ended;
        await start();
      }
    }
    await allEnd(ids, { reader: new RedisMessageReader({ redis: suite.redis.client, prefix }) });
    expect(sequence(to)).toEqual(ids);
    expect(atOnce).toBe(1);
  }, 180_000);

  test('a webhook endpoint gets the messages of all its subscriptions in order', async () => {
    const org = 'org_a';
    const to = await counting((response, number) => response.writeHead(number % 4 === 0 ? 500 : 200).end());
    await publishRecords(suite.redis.client, prefix);
    const store = new RedisWebhookStore({ redis: suite.redis.client, prefix, clock: systemClock, logger: silentLogger });
    const { id } = await store.createApplication({
      org,
      name: 'Customer',
      shard: 0,
      rateLimits: { perSecond: 0, perMinute: 0, perHour: 0 },
    });
    const endpoint = await store.createEndpoint(newWebhookEndpoint(id, { url: to.url, sealSecret: sealWebhookSecret, ordered: true }));
    await start();
    await start();
    const acceptor = new RedisMessageAcceptor({ redis: suite.redis.client, prefix, clock: systemClock });
    const ids: string[] = [];
    for (let i = 0; i < 12; i++) {
      const event = newWebhookEvent(org, [endpoint]);
      // Each by another subscription.
      const targets = event.targets.map((target) => ({ ...target, subscription: { id: `sub_${i}`, transformId: null } }));
      await acceptor.accept({ ...event, targets });
      ids.push(event.targets[0]?.messageId ?? '');
    }
    await allEnd(ids, { org: webhookOrganization(org), reader: new RedisMessageReader({ redis: suite.redis.client, prefix }) });
    expect(sequence(to)).toEqual(ids);
    expect(atOnce).toBe(1);
  }, 90_000);
});
