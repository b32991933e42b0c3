import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { type RunningControllers, startControllers } from '../../../test/support/controllers.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { failure } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { alertOrganization } from '../../core/alert.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { Circuits } from '../../data/queue/circuits.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { idOf } from '../held-ids.ts';

const prefix = 'test:';
const route = { namespace: 'acme', name: 'all' };
const destination = { namespace: 'acme', name: 'shop' };
let redis: RedisServer;
let store: MemoryStore;
let controllers: RunningControllers;
let ids: { org: string; route: string; destination: string };

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  store = new MemoryStore(systemClock);
  const options = { manager: 'test', force: true };
  const organization = await store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, options);
  controllers = startControllers({ store, redis: redis.client, prefix });
  await eventually(() => store.apply({ kind: 'Source', metadata: { ...destination, name: 'orders' }, spec: {} }, options));
  const shop = await store.apply({ kind: 'Destination', metadata: destination, spec: { http: { url: 'https://shop.example/' } } }, options);
  const all = await store.apply(
    { kind: 'Route', metadata: route, spec: { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] } },
    options,
  );
  ids = { org: idOf('Organization', organization), route: idOf('Route', all), destination: idOf('Destination', shop) };
  await eventually(async () => expect(await status('Route', 'Ready')).toBe('True'));
});
afterEach(() => controllers.stop());

async function status(kind: 'Route' | 'Destination', type: string): Promise<string | undefined> {
  const object = await store.get(kind, kind === 'Route' ? route : destination);
  return object.status?.conditions?.find((condition) => condition.type === type)?.status;
}

/** Opens the circuit of (route, destination), or of another target, by a failed attempt. */
async function open(target: { org: string; route: string; destination: string } = ids): Promise<void> {
  const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  await queue.refreshShard('w1', 64);
  const event = newEvent({ destinations: [target.destination] });
  const targets = event.targets.map((each) => ({ ...each, routeId: target.route }));
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept({ ...event, org: target.org, targets });
  for (const configured of (await queue.targets(1)).targets) {
    await queue.configure(configured, targetSetting({ circuit: { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 } }));
  }
  const { jobs } = await queue.dequeue('w1', 1);
  await queue.settle(
    'w1',
    jobs.map((job) => ({ job, outcome: { type: 'dead', attempt: failure, reason: 'max_retries_exceeded' }, maxAttempts: null })),
  );
}

test('an object that asks for the id of another organization’s shows nothing of its circuits', async () => {
  const options = { manager: 'test', force: true };
  const copyOf = (id: string) => ({ namespace: 'thief', name: 'copy', annotations: { 'posthorn.dev/id': id } });
  await store.apply({ kind: 'Organization', metadata: { name: 'thief' }, spec: { namespace: 'thief' } }, options);
  await eventually(() => store.apply({ kind: 'Source', metadata: { namespace: 'thief', name: 'orders' }, spec: {} }, options));
  const http = { url: 'https://thief.example/' };
  await store.apply({ kind: 'Destination', metadata: copyOf(ids.destination), spec: { http } }, options);
  const spec = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'copy' }] };
  await store.apply({ kind: 'Route', metadata: copyOf(ids.route), spec }, options);
  const copies = async () => [
    await store.get('Destination', { namespace: 'thief', name: 'copy' }),
    await store.get('Route', { namespace: 'thief', name: 'copy' }),
  ];
  await eventually(async () => {
    for (const { status: is } of await copies())
      expect(is?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', reason: 'IdTaken' }));
  });
  await open();
  for (const kind of ['Route', 'Destination'] as const)
    await eventually(async () => expect(await status(kind, 'Delivering')).toBe('False'));
  // What is written of later circuits stands behind what the first one brought, of each kind.
  const later = { namespace: 'acme', name: 'later' };
  const laterDestination = await store.apply({ kind: 'Destination', metadata: later, spec: { http } }, options);
  const laterSpec = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'later' }] };
  const laterRoute = await store.apply({ kind: 'Route', metadata: later, spec: laterSpec }, options);
  await open({ org: ids.org, route: idOf('Route', laterRoute), destination: idOf('Destination', laterDestination) });
  for (const kind of ['Route', 'Destination'] as const)
    await eventually(async () => expect((await store.get(kind, later)).status?.circuit).toMatchObject({ state: 'open' }));
  for (const { status: is } of await copies()) {
    expect(is?.circuit).toBeUndefined();
    expect(is?.conditions?.map(({ type }) => type)).not.toContain('Delivering');
  }
});

const hooks = { namespace: 'acme', name: 'hooks' };

