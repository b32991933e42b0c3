import { describe, expect, test } from '@jest/globals';
import { controllerSuite } from '../../../test/support/controller-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { Clock } from '../../core/clock.ts';
import type { RecordKind } from '../../core/records.ts';
import type { ConfigurationKind } from '../../resources/kinds.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { idManager } from './organization-reconciler.ts';

const suite = controllerSuite();
const options = { manager: 'test', force: true };
const inAcme = (name: string) => ({ namespace: 'acme', name });
const kept = ['route', 'destination', 'transform'] as const;
const withdrawn = ['source', 'apiKey', 'cronJob', 'replay'] as const;

const organization = (name = 'acme', spec: object = {}) =>
  suite.store.apply({ kind: 'Organization', metadata: { name }, spec: { namespace: 'acme', ...spec } }, options);

async function resources(): Promise<void> {
  const { store } = suite;
  const http = { url: 'https://shop.example/hook' };
  await store.apply({ kind: 'Source', metadata: inAcme('orders'), spec: {} }, options);
  await store.apply({ kind: 'Destination', metadata: inAcme('shop'), spec: { http } }, options);
  const code = 'function transform(event) { return event.payload; }';
  await store.apply({ kind: 'Transform', metadata: inAcme('same'), spec: { type: 'javascript', code } }, options);
  const refs = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }], transformRef: { name: 'same' } };
  await store.apply({ kind: 'Route', metadata: inAcme('all'), spec: refs }, options);
  await store.apply({ kind: 'ApiKey', metadata: inAcme('ci'), spec: { sha256: 'a'.repeat(64), role: 'admin' } }, options);
  await store.apply({ kind: 'HttpCronJob', metadata: inAcme('daily'), spec: { schedule: '0 0 * * *', url: http.url } }, options);
  await store.apply({ kind: 'Replay', metadata: inAcme('again'), spec: { what: 'deliveries' } }, options);
  await store.apply({ kind: 'WebhookApplication', metadata: inAcme('customer'), spec: {} }, options);
}

const shows = (kind: ConfigurationKind, name: string, wanted: string) =>
  eventually(async () => {
    const { status } = await suite.store.get(kind, kind === 'Organization' ? { name } : inAcme(name));
    const condition = status?.conditions?.find(({ type }) => type === 'Ready');
    expect(`${condition?.status} ${condition?.reason}`).toBe(wanted);
  });

async function allReady(): Promise<void> {
  await shows('Organization', 'acme', 'True Ready');
  for (const [kind, name] of [
    ['Source', 'orders'],
    ['Route', 'all'],
    ['ApiKey', 'ci'],
    ['HttpCronJob', 'daily'],
    ['Replay', 'again'],
    ['WebhookApplication', 'customer'],
  ] as const)
    await shows(kind, name, 'True Ready');
}

async function begin(spec: object = {}): Promise<string> {
  suite.start();
  await organization('acme', spec);
  await shows('Organization', 'acme', 'True Ready');
  await resources();
  await allReady();
  return (await suite.store.get('Organization', { name: 'acme' })).status?.id ?? '';
}

const ids = async (of: readonly RecordKind[]) =>
  Object.fromEntries(await Promise.all(of.map(async (kind) => [kind, (await suite.controllers.registry.ids(kind)).sort()] as const)));

async function deleted(name = 'acme'): Promise<void> {
  await suite.store.delete('Organization', { name });
  await eventually(async () => {
    const { items } = await suite.store.list('Organization');
    expect(items.map(({ metadata }) => metadata.name)).not.toContain(name);
  });
}

/** What is still to be done is done, among it a sweep. */
async function restart(aheadMs = 0): Promise<void> {
  await suite.controllers.stop();
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  suite.start({ clock });
  await shows('Source', 'orders', 'False OrganizationNotFound');
  await eventually(async () => expect(suite.controllers.caches.Organization.isFilled).toBe(true));
}

