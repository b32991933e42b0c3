import { expect, test } from '@jest/globals';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../../test/support/memory-directory.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { RawReceivers } from '../../../test/support/raw-receivers.ts';
import type { Receiver } from '../../../test/support/receiver.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { sampleAlert } from '../../../test/support/sample-alert.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { alertOrganization, channelTarget } from '../../core/alert.ts';
import { newTimedId } from '../../core/ids.ts';
import { recordLayoutVersion } from '../../core/records.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import { shardBase } from '../../data/shard/shard-keys.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import type { DeliveryOptions } from '../start-delivery.ts';

const shards = 4;
const suite = deliverySuite({ shards });
const slots = 64;
/** Far below the time-out of an attempt that hangs. */
const soonMs = 30_000;

function put(org: string, name: string, to: Receiver, shard: number): void {
  suite.registry.put('destination', destinationRecord({ url: to.url, timeoutMs: 300_000 }, { id: `dst_${name}`, org }));
  suite.registry.put('route', routeRecord({ id: `rte_${name}`, org, destinations: [{ id: `dst_${name}`, shard }] }));
}

async function send(org: string, name: string, shard: number): Promise<string> {
  const messageId = newTimedId('msg_', shard, Date.now());
  const targets = [{ messageId, routeId: `rte_${name}`, destinationId: `dst_${name}`, shard, maxAttempts: 3 }];
  await suite.acceptor.accept({ ...newEvent({ org, targets }), id: newTimedId('evt_', shard, Date.now()) });
  return messageId;
}

/** Sends to a destination of `org_b` in each shard, one after the other. */
async function reachAll(fast: Receiver, name: string): Promise<void> {
  for (let shard = 0; shard < shards; shard++) {
    const before = fast.requests.length;
    await send('org_b', `${name}${shard}`, shard);
    await eventually(() => expect(fast.requests.length).toBe(before + 1), soonMs);
  }
}

/** Puts destinations of `org_b` into each shard. */
function putFast(fast: Receiver, names: readonly string[]): void {
  suite.registry.put('organization', { ...organizationRecord(), id: 'org_b' });
  for (let shard = 0; shard < shards; shard++) for (const name of names) put('org_b', `${name}${shard}`, fast, shard);
}

