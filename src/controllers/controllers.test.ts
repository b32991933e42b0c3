import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { testKeyring } from '../../test/support/controllers.ts';
import { eventually } from '../../test/support/eventually.ts';
import { httpSettings } from '../../test/support/records.ts';
import { recordSealingContext, secretSealingContext } from '../core/sealing-contexts.ts';
import type { Kind, ObjectOf, PosthornKind } from '../resources/kinds.ts';
import type { ApplyObject, Key } from '../store/store.ts';
import { idOf } from './held-ids.ts';

const signingSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

const suite = controllerSuite();

async function apply<K extends Kind>(object: ApplyObject<K>): Promise<ObjectOf<K>> {
  return suite.store.apply(object, { manager: 'test', force: true });
}
const organization = (spec: object = {}) =>
  apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', ...spec } });
const inAcme = (name: string) => ({ name, namespace: 'acme' });
const source = (spec: object = {}) => apply({ kind: 'Source', metadata: inAcme('orders'), spec });
const destination = (name = 'shop', http: object = {}) =>
  apply({ kind: 'Destination', metadata: inAcme(name), spec: { http: { url: `https://${name}.example/hook`, ...http } } });
const route = (spec: object = {}) =>
  apply({ kind: 'Route', metadata: inAcme('all'), spec: { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }], ...spec } });
const secret = (name: string, data: Record<string, string>) =>
  apply({
    kind: 'Secret',
    metadata: inAcme(name),
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
  });

/** The conditions of a reconciled object, as `status reason`. */
async function conditions(kind: PosthornKind, key: Key): Promise<Record<string, string>> {
  return eventually(async () => {
    const { metadata, status } = await suite.store.get(kind, key);
    if (status?.observedGeneration !== metadata.generation) throw new Error(`${kind} ${key.name} has not been reconciled`);
    return Object.fromEntries((status.conditions ?? []).map(({ type, status: value, reason }) => [type, `${value} ${reason}`]));
  });
}
async function expectReady(kind: PosthornKind, key: Key, ready = 'True Ready'): Promise<void> {
  await eventually(async () => expect(await conditions(kind, key)).toMatchObject({ Ready: ready }));
}
async function namespaceOfAcme(spec: object = {}): Promise<void> {
  await organization(spec);
  await expectReady('Organization', { name: 'acme' });
}