describe('an organization that is deleted and retained', () => {
  test('it keeps its namespace, its resources and the records by which its messages are delivered, and loses those by which anything is accepted', async () => {
    const id = await begin();
    const before = await ids(kept);
    await deleted();
    expect((await suite.store.get('Namespace', { name: 'acme' })).metadata.labels ?? {}).not.toHaveProperty('posthorn.dev/organization');
    expect(await suite.controllers.registry.get('organization', id)).toMatchObject({ id, retained: { atMs: expect.any(Number) } });
    await shows('Source', 'orders', 'False OrganizationNotFound');
    for (let life = 0; life < 2; life++) {
      expect(await ids(kept)).toEqual(before);
      expect(await ids(withdrawn)).toEqual({ source: [], apiKey: [], cronJob: [], replay: [] });
      await restart();
    }
    await eventually(async () => expect(suite.controllers.caches.retained.get(id)?.slug).toBe('acme'));
  });

  test('an Organization that has taken everything up keeps it when a user removes the annotation with its id', async () => {
    const id = await begin();
    const before = await ids(kept);
    await deleted();
    await organization();
    await allReady();
    // What `kubectl replace` with a manifest without it does.
    await suite.store.apply({ kind: 'Organization', metadata: { name: 'acme' } }, { manager: idManager, force: true });
    await eventually(async () => {
      const { metadata } = await suite.store.get('Organization', { name: 'acme' });
      expect(metadata.annotations?.['posthorn.dev/id']).toBe(id);
    });
    await allReady();
    expect((await suite.store.get('Organization', { name: 'acme' })).status?.id).toBe(id);
    expect(await ids(kept)).toEqual(before);
  });

  test('an Organization of the same name and namespace takes everything up under the same ids, also what was made meanwhile', async () => {
    const id = await begin();
    const before = await ids([...kept, ...withdrawn]);
    await deleted();
    await restart();
    await suite.store.apply({ kind: 'Source', metadata: inAcme('late'), spec: {} }, options);
    await shows('Source', 'late', 'False OrganizationNotFound');
    await organization();
    await allReady();
    await shows('Source', 'late', 'True Ready');
    const { metadata, status } = await suite.store.get('Organization', { name: 'acme' });
    expect([status?.id, metadata.annotations?.['posthorn.dev/id']]).toEqual([id, id]);
    const late = (await suite.store.get('Source', inAcme('late'))).status?.id ?? '';
    const after = await ids([...kept, ...withdrawn]);
    expect(after).toEqual({ ...before, source: [...(before['source'] ?? []), late].sort() });
    expect(await suite.controllers.registry.get('source', late)).toMatchObject({ org: id });
    expect(await suite.controllers.registry.get('organization', id)).not.toHaveProperty('retained');
    expect(await ids(['organization'])).toEqual({ organization: [id] });
  });

  test.each([
    ['another name', 'globex'],
    ['a namespace that was made anew', 'acme'],
  ])('an Organization with %s gets an id of its own', async (_, name) => {
    const id = await begin();
    await deleted();
    if (name === 'acme') await suite.store.delete('Namespace', { name: 'acme' });
    await organization(name);
    await shows('Organization', name, 'True Ready');
    expect((await suite.store.get('Organization', { name })).status?.id).not.toBe(id);
  });

  test('one that is deleted while nobody leads is retained by the next leader', async () => {
    const id = await begin();
    const before = await ids(kept);
    await suite.controllers.stop();
    const released = { kind: 'Organization' as const, metadata: { name: 'acme', finalizers: [] } };
    await suite.store.apply(released, { manager: 'posthorn-controller', force: true });
    await suite.store.delete('Organization', { name: 'acme' });
    await restart();
    await eventually(async () => expect(await ids(withdrawn)).toEqual({ source: [], apiKey: [], cronJob: [], replay: [] }));
    expect(await ids(kept)).toEqual(before);
    await eventually(async () => expect(suite.controllers.caches.retained.get(id)).toBeDefined());
  });

  test('after 37 days nothing of it is left in Redis, and its resources are still there', async () => {
    const id = await begin();
    await deleted();
    await restart(36 * 86_400_000);
    expect(await suite.controllers.registry.get('organization', id)).not.toBeNull();
    await restart(38 * 86_400_000);
    await eventually(async () =>
      expect(await ids(['organization', ...kept])).toEqual({ organization: [], route: [], destination: [], transform: [] }),
    );
    expect((await suite.store.get('Route', inAcme('all'))).metadata.name).toBe('all');
    await organization();
    await shows('Organization', 'acme', 'True Ready');
    expect((await suite.store.get('Organization', { name: 'acme' })).status?.id).not.toBe(id);
  });

  test('a resource that is deleted meanwhile loses its record', async () => {
    await begin();
    await deleted();
    await suite.store.delete('Route', inAcme('all'));
    await eventually(async () => expect(await ids(['route'])).toEqual({ route: [] }));
  });
});

describe('an organization that is deleted with its data', () => {
  test('its namespace goes although an earlier Organization of its id made it', async () => {
    await begin();
    await deleted();
    await organization('acme', { deletionPolicy: 'Delete' });
    await allReady();
    await deleted();
    await expect(suite.store.get('Namespace', { name: 'acme' })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    expect(await ids(['organization', ...kept, ...withdrawn])).toEqual(
      Object.fromEntries(['organization', ...kept, ...withdrawn].map((kind) => [kind, []])),
    );
  });

  test('its namespace stays with a Secret that is not of Posthorn, and an event names it', async () => {
    await begin({ deletionPolicy: 'Delete' });
    await suite.store.apply({ kind: 'Secret', metadata: inAcme('own'), data: { a: 'Yg==' } }, options);
    await deleted();
    expect((await suite.store.getSecret(inAcme('own'))).data).toEqual({ a: 'Yg==' });
    await eventually(async () => expect(await ids(['organization', 'route'])).toEqual({ organization: [], route: [] }));
    expect(suite.controllers.events).toContainEqual(
      expect.objectContaining({ reason: 'NamespaceKept', message: expect.stringContaining('Secret own') }),
    );
  });
});