/** Slow attempts of the account, in all shards. */
async function slowOf(account: string): Promise<number> {
  const counts = await Promise.all(
    Array.from({ length: shards }, (_, shard) => suite.redis.client.zcard(`${shardBase(suite.prefix, shard)}slow:${account}`)),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

test('the first event of a new destination is delivered at once beside 200 receivers of another organization that hang', async () => {
  const hanging = await suite.receiver(() => {});
  const fast = await suite.receiver();
  for (const org of ['org_b', 'org_c']) suite.registry.put('organization', { ...organizationRecord(), id: org });
  for (let i = 0; i < 200; i++) put('org_a', `a${i}`, hanging, i % shards);
  for (const org of ['b', 'c']) for (let shard = 0; shard < shards; shard++) put(`org_${org}`, `${org}${shard}`, fast, shard);
  suite.worker({ concurrency: slots });
  await send('org_a', 'a0', 0);
  for (let i = 0; i < 200; i++) for (let k = 0; k < 2; k++) await send('org_a', `a${i}`, i % shards);
  // A quarter of the slots, and a quarter of the probe band.
  await eventually(() => expect(hanging.requests.length).toBe(16 + 4));
  for (const org of ['b', 'c']) {
    for (let shard = 0; shard < shards; shard++) {
      const before = fast.requests.length;
      await send(`org_${org}`, `${org}${shard}`, shard);
      await eventually(() => expect(fast.requests.length).toBe(before + 1), soonMs);
    }
  }
  expect(await slowOf('org_a')).toBe(16 + 4);
  expect(hanging.requests.length).toBe(16 + 4);
});

test('shards that a new worker polls at the same time give one organization no more slow attempts than its share', async () => {
  const hanging = await suite.receiver(() => {});
  for (let i = 0; i < 100; i++) put('org_a', `a${i}`, hanging, i % shards);
  for (let i = 0; i < 100; i++) await send('org_a', `a${i}`, i % shards);
  suite.worker({ concurrency: slots });
  await eventually(() => expect(hanging.requests.length).toBe(16 + 4));
  await eventually(async () => expect(await slowOf('org_a')).toBe(16 + 4));
  expect(hanging.requests.length).toBe(16 + 4);
});

test('receivers that were fast and hang all at once leave slots for other organizations', async () => {
  let hangs = false;
  const turning = await suite.receiver((response) => {
    if (!hangs) response.end();
  });
  const fast = await suite.receiver();
  suite.registry.put('organization', { ...organizationRecord(), id: 'org_b' });
  for (let i = 0; i < 4; i++) put('org_a', `a${i}`, turning, 0);
  put('org_b', 'b', fast, 0);
  suite.worker({ concurrency: slots });
  for (let i = 0; i < 40; i++) await send('org_a', `a${i % 4}`, 0);
  await eventually(() => expect(turning.requests.length).toBe(40));
  await eventually(async () => expect(await suite.redis.client.zcard(`${shardBase(suite.prefix, 0)}held`)).toBe(0));
  hangs = true;
  // All at once: a target that hangs for a second is known to be slow.
  await Promise.all(Array.from({ length: 4 * slots }, (_, i) => send('org_a', `a${i % 4}`, 0)));
  await eventually(() => expect(turning.requests.length).toBeGreaterThanOrEqual(40 + slots / 2));
  await send('org_b', 'b', 0);
  await eventually(() => expect(fast.requests.length).toBe(1), soonMs);
  expect(turning.requests.length).toBeLessThanOrEqual(40 + slots - slots / 8);
});

test('four organizations whose fast receivers hang all at once leave a slot for a fifth one', async () => {
  let hangs = false;
  const turning = await suite.receiver((response) => {
    if (!hangs) response.end();
  });
  const fast = await suite.receiver();
  const hostile = ['org_a', 'org_c', 'org_d', 'org_e'];
  for (const org of [...hostile, 'org_b']) suite.registry.put('organization', { ...organizationRecord(), id: org });
  for (const org of hostile) for (let i = 0; i < 4; i++) put(org, `${org}${i}`, turning, 0);
  put('org_b', 'b', fast, 0);
  suite.worker({ concurrency: slots });
  for (const org of hostile) for (let i = 0; i < 40; i++) await send(org, `${org}${i % 4}`, 0);
  await send('org_b', 'b', 0);
  await eventually(() => expect(turning.requests.length).toBe(4 * 40));
  await eventually(async () => expect(await suite.redis.client.zcard(`${shardBase(suite.prefix, 0)}held`)).toBe(0));
  hangs = true;
  // One after the other, each with more than all slots.
  for (const org of hostile) {
    const before = turning.requests.length;
    await Promise.all(Array.from({ length: 2 * slots }, (_, i) => send(org, `${org}${i % 4}`, 0)));
    await eventually(() => expect(turning.requests.length).toBeGreaterThan(before));
  }
  await send('org_b', 'b', 0);
  await eventually(() => expect(fast.requests.length).toBe(2), soonMs);
  expect(turning.requests.length).toBeLessThanOrEqual(4 * 40 + slots - 1);
});

test('new destinations of four organizations that hang leave a probe for that of a fifth one', async () => {
  const hanging = await suite.receiver(() => {});
  const fast = await suite.receiver();
  const hostile = ['org_a', 'org_c', 'org_d', 'org_e'];
  for (const org of [...hostile, 'org_b']) suite.registry.put('organization', { ...organizationRecord(), id: org });
  for (const org of hostile) for (let i = 0; i < 60; i++) put(org, `${org}${i}`, hanging, i % shards);
  put('org_b', 'b', fast, 0);
  suite.worker({ concurrency: slots });
  // A quarter of the slots and of the probes each, then half of the probes that are left.
  for (const [i, org] of hostile.entries()) {
    for (let k = 0; k < 60; k++) await send(org, `${org}${k}`, k % shards);
    await eventually(async () => expect(await slowOf(org)).toBe([20, 20, 4, 2][i]));
  }
  await send('org_b', 'b', 0);
  await eventually(() => expect(fast.requests.length).toBe(1), soonMs);
  await eventually(() => expect(hanging.requests.length).toBe(46));
});

test('hanging, dripping and redirecting receivers, ordered targets, retries that are due, failovers and probes of one organization leave slots and probes to another one', async () => {
  const hanging = await suite.receiver(() => {});
  const dripping = await suite.receiver((response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write('x'), 50);
    response.once('close', () => clearInterval(timer));
  });
  const redirecting = await suite.receiver((response) => void response.writeHead(302, { location: hanging.url }).end());
  const failed = new Set<string>();
  const failingFirst: Receiver = await suite.receiver((response) => {
    const id = String(failingFirst.requests.at(-1)?.headers['webhook-id']);
    if (failed.has(id)) return;
    failed.add(id);
    response.writeHead(500).end();
  });
  const fast = await suite.receiver();
  suite.registry.put('organization', { ...organizationRecord(), id: 'org_b' });
  const retryPolicy = { maxRetries: 20, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
  const kinds = [hanging, dripping, redirecting, failingFirst];
  for (let i = 0; i < 240; i++) {
    const [to = hanging, shard] = [kinds[i % 4], Math.floor(i / 4) % shards];
    const http = { url: to.url, timeoutMs: 300_000 };
    const own = { id: `dst_a${i}`, org: 'org_a', retryPolicy };
    suite.registry.put('destination', destinationRecord(http, i % 3 === 0 ? { ...own, ordered: true } : own));
    const circuit = { failureThreshold: 2, cooldownSeconds: 1, probeSuccessThreshold: 1 };
    const failover = { destinations: [{ id: `dst_a${(i + 16) % 240}`, shard }], afterAttempts: 1 };
    const destinations = [{ id: `dst_a${i}`, shard }];
    suite.registry.put('route', routeRecord({ id: `rte_a${i}`, org: 'org_a', destinations, circuit, failover }));
  }
  for (let shard = 0; shard < shards; shard++) for (const name of ['known', 'new']) put('org_b', `${name}${shard}`, fast, shard);
  suite.worker({ concurrency: slots });
  for (let shard = 0; shard < shards; shard++) await send('org_b', `known${shard}`, shard);
  await eventually(() => expect(fast.requests.length).toBe(shards));
  for (let i = 0; i < 240; i++) for (let k = 0; k < 3; k++) await send('org_a', `a${i}`, Math.floor(i / 4) % shards);
  await eventually(async () => expect(await slowOf('org_a')).toBe(16 + 4));
  for (let round = 0; round < 3; round++) {
    for (let shard = 0; shard < shards; shard++) {
      for (const name of round === 0 ? ['known', 'new'] : ['known']) {
        const before = fast.requests.length;
        await send('org_b', `${name}${shard}`, shard);
        await eventually(() => expect(fast.requests.length).toBe(before + 1), soonMs);
        expect(await slowOf('org_a')).toBeLessThanOrEqual(16 + 4);
      }
    }
  }
});

test('names whose name servers are silent delay no other organization, also when attempts are given up before', async () => {
  const fast = await suite.receiver();
  const port = new URL(fast.url).port;
  const hanging: string[] = [];
  // As getaddrinfo has them: two threads, each taken until there is an answer.
  let threads = 2;
  const line: (() => void)[] = [];
  const next = (): void => {
    for (let begin = threads > 0 ? line.shift() : undefined; begin !== undefined; begin = threads > 0 ? line.shift() : undefined) {
      threads--;
      begin();
    }
  };
  const lookup: DeliveryOptions['lookup'] = (hostname, _, callback) => {
    line.push(() => {
      if (hostname.startsWith('silent')) return void hanging.push(hostname);
      threads++;
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
      next();
    });
    next();
  };
  for (const org of ['org_b', 'org_c']) suite.registry.put('organization', { ...organizationRecord(), id: org });
  for (let i = 0; i < 20; i++) {
    const http = { url: `http://silent${i}.example:${port}/`, timeoutMs: i % 2 === 0 ? 1000 : 60_000 };
    suite.registry.put('destination', destinationRecord(http, { id: `dst_a${i}`, org: 'org_a' }));
    suite.registry.put('route', routeRecord({ id: `rte_a${i}`, org: 'org_a', destinations: [{ id: `dst_a${i}`, shard: 0 }] }));
  }
  suite.worker({ concurrency: slots, lookup });
  for (let i = 0; i < 20; i++) await send('org_a', `a${i}`, 0);
  await eventually(() => expect(hanging.length).toBeGreaterThan(0));
  for (const org of ['b', 'c', 'd']) {
    if (org === 'd') suite.registry.put('organization', { ...organizationRecord(), id: 'org_d' });
    suite.registry.put(
      'destination',
      destinationRecord({ url: `http://${org}.example:${port}/` }, { id: `dst_${org}`, org: `org_${org}` }),
    );
    suite.registry.put('route', routeRecord({ id: `rte_${org}`, org: `org_${org}`, destinations: [{ id: `dst_${org}`, shard: 0 }] }));
    const before = fast.requests.length;
    await send(`org_${org}`, org, 0);
    await eventually(() => expect(fast.requests.length).toBe(before + 1));
  }
  expect(hanging).toHaveLength(1);
});

test('replays of old events to receivers that hang since leave slots and probes to another organization', async () => {
  let hangs = false;
  const turning = await suite.receiver((response) => {
    if (!hangs) response.end();
  });
  const fast = await suite.receiver();
  putFast(fast, ['known', 'new']);
  for (let i = 0; i < 100; i++) put('org_a', `a${i}`, turning, i % shards);
  suite.worker({ concurrency: slots });
  const ids: string[] = [];
  for (let i = 0; i < 100; i++) ids.push(await send('org_a', `a${i}`, i % shards));
  await reachAll(fast, 'known');
  for (const id of ids) await suite.becomes(id, { status: 'delivered' });
  hangs = true;
  const replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix: suite.prefix, clock: systemClock, shards: () => shards });
  for (let round = 0; round < 3; round++) expect(await replayer.replayMany('org_a', ids)).toHaveLength(100);
  await eventually(() => expect(turning.requests.length).toBeGreaterThanOrEqual(100 + 16 + 4));
  for (const name of ['new', 'known', 'new']) await reachAll(fast, name);
  expect(turning.requests.length).toBeLessThanOrEqual(100 + slots - slots / 8);
});