describe('an organization', () => {
  test('an organization gets its namespace made, and is ready', async () => {
    suite.start();
    await namespaceOfAcme();
    const namespace = await suite.store.get('Namespace', { name: 'acme' });
    expect(namespace.metadata.labels).toMatchObject({ 'posthorn.dev/organization': 'acme' });
    expect((await suite.store.get('Organization', { name: 'acme' })).status?.namespaceUid).toBe(namespace.metadata.uid);
  });

  test('an organization whose namespace an older one has is refused', async () => {
    suite.start();
    await namespaceOfAcme();
    await sleep(1100); // creation times are in seconds
    await apply({ kind: 'Organization', metadata: { name: 'second' }, spec: { namespace: 'acme' } });
    await expectReady('Organization', { name: 'second' }, 'False NamespaceTaken');
  });

  test('an organization that is deleted takes the namespace made for it along, and leaves no key in Redis', async () => {
    suite.start();
    await namespaceOfAcme({ deletionPolicy: 'Delete' });
    await source();
    await destination();
    await route();
    await expectReady('Route', inAcme('all'));
    await suite.store.delete('Organization', { name: 'acme' });
    await eventually(async () => {
      await expect(suite.store.get('Organization', { name: 'acme' })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
      await expect(suite.store.get('Namespace', { name: 'acme' })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    });
    for (const kind of ['organization', 'source', 'destination', 'route'] as const)
      expect(await suite.controllers.registry.ids(kind)).toEqual([]);
  });

  test.each(['Retain', 'Delete'] as const)(
    'an organization that is deleted leaves an adopted namespace, and its policy decides about its resources: %s',
    async (deletionPolicy) => {
      await apply({ kind: 'Namespace', metadata: { name: 'acme' } });
      suite.start();
      await namespaceOfAcme({ deletionPolicy });
      await source();
      await expectReady('Source', inAcme('orders'));
      await suite.store.delete('Organization', { name: 'acme' });
      if (deletionPolicy === 'Retain') await expectReady('Source', inAcme('orders'), 'False OrganizationNotFound');
      else
        await eventually(() => expect(suite.store.get('Source', inAcme('orders'))).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }));
      await eventually(async () =>
        expect((await suite.store.get('Namespace', { name: 'acme' })).metadata.labels).not.toHaveProperty(['posthorn.dev/organization']),
      );
      expect(await suite.controllers.registry.ids('source')).toEqual([]);
    },
  );

  test('an organization whose namespace is deleted is taken out of force and the namespace is not made again', async () => {
    suite.start();
    await namespaceOfAcme();
    await source();
    await expectReady('Source', inAcme('orders'));
    await suite.store.delete('Namespace', { name: 'acme' });
    await expectReady('Organization', { name: 'acme' }, 'False NamespaceGone');
    for (const kind of ['organization', 'source'] as const)
      await eventually(async () => expect(await suite.controllers.registry.ids(kind)).toEqual([]));
    await expect(suite.store.get('Namespace', { name: 'acme' })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  });
});

describe('a resource', () => {
  test('a resource that is refused after an edit keeps its last record in force and reports it', async () => {
    suite.start();
    await namespaceOfAcme();
    await secret('sign', { value: signingSecret });
    const made = await source({ provider: 'standard-webhooks', signingSecretRef: { name: 'sign', key: 'value' } });
    await expectReady('Source', inAcme('orders'));
    await secret('sign', { value: 'whsec_short' });
    await expectReady('Source', inAcme('orders'), 'False InvalidSigningSecret');
    expect(await conditions('Source', inAcme('orders'))).toEqual({
      Accepted: 'False InvalidSigningSecret',
      ResolvedRefs: 'True ResolvedRefs',
      Programmed: 'False EarlierInForce',
      Ready: 'False InvalidSigningSecret',
      Stalled: 'True InvalidSigningSecret',
    });
    expect(await suite.controllers.registry.get('source', idOf('Source', made))).toMatchObject({
      generation: 1,
      signingSecrets: [expect.any(String)],
    });
  });

  test('a resource in a namespace without an Organization waits for one', async () => {
    await apply({ kind: 'Namespace', metadata: { name: 'acme' } });
    await source();
    suite.start();
    await eventually(async () =>
      expect(await conditions('Source', inAcme('orders'))).toEqual({
        Accepted: 'False OrganizationNotFound',
        ResolvedRefs: 'Unknown NotAccepted',
        Programmed: 'False NotAccepted',
        Ready: 'False OrganizationNotFound',
        Reconciling: 'True OrganizationNotFound',
      }),
    );
    await organization();
    await expectReady('Source', inAcme('orders'));
  });

  test('a resource that claims the id of an older one is refused, and gets it when that one goes', async () => {
    suite.start();
    await namespaceOfAcme();
    const first = await destination('shop');
    await sleep(1100); // creation times are in seconds
    const id = idOf('Destination', first);
    await apply({
      kind: 'Destination',
      metadata: { ...inAcme('thief'), annotations: { 'posthorn.dev/id': id } },
      spec: { http: { url: 'https://thief.example' } },
    });
    await expectReady('Destination', inAcme('thief'), 'False IdTaken');
    expect(await suite.controllers.registry.get('destination', id)).toMatchObject({ slug: 'shop' });
    await source();
    await route({ destinationRefs: [{ name: 'thief' }] });
    await expectReady('Route', inAcme('all'), 'False DestinationNotFound');
    await suite.store.delete('Destination', inAcme('shop'));
    await expectReady('Destination', inAcme('thief'));
    expect(await suite.controllers.registry.get('destination', id)).toMatchObject({ slug: 'thief' });
    await expectReady('Route', inAcme('all'));
  });

  test('a resource stays when another organization goes that claimed its id', async () => {
    suite.start();
    await namespaceOfAcme();
    const id = idOf('Destination', await destination('shop'));
    await expectReady('Destination', inAcme('shop'));
    await sleep(1100); // creation times are in seconds
    await apply({ kind: 'Namespace', metadata: { name: 'copy' } });
    await apply({ kind: 'Organization', metadata: { name: 'copy' }, spec: { namespace: 'copy' } });
    const copy = { namespace: 'copy', name: 'shop' };
    await apply({
      kind: 'Destination',
      metadata: { ...copy, annotations: { 'posthorn.dev/id': id } },
      spec: { http: { url: 'https://copy.example' } },
    });
    await expectReady('Destination', copy, 'False IdTaken');
    await suite.store.delete('Organization', { name: 'copy' });
    await eventually(async () => {
      await expect(suite.store.get('Organization', { name: 'copy' })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    });
    expect(await suite.controllers.registry.get('destination', id)).toMatchObject({ slug: 'shop' });
  });

  test('a resource that requests an id that is none of its kind is refused', async () => {
    suite.start();
    await namespaceOfAcme();
    await apply({
      kind: 'Destination',
      metadata: { ...inAcme('odd'), annotations: { 'posthorn.dev/id': 'dst_a\nb' } },
      spec: { http: { url: 'https://odd.example' } },
    });
    await expectReady('Destination', inAcme('odd'), 'False InvalidId');
  });

  test('a resource that was deleted while no controller ran is swept away', async () => {
    suite.start();
    await namespaceOfAcme();
    await source();
    await expectReady('Source', inAcme('orders'));
    await suite.controllers.stop();
    await suite.store.delete('Source', inAcme('orders'));
    suite.start();
    await eventually(async () => expect(await suite.controllers.registry.ids('source')).toEqual([]));
  });
});

describe('a route', () => {
  test('a route waits for its source, is ready once that is there, and reports it by an event', async () => {
    suite.start();
    await namespaceOfAcme();
    await destination();
    await route();
    await expectReady('Route', inAcme('all'), 'False SourceNotFound');
    const made = await source();
    await expectReady('Route', inAcme('all'));
    const record = await suite.controllers.registry.get('route', idOf('Route', await suite.store.get('Route', inAcme('all'))));
    expect(record).toMatchObject({ sourceId: idOf('Source', made), destinations: [{ shard: 0 }], filter: null });
    expect(suite.controllers.events.filter(({ object }) => object.kind === 'Route').map(({ type, reason }) => `${type} ${reason}`)).toEqual(
      ['Warning SourceNotFound', 'Normal Ready'],
    );
  });

  test('a route continues with the other destinations when one is missing', async () => {
    suite.start();
    await namespaceOfAcme();
    await source();
    const shop = await destination('shop');
    await route({ destinationRefs: [{ name: 'shop' }, { name: 'lost' }] });
    await expectReady('Route', inAcme('all'), 'True PartiallyInForce');
    expect(await conditions('Route', inAcme('all'))).toEqual({
      Accepted: 'True Accepted',
      ResolvedRefs: 'False DestinationNotFound',
      Programmed: 'True Programmed',
      Ready: 'True PartiallyInForce',
    });
    const record = await suite.controllers.registry.get('route', idOf('Route', await suite.store.get('Route', inAcme('all'))));
    expect(record?.destinations).toEqual([{ id: idOf('Destination', shop), shard: 0 }]);
  });

  test('a route takes a change of the filter that it refers to', async () => {
    suite.start();
    await namespaceOfAcme();
    await source();
    await destination();
    const filter = (value: unknown) =>
      apply({ kind: 'Filter', metadata: inAcme('paid'), spec: { conditions: [{ field: 'payload.status', operator: 'equals', value }] } });
    await filter('paid');
    await route({ filterRef: { name: 'paid' } });
    await expectReady('Route', inAcme('all'));
    await filter('settled');
    const id = idOf('Route', await suite.store.get('Route', inAcme('all')));
    await eventually(async () =>
      expect((await suite.controllers.registry.get('route', id))?.filter).toEqual({
        logic: 'AND',
        conditions: [{ field: 'payload.status', operator: 'equals', value: 'settled' }],
      }),
    );
  });

  test('a route with a pattern that does not compile is refused', async () => {
    suite.start();
    await namespaceOfAcme();
    await source();
    await destination();
    await route({ filter: { conditions: [{ field: 'payload.a', operator: 'matches', value: '(' }] } });
    await expectReady('Route', inAcme('all'), 'False InvalidFilter');
    expect(await conditions('Route', inAcme('all'))).toMatchObject({ Programmed: 'False NothingInForce', Stalled: 'True InvalidFilter' });
  });

  test('a route that is deleted is no longer in the registry', async () => {
    suite.start();
    await namespaceOfAcme();
    await source();
    await destination();
    await route();
    await expectReady('Route', inAcme('all'));
    await suite.store.delete('Route', inAcme('all'));
    await eventually(async () => expect(await suite.controllers.registry.ids('route')).toEqual([]));
  });
});

describe('secrets', () => {
  test('secrets are sealed into the record, and an edit of the Secret changes it', async () => {
    suite.start();
    await namespaceOfAcme();
    const made = await destination('shop', {
      auth: { type: 'bearer', tokenSecretRef: { name: 'token', key: 'value' } },
      signingSecretRef: { name: 'sign', key: 'value' },
    });
    await expectReady('Destination', inAcme('shop'), 'False SecretNotFound');
    await secret('sign', { value: signingSecret });
    await secret('token', { other: 'x' });
    await expectReady('Destination', inAcme('shop'), 'False SecretKeyNotFound');
    await secret('token', { value: 'first\n' });
    await expectReady('Destination', inAcme('shop'));
    const id = idOf('Destination', made);
    const settings = async () => httpSettings(await suite.controllers.registry.get('destination', id));
    const org = idOf('Organization', await suite.store.get('Organization', { name: 'acme' }));
    const tokenInForce = async (): Promise<string> => {
      const auth = (await settings()).auth;
      return auth?.type === 'bearer' ? testKeyring.open(auth.token, recordSealingContext(org, 'destination', id, 'token')) : 'none';
    };
    expect(await tokenInForce()).toBe('first');
    const [signature = ''] = (await settings()).signingSecrets;
    expect(testKeyring.open(signature, recordSealingContext(org, 'destination', id, 'signingSecrets'))).toBe(signingSecret);
    await secret('token', { value: 'second' });
    await eventually(async () => expect(await tokenInForce()).toBe('second'));
  });

  test('secrets that the facade has sealed are opened', async () => {
    suite.start();
    await namespaceOfAcme();
    const org = idOf('Organization', await suite.store.get('Organization', { name: 'acme' }));
    await secret('made', { value: testKeyring.seal('inner', secretSealingContext(org, 'made', 'value')) });
    const made = await source({ provider: 'github', signingSecretRef: { name: 'made', key: 'value' } });
    await expectReady('Source', inAcme('orders'));
    const id = idOf('Source', made);
    const record = await suite.controllers.registry.get('source', id);
    expect(record).toMatchObject({ rejectInvalidSignatures: true, provider: 'github' });
    expect(
      record?.signingSecrets.map((sealed) => testKeyring.open(sealed, recordSealingContext(org, 'source', id, 'signingSecrets'))),
    ).toEqual(['inner']);
  });

  test('secrets of the wrong form are refused', async () => {
    suite.start();
    await namespaceOfAcme();
    await secret('sign', { value: 'not a secret' });
    await destination('shop', { signingSecretRef: { name: 'sign', key: 'value' } });
    await expectReady('Destination', inAcme('shop'), 'False InvalidSigningSecret');
  });
});

describe('the registry', () => {
  test('the registry is filled again when Redis has lost its data', async () => {
    suite.start();
    await namespaceOfAcme();
    const made = await source();
    await expectReady('Source', inAcme('orders'));
    await suite.redis.client.flushall();
    await eventually(async () => expect(await suite.controllers.registry.get('source', idOf('Source', made))).not.toBeNull());
  });

  test('the registry refuses a leader that another has followed, and that one ends', async () => {
    suite.start();
    await namespaceOfAcme();
    await suite.controllers.registry.mintEpoch();
    await source();
    await expect(suite.controllers.ended).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(await suite.controllers.registry.ids('source')).toEqual([]);
  });

  test('the registry gets the same record, and the object no write, from a controller that starts again', async () => {
    suite.start();
    await namespaceOfAcme();
    await secret('sign', { value: signingSecret });
    const made = await destination('shop', { signingSecretRef: { name: 'sign', key: 'value' } });
    await expectReady('Destination', inAcme('shop'));
    const id = idOf('Destination', made);
    const before = [
      await suite.controllers.registry.get('destination', id),
      (await suite.store.get('Destination', inAcme('shop'))).metadata.resourceVersion,
    ];
    await suite.controllers.stop();
    suite.start();
    await sleep(500);
    expect([
      await suite.controllers.registry.get('destination', id),
      (await suite.store.get('Destination', inAcme('shop'))).metadata.resourceVersion,
    ]).toEqual(before);
  });
});
