import { afterEach, expect, test } from '@jest/globals';
import { type RunningControllers, startControllers } from '../../test/support/controllers.ts';
import { eventually } from '../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import type { ObjectOf, PosthornKind } from '../resources/kinds.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import type { ApplyObject } from '../store/store.ts';

let redis: RedisServer | undefined;
let controllers: RunningControllers | undefined;

afterEach(async () => {
  await controllers?.stop();
  await redis?.stop();
});

const inAcme = (name: string) => ({ namespace: 'acme', name });
const route = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] };

/** An object of each kind, made while Redis is down. */
const late: ApplyObject<PosthornKind>[] = [
  { kind: 'Organization', metadata: { name: 'second' }, spec: { namespace: 'second' } },
  { kind: 'Source', metadata: inAcme('late'), spec: {} },
  { kind: 'Destination', metadata: inAcme('late'), spec: { http: { url: 'https://late.example/' } } },
  { kind: 'Route', metadata: inAcme('late'), spec: route },
  { kind: 'HttpCronJob', metadata: inAcme('late'), spec: { schedule: '0 0 1 1 *', url: 'https://late.example/' } },
  { kind: 'NotificationChannel', metadata: inAcme('late'), spec: { type: 'email', email: { addresses: ['late@example.com'] } } },
  { kind: 'ApiKey', metadata: inAcme('late'), spec: { sha256: 'a'.repeat(64) } },
  { kind: 'WebhookApplication', metadata: inAcme('late'), spec: {} },
  { kind: 'WebhookEventType', metadata: inAcme('order.late'), spec: { name: 'order.late' } },
];

test('while Redis is down a new object and a new generation have the reason Unavailable, once; others stay as they are; all continue by themselves', async () => {
  const server = await startRedis();
  redis = server;
  const store = new MemoryStore(systemClock);
  controllers = startControllers({ store, redis: server.client, prefix: 'outage:' });
  const apply = (object: ApplyObject<PosthornKind>) => store.apply(object, { manager: 'test', force: true });
  const get = ({ kind, metadata }: ApplyObject<PosthornKind>): Promise<ObjectOf<PosthornKind>> => store.get(kind, metadata);
  const expectReady = (object: ApplyObject<PosthornKind>, status: string, reason: string) =>
    eventually(async () => {
      const { metadata, status: seen } = await get(object);
      expect([seen?.observedGeneration, seen?.conditions?.find(({ type }) => type === 'Ready')]).toEqual([
        metadata.generation,
        expect.objectContaining({ status, reason }),
      ]);
    });
  const source = (spec: object = {}): ApplyObject<PosthornKind> => ({ kind: 'Source', metadata: inAcme('orders'), spec });
  const shop: ApplyObject<PosthornKind> = {
    kind: 'Destination',
    metadata: inAcme('shop'),
    spec: { http: { url: 'https://shop.example/' } },
  };
  const acme: ApplyObject<PosthornKind> = { kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } };
  const schema: ApplyObject<PosthornKind> = { kind: 'PayloadSchema', metadata: inAcme('order'), spec: { jsonSchema: { type: 'object' } } };
  await apply(acme);
  await expectReady(acme, 'True', 'Ready');
  for (const object of [source(), shop, schema]) await apply(object);
  for (const object of [source(), shop, schema]) await expectReady(object, 'True', 'Ready');
  // Its source is edited during the outage: it works with the generation that is in force.
  const all: ApplyObject<PosthornKind> = { kind: 'Route', metadata: inAcme('all'), spec: route };
  await apply(all);
  await expectReady(all, 'True', 'Ready');
  const before = await get(shop);
  const version = (await get(schema)).status;

  await server.kill('SIGKILL');
  for (const object of late) await apply(object);
  await apply(source({ name: 'Renamed' }));
  await apply({ ...schema, spec: { jsonSchema: { type: 'array' } } } as ApplyObject<PosthornKind>);
  // Its resync is no news.
  await apply({ ...shop, metadata: { ...shop.metadata, labels: { team: 'a' } } });
  const waiting = [...late, source(), schema];
  for (const object of waiting) await expectReady(object, 'False', 'Unavailable');
  const seen = await Promise.all(waiting.map(get));
  for (const [index, { status }] of seen.entries()) {
    const message = expect.stringContaining('Redis does not answer');
    const reasons = { Programmed: index < late.length ? 'Unavailable' : 'EarlierInForce', Ready: 'Unavailable' };
    for (const [type, reason] of Object.entries(reasons))
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type, status: 'False', reason, message }));
    expect(status?.conditions?.map(({ type }) => type)).toContain('Reconciling');
  }
  expect((await get(schema)).status).toMatchObject({ version: version && 'version' in version ? version.version : 'none' });
  // Each has been retried, which wrote nothing.
  await eventually(async () => {
    const text = (await controllers?.metrics.metrics()) ?? '';
    const tries = text.split('\n').find((line) => line.includes('_total{') && line.includes('Source') && line.includes('unavailable'));
    expect(Number(tries?.split(' ').at(-1) ?? 0)).toBeGreaterThan(4);
  });
  for (const [index, object] of waiting.entries())
    expect((await get(object)).metadata.resourceVersion).toBe(seen[index]?.metadata.resourceVersion);
  expect((await get(shop)).status).toEqual(before.status);

  await server.start();
  for (const object of [...waiting, all]) await expectReady(object, 'True', 'Ready');
  const ofRoute = controllers.events.filter(({ object }) => object.kind === 'Route' && object.metadata.name === 'all');
  expect(ofRoute.map(({ reason }) => reason).filter((reason) => !['Ready', 'PartiallyInForce'].includes(reason))).toEqual([]);
});
