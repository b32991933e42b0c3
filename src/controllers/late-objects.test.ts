import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type RunningControllers, startControllers } from '../../test/support/controllers.ts';
import { eventually } from '../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import type { Clock } from '../core/clock.ts';
import type { Kind } from '../resources/kinds.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import type { ApplyObject } from '../store/store.ts';

const shop = { name: 'shop', namespace: 'acme' };
const token = { name: 'token', namespace: 'acme' };

let redis: RedisServer;
let store: MemoryStore;
let controllers: RunningControllers;
/** Stops the clock, so that nothing is late; null: it runs. */
let stoppedAtMs: number | null;
const clock: Clock = { ...systemClock, now: () => stoppedAtMs ?? systemClock.now() };

beforeEach(async () => {
  redis = await startRedis();
  stoppedAtMs = systemClock.now();
  store = new MemoryStore(clock);
  controllers = startControllers({ store, redis: redis.client, prefix: 'test:', clock });
  await store.create({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, { manager: 'test' });
  await eventually(() => store.get('Namespace', { name: 'acme' }));
  const auth = { type: 'bearer' as const, tokenSecretRef: { name: 'token', key: 'value' } };
  await store.create({ kind: 'Destination', metadata: shop, spec: { http: { url: 'https://shop.example/', auth } } }, { manager: 'test' });
});
afterEach(async () => {
  await controllers.stop();
  await redis.stop();
});

const makeSecret = () => store.create({ kind: 'Secret', metadata: token, data: { value: 'Zmlyc3Q=' } }, { manager: 'test' });
const expectReady = (status: string, reason: string) =>
  eventually(async () => {
    const { conditions = [] } = (await store.get('Destination', shop)).status ?? {};
    expect(conditions.find(({ type }) => type === 'Ready')).toMatchObject({ status, reason });
  });
const news = () => controllers.events.filter(({ object }) => object.kind === 'Destination').map(({ reason }) => reason);

test('a Secret that is made just after what refers to it, as the API makes it, was never missing', async () => {
  // By then the controllers have reconciled the destination.
  await sleep(500);
  expect((await store.get('Destination', shop)).status?.conditions).toBeUndefined();
  await makeSecret();
  await expectReady('True', 'Ready');
  expect(news()).toEqual([]);
});

test('a Secret that does not come is missing, and one that goes is missing at once', async () => {
  stoppedAtMs = null;
  await expectReady('False', 'SecretNotFound');
  expect(news()).toEqual(['SecretNotFound']);
  await makeSecret();
  await expectReady('True', 'Ready');
  await store.delete('Secret', token);
  await expectReady('False', 'SecretNotFound');
});

describe('objects that are applied before what they refer to', () => {
  const at = (name: string, namespace = 'acme') => ({ name, namespace });
  const makeNamespace = (name: string) => store.create({ kind: 'Namespace', metadata: { name } }, { manager: 'test' });
  const make = (kind: Kind, name: string, spec: object, namespace?: string) =>
    store.create({ kind, metadata: at(name, namespace), spec } as ApplyObject, { manager: 'test' });
  const reasonsOf = (kind: Kind) => controllers.events.filter(({ object }) => object.kind === kind).map(({ reason }) => reason);
  const readyOf = async (kind: 'Route' | 'Source', name: string, namespace?: string) => {
    const { conditions = [] } = (await store.get(kind, at(name, namespace))).status ?? {};
    return conditions.find(({ type }) => type === 'Ready');
  };
  const url = 'https://shop.example/';
  const sourceRef = { name: 'orders' };
  const destinationRefs = [{ name: 'later' }];
  const there = { Source: () => make('Source', 'orders', {}), Destination: () => make('Destination', 'later', { http: { url } }) };

  test.each<[missing: string, kind: 'Route', spec: object, make: () => Promise<unknown>, before: (() => Promise<unknown>)[]]>([
    ['SourceNotFound', 'Route', { sourceRef, destinationRefs }, there.Source, [there.Destination]],
    ['DestinationNotFound', 'Route', { sourceRef, destinationRefs }, there.Destination, [there.Source]],
    [
      'FilterNotFound',
      'Route',
      { sourceRef, destinationRefs, filterRef: { name: 'large' } },
      () => make('Filter', 'large', { conditions: [{ field: 'payload.total', operator: 'gt', value: 1000 }] }),
      [there.Source, there.Destination],
    ],
    [
      'ChannelNotFound',
      'Route',
      { sourceRef, destinationRefs, notifications: { channelRefs: [{ name: 'ops' }] } },
      () => make('NotificationChannel', 'ops', { type: 'webhook', webhook: { url } }),
      [there.Source, there.Destination],
    ],
    ['SourceNotFound', 'Route', { sourceRef, destinationRefs }, () => Promise.all([there.Destination(), there.Source()]), []],
  ])('%s of a %s is not reported while the object is new', async (missing, kind, spec, makeMissing, before) => {
    for (const makeObject of before) await makeObject();
    await make(kind, 'first', spec);
    await sleep(300);
    expect(await readyOf(kind, 'first')).toBeUndefined();
    await makeMissing();
    await eventually(async () => expect(await readyOf(kind, 'first')).toMatchObject({ status: 'True' }));
    expect(reasonsOf(kind)).not.toContain(missing);
  });

  test('an object that is applied before its Organization', async () => {
    await makeNamespace('globex');
    await make('Source', 'orders', {}, 'globex');
    await sleep(300);
    expect(await readyOf('Source', 'orders', 'globex')).toBeUndefined();
    await store.create({ kind: 'Organization', metadata: { name: 'globex' }, spec: { namespace: 'globex' } }, { manager: 'test' });
    await eventually(async () => expect(await readyOf('Source', 'orders', 'globex')).toMatchObject({ status: 'True' }));
    expect(reasonsOf('Source')).not.toContain('OrganizationNotFound');
  });

  test.each<[string, 'Route' | 'Source', object, string]>([
    ['SourceNotFound', 'Route', { sourceRef, destinationRefs }, 'acme'],
    ['OrganizationNotFound', 'Source', {}, 'initech'],
  ])('%s of a %s is reported once it is not new', async (missing, kind, spec, namespace) => {
    if (namespace !== 'acme') await makeNamespace(namespace);
    await make(kind, 'first', spec, namespace);
    stoppedAtMs = null;
    await eventually(async () => expect(await readyOf(kind, 'first', namespace)).toMatchObject({ status: 'False', reason: missing }));
  });
});