test('receivers that accept connections and never answer the handshake of TLS leave slots and probes to another organization', async () => {
  const silent = new RawReceivers();
  suite.ends.push(() => silent.close());
  const url = `https://127.0.0.1:${await silent.listen(() => undefined)}`;
  const fast = await suite.receiver();
  putFast(fast, ['known', 'new']);
  suite.worker({ concurrency: slots });
  await reachAll(fast, 'known');
  for (let i = 0; i < 200; i++) {
    suite.registry.put('destination', destinationRecord({ url, timeoutMs: 300_000 }, { id: `dst_a${i}`, org: 'org_a' }));
    suite.registry.put('route', routeRecord({ id: `rte_a${i}`, destinations: [{ id: `dst_a${i}`, shard: i % shards }] }));
  }
  for (let i = 0; i < 200; i++) await send('org_a', `a${i}`, i % shards);
  await eventually(async () => expect(await slowOf('org_a')).toBe(16 + 4));
  for (const name of ['new', 'known']) {
    await reachAll(fast, name);
    expect(await slowOf('org_a')).toBeLessThanOrEqual(16 + 4);
  }
});

test('hanging endpoints, notification channels and destinations of one organization have one share together', async () => {
  const hanging = await suite.receiver(() => {});
  const fast = await suite.receiver();
  putFast(fast, ['known', 'new']);
  const directory = new MemoryDirectory();
  directory.putApplication(webhookApplication());
  suite.worker({ concurrency: slots, webhooks: directory.sources() });
  await reachAll(fast, 'known');
  const count = 60;
  const endpoints = Array.from({ length: count }, (_, i) => {
    const sealed = testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext('org_a', `ep_${i}`));
    return webhookEndpoint({ id: `ep_${i}`, url: hanging.url, secret: { sealed, prefix: 'whsec_AQEB…', version: 1, previous: [] } });
  });
  for (let i = 0; i < count; i++) {
    put('org_a', `a${i}`, hanging, i % shards);
    const channel = { type: 'webhook' as const, url: hanging.url, headers: [], signingSecrets: [] };
    const named = { id: `nch_${i}`, org: 'org_a', slug: `n${i}`, name: `n${i}`, enabled: true, generation: 1 };
    suite.registry.put('notificationChannel', { v: recordLayoutVersion, ...named, channel });
  }
  for (const endpoint of endpoints) directory.putEndpoint(endpoint);
  for (const [i, endpoint] of endpoints.entries()) {
    const shard = i % shards;
    const placed = <T extends object>(target: T) => ({ ...target, messageId: newTimedId('msg_', shard, Date.now()), shard });
    const own = { id: newTimedId('evt_', shard, Date.now()) };
    const event = newWebhookEvent('org_a', [endpoint], own);
    await suite.acceptor.accept({ ...event, targets: event.targets.map(placed) });
    const alerted = [placed({ ...channelTarget(`nch_${i}`), maxAttempts: 3 })];
    const payload = Buffer.from(JSON.stringify(sampleAlert()));
    const id = newTimedId('evt_', shard, Date.now());
    await suite.acceptor.accept({ ...newEvent({ org: alertOrganization('org_a'), payload, targets: alerted }), id, sourceSlug: 'alerts' });
    await send('org_a', `a${i}`, shard);
  }
  await eventually(async () => expect(await slowOf('org_a')).toBe(16 + 4));
  for (const name of ['new', 'known', 'new']) {
    await reachAll(fast, name);
    expect(await slowOf('org_a')).toBeLessThanOrEqual(16 + 4);
  }
  const kinds = new Set(
    hanging.requests.map(({ headers, body }) => (body.includes('"delivery.failed"') ? 'alert' : 'webhook-signature' in headers)),
  );
  expect(kinds.size).toBeGreaterThan(1);
});
