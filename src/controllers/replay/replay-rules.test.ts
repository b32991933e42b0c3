import { beforeEach, expect, test } from '@jest/globals';
import { controllerSuite } from '../../../test/support/controller-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import type { SpecInputOf } from '../../resources/kinds.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { idOf } from '../held-ids.ts';

const suite = controllerSuite();
const options = { manager: 'test', force: true };
const inAcme = (name: string) => ({ namespace: 'acme', name });
const again = inAcme('again');
const route = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] };
const spec = {
  what: 'deliveries',
  filter: { routeRef: { name: 'all' }, destinationRef: { name: 'shop' } },
  destinationRef: { name: 'other' },
} as const;

beforeEach(async () => {
  suite.start();
  await suite.store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, options);
  await eventually(async () => expect(await ready('Organization', { name: 'acme' })).toBe('True Ready'));
  await suite.store.apply({ kind: 'Source', metadata: inAcme('orders'), spec: {} }, options);
  for (const name of ['shop', 'other'])
    await suite.store.apply({ kind: 'Destination', metadata: inAcme(name), spec: { http: { url: `https://${name}.example/` } } }, options);
  await makeRoute();
});

const makeRoute = () => suite.store.apply({ kind: 'Route', metadata: inAcme('all'), spec: route }, options);
const apply = (more: Partial<SpecInputOf<'Replay'>> = {}) =>
  suite.store.apply({ kind: 'Replay', metadata: again, spec: { ...spec, ...more } }, options);

async function ready(kind: 'Organization' | 'Route' | 'Replay', key: { namespace?: string; name: string }): Promise<string> {
  const { metadata, status } = await suite.store.get(kind, key);
  const condition = status?.conditions?.find(({ type }) => type === 'Ready');
  return status?.observedGeneration === metadata.generation ? `${condition?.status} ${condition?.reason}` : '';
}
const becomes = (expected: string) => eventually(async () => expect(await ready('Replay', again)).toBe(expected), 10_000);
async function record(): Promise<ReplayRecord | null> {
  return await suite.controllers.registry.get('replay', idOf('Replay', await suite.store.get('Replay', again)));
}

test('a replay is published with the ids of what it names', async () => {
  await apply();
  await becomes('True Ready');
  const [all, shop, other] = await Promise.all([
    suite.store.get('Route', inAcme('all')),
    suite.store.get('Destination', inAcme('shop')),
    suite.store.get('Destination', inAcme('other')),
  ]);
  expect(await record()).toMatchObject({
    filter: { statuses: ['dlq'], routeId: idOf('Route', all), destinationId: idOf('Destination', shop) },
    destinationId: idOf('Destination', other),
  });
});

test('a replay that names several of each begins once all of them exist, and keeps their ids', async () => {
  await apply({ filter: { routeRefs: [{ name: 'all' }], destinationRefs: [{ name: 'shop' }, { name: 'late' }] } });
  await becomes('False DestinationNotFound');
  expect(await record()).toBeNull();
  await suite.store.apply({ kind: 'Destination', metadata: inAcme('late'), spec: { http: { url: 'https://late.example/' } } }, options);
  await becomes('True Ready');
  const [all, shop, late] = await Promise.all([
    suite.store.get('Route', inAcme('all')),
    suite.store.get('Destination', inAcme('shop')),
    suite.store.get('Destination', inAcme('late')),
  ]);
  const filter = {
    statuses: ['dlq'],
    routeId: [idOf('Route', all)],
    destinationId: [idOf('Destination', shop), idOf('Destination', late)],
  };
  expect(await record()).toMatchObject({ filter });
  await suite.store.delete('Destination', inAcme('shop'));
  await becomes('True PartiallyInForce');
  expect(await record()).toMatchObject({ filter });
});

test('a replay that names what does not exist is not published before that is there', async () => {
  await suite.store.delete('Route', inAcme('all'));
  await apply();
  await becomes('False RouteNotFound');
  expect(await record()).toBeNull();
  await makeRoute();
  await becomes('True Ready');
  expect(await record()).not.toBeNull();
});

test('a replay continues by the ids that it began with when its route is deleted and made again, and can be suspended and cancelled', async () => {
  await apply();
  await becomes('True Ready');
  const began = await record();
  await suite.store.delete('Route', inAcme('all'));
  await becomes('True PartiallyInForce');
  const { status } = await suite.store.get('Replay', again);
  expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'ResolvedRefs', status: 'False', reason: 'RouteNotFound' }));
  expect(await record()).toEqual(began);
  await apply({ suspend: true });
  await eventually(async () => expect(await record()).toEqual({ ...began, isSuspended: true, generation: 2 }));
  await makeRoute();
  await becomes('True Ready');
  await apply({ cancel: true });
  await eventually(async () => expect(await record()).toEqual({ ...began, isCancelled: true, generation: 3 }));
});

test('a replay begins by applications that the organization has or had, and by no others', async () => {
  const { redis, prefix } = suite;
  const webhooks = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  const org = idOf('Organization', await suite.store.get('Organization', { name: 'acme' }));
  const { id } = await webhooks.createApplication({ org, name: 'Customer', shard: 0 });
  const ofApplications = (...applicationIds: string[]) =>
    apply({ what: 'messages', filter: { applicationIds }, destinationRef: undefined });
  await ofApplications(id, 'app_nobody');
  await becomes('False ApplicationNotFound');
  const { status } = await suite.store.get('Replay', again);
  expect(status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'ResolvedRefs', message: 'the filter names applications that do not exist: app_nobody' }),
  );
  expect(await record()).toBeNull();
  await suite.store.delete('Replay', again);
  await webhooks.deleteApplication(org, id);
  await ofApplications(id);
  await becomes('True Ready');
  expect(await record()).toMatchObject({ filter: { applicationId: [id] } });
});

test('a replay whose other destination is deleted stays published, and is not ready', async () => {
  await apply();
  await becomes('True Ready');
  const began = await record();
  await suite.store.delete('Destination', inAcme('other'));
  await becomes('False DestinationNotFound');
  expect(await record()).toEqual(began);
});

test('a replay whose expression does not compile is refused', async () => {
  await apply({ filter: { where: 'event.type ==' }, destinationRef: { name: 'other' } });
  await becomes('False InvalidFilter');
  expect(await record()).toBeNull();
});

test('the record of a replay goes with its object', async () => {
  await apply();
  await becomes('True Ready');
  const id = idOf('Replay', await suite.store.get('Replay', again));
  await suite.store.delete('Replay', again);
  await eventually(async () => expect(await suite.controllers.registry.get('replay', id)).toBeNull());
});