/** Makes a webhook endpoint; its circuit. */
async function webhookTarget(): Promise<{ org: string; route: string; destination: string }> {
  const options = { manager: 'test', force: true };
  const data = { secret: Buffer.from(`whsec_${Buffer.alloc(32, 1).toString('base64')}`).toString('base64') };
  await store.apply({ kind: 'Secret', metadata: { ...hooks, name: 'signing' }, data }, options);
  const application = await store.apply({ kind: 'WebhookApplication', metadata: { ...hooks, name: 'customer' }, spec: {} }, options);
  const spec = {
    applicationRef: { name: 'customer' },
    url: 'https://customer.example/',
    signingSecretRef: { name: 'signing', key: 'secret' },
  };
  const endpoint = await store.apply({ kind: 'WebhookEndpoint', metadata: hooks, spec }, options);
  return {
    org: webhookOrganization(ids.org),
    route: idOf('WebhookApplication', application),
    destination: idOf('WebhookEndpoint', endpoint),
  };
}

test('an open circuit is in the status of its route and its destination, with an event, and neither is less Ready', async () => {
  const before = (await store.get('Route', route)).metadata.generation;
  await open();
  for (const kind of ['Route', 'Destination'] as const) {
    await eventually(async () => expect(await status(kind, 'Delivering')).toBe('False'));
    const object = await store.get(kind, kind === 'Route' ? route : destination);
    expect(object.status?.circuit).toMatchObject({ state: 'open' });
    expect(await status(kind, 'Ready')).toBe('True');
    expect(object.metadata.managedFields?.some(({ manager }) => manager === 'posthorn-health')).toBe(true);
    const [time] = [String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`];
    expect(object.status?.conditions?.find(({ type }) => type === 'Delivering')?.message).toMatch(
      new RegExp(
        `^the circuit from the route all to the destination shop is open since ${time}; the last attempt failed with status 500; the next probe is due at ${time}; deliveries wait or fail over$`,
      ),
    );
  }
  expect((await store.get('Route', route)).metadata.generation).toBe(before);
  await eventually(() =>
    expect(controllers.events.filter(({ reason }) => reason === 'CircuitOpen').map(({ object }) => object.kind)).toEqual(
      expect.arrayContaining(['Route', 'Destination']),
    ),
  );
});

test('the leader counts the circuits that are not closed, and another process none', async () => {
  const counted = async () =>
    Object.fromEntries(
      ((await controllers.metrics.getSingleMetric('posthorn_circuits')?.get())?.values ?? []).map(({ labels, value }) => [
        labels['state'],
        value,
      ]),
    );
  await eventually(async () => expect(await counted()).toEqual({ open: 0, half_open: 0 }));
  await open();
  await eventually(async () => expect(await counted()).toEqual({ open: 1, half_open: 0 }));
  await open(await webhookTarget());
  await eventually(async () => expect(await counted()).toEqual({ open: 2, half_open: 0 }));
  await new Circuits({ redis: redis.client, prefix }).reset(ids.org, ids.route, [ids.destination]);
  await eventually(async () => expect(await counted()).toEqual({ open: 1, half_open: 0 }));
  await controllers.stop();
  expect(await counted()).toEqual({});
});

test('the circuits of a deleted route do not count, for its destination neither, and not for the next leader', async () => {
  const counted = async () => (await controllers.metrics.getSingleMetric('posthorn_circuits')?.get())?.values.map(({ value }) => value);
  await open();
  await eventually(async () => expect(await status('Destination', 'Delivering')).toBe('False'));
  await store.delete('Route', route);
  // A status is written every half minute at most.
  await eventually(async () => expect(await status('Destination', 'Delivering')).toBe('True'), 80_000);
  expect(await counted()).toEqual([0, 0]);
  expect(await new Circuits({ redis: redis.client, prefix }).broken()).toHaveLength(1);
  await controllers.stop();
  controllers = startControllers({ store, redis: redis.client, prefix });
  await eventually(async () => expect(await counted()).toEqual([0, 0]));
});

test.each([
  ['route', 'Route', route],
  ['destination', 'Destination', destination],
  ['webhook endpoint', 'WebhookEndpoint', hooks],
] as const)('the circuit of a deleted %s does not count', async (_, kind, key) => {
  const counted = async () => (await controllers.metrics.getSingleMetric('posthorn_circuits')?.get())?.values.map(({ value }) => value);
  await open(kind === 'WebhookEndpoint' ? await webhookTarget() : ids);
  await eventually(async () => expect(await counted()).toEqual([1, 0]));
  await store.delete(kind, key);
  await eventually(async () => expect(await counted()).toEqual([0, 0]));
});

test('a deleted route that only claimed the id of another one does not clear the circuits of that', async () => {
  await open();
  await eventually(async () => expect(await status('Route', 'Delivering')).toBe('False'));
  const copy = { namespace: 'elsewhere', name: 'copy' };
  const annotations = { 'posthorn.dev/id': ids.route };
  const spec = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] };
  await store.apply({ kind: 'Namespace', metadata: { name: copy.namespace } }, { manager: 'test' });
  await store.apply({ kind: 'Route', metadata: { ...copy, annotations }, spec }, { manager: 'test', force: true });
  await eventually(async () => expect((await store.get('Route', copy)).status?.conditions).toBeDefined());
  await store.delete('Route', copy);
  // A later deletion is seen after it.
  const other = { namespace: 'elsewhere', name: 'other' };
  await store.apply({ kind: 'Route', metadata: other, spec }, { manager: 'test', force: true });
  await eventually(async () => expect((await store.get('Route', other)).status?.conditions).toBeDefined());
  const shown = (await controllers.metrics.getSingleMetric('posthorn_circuits')?.get())?.values.find(
    ({ labels }) => labels['state'] === 'open',
  );
  expect(shown?.value).toBe(1);
  expect(await status('Route', 'Delivering')).toBe('False');
});

test('what changed while nobody led is found by the next leader', async () => {
  await controllers.stop();
  await open();
  controllers = startControllers({ store, redis: redis.client, prefix });
  await eventually(async () => expect(await status('Route', 'Delivering')).toBe('False'));
  await controllers.stop();
  await new Circuits({ redis: redis.client, prefix }).reset(ids.org, ids.route, [ids.destination]);
  controllers = startControllers({ store, redis: redis.client, prefix });
  await eventually(async () => expect(await status('Route', 'Delivering')).toBe('True'));
  expect((await store.get('Route', route)).status?.circuit?.state).toBe('closed');
});

test('a circuit that moves to and fro makes one write in half a minute', async () => {
  const circuits = new Circuits({ redis: redis.client, prefix });
  await open();
  await eventually(async () => expect(await status('Route', 'Delivering')).toBe('False'));
  const version = (await store.get('Route', route)).metadata.resourceVersion;
  await circuits.reset(ids.org, ids.route, [ids.destination]);
  await open();
  await circuits.reset(ids.org, ids.route, [ids.destination]);
  expect(await circuits.broken()).toEqual([]);
  await sleep(500);
  expect((await store.get('Route', route)).metadata.resourceVersion).toBe(version);
});

test('circuits of webhook endpoints and of channels do not keep those of routes from being written', async () => {
  await open({ org: webhookOrganization(ids.org), route: 'app_a', destination: 'ep_a' });
  await open({ org: alertOrganization(ids.org), route: '~nch_a', destination: 'nch_a' });
  await open();
  await eventually(async () => expect(await status('Route', 'Delivering')).toBe('False'));
  expect(await new Circuits({ redis: redis.client, prefix }).broken()).toHaveLength(3);
  // And of a leader that finds them there.
  await controllers.stop();
  await new Circuits({ redis: redis.client, prefix }).reset(ids.org, ids.route, [ids.destination]);
  controllers = startControllers({ store, redis: redis.client, prefix });
  await eventually(async () => expect(await status('Route', 'Delivering')).toBe('True'));
});

test('the circuit of a webhook endpoint is in its status', async () => {
  const target = await webhookTarget();
  const read = () => store.get('WebhookEndpoint', hooks);
  await eventually(async () =>
    expect((await read()).status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' })),
  );
  await open(target);
  await eventually(async () => expect((await read()).status?.circuit).toMatchObject({ state: 'open', since: expect.any(String) }));
  const conditions = (await read()).status?.conditions;
  const message = expect.stringMatching(
    /^the circuit to the endpoint hooks is open since .*; the last attempt failed with status 500; the next probe/,
  );
  expect(conditions).toContainEqual(expect.objectContaining({ type: 'Delivering', status: 'False', reason: 'CircuitOpen', message }));
  expect(conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
});

test('many circuits that open at once are reported ten a second, their destination first', async () => {
  const names = Array.from({ length: 30 }, (_, i) => `route-${i}`);
  const routes = await Promise.all(
    names.map((name) =>
      store.apply(
        { kind: 'Route', metadata: { ...route, name }, spec: { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] } },
        { manager: 'test', force: true },
      ),
    ),
  );
  await eventually(() => expect(controllers.caches.Route.list()).toHaveLength(names.length + 1));
  await controllers.stop();
  for (const object of routes) await open({ ...ids, route: idOf('Route', object) });
  // The next one reads the details of its circuit first.
  const { ofTargets } = Circuits.prototype;
  const turnsAtMs: number[] = [];
  const reading = jest.spyOn(Circuits.prototype, 'ofTargets').mockImplementation(function (this: Circuits, ...asked) {
    turnsAtMs.push(performance.now());
    return ofTargets.apply(this, asked);
  });
  controllers = startControllers({ store, redis: redis.client, prefix });
  const told = () => controllers.events.filter(({ reason }) => reason === 'CircuitOpen');
  await eventually(() => expect(told()).toHaveLength(names.length + 1));
  reading.mockRestore();
  expect(
    told()
      .slice(0, 2)
      .map(({ object }) => object.kind),
  ).toContain('Destination');
  expect(turnsAtMs).toHaveLength(names.length + 1);
  for (const [i, atMs] of turnsAtMs.entries())
    expect(turnsAtMs.filter((other, j) => j >= i && other < atMs + 1000).length).toBeLessThanOrEqual(11);
  for (const { metadata } of routes) expect((await store.get('Route', metadata)).status?.circuit).toMatchObject({ state: 'open' });
});
