import { describe, expect, test } from '@jest/globals';
import { controllerSuite } from '../../../test/support/controller-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { ConfigurationKind } from '../../resources/kinds.ts';

const installation = { name: 'posthorn', namespace: 'relay' };
const suite = controllerSuite();
const options = { manager: 'test', force: true };
const inRelay = { namespace: 'relay', name: 'orders' };

async function applyAll(): Promise<void> {
  await suite.store.apply({ kind: 'Namespace', metadata: { name: 'relay' } }, options);
  await suite.store.apply({ kind: 'Organization', metadata: { name: 'thief' }, spec: { namespace: 'relay' } }, options);
  await suite.store.apply({ kind: 'Source', metadata: inRelay, spec: {} }, options);
  const auth = { type: 'bearer' as const, tokenSecretRef: { name: 'keys', key: 'token' } };
  const spec = { type: 'http' as const, http: { url: 'https://thief.example/', auth } };
  await suite.store.apply({ kind: 'Secret', metadata: { namespace: 'relay', name: 'keys' }, data: { token: 'c2VjcmV0' } }, options);
  await suite.store.apply({ kind: 'Destination', metadata: inRelay, spec }, options);
}

const shows = (kind: ConfigurationKind, key: { namespace?: string; name: string }, wanted: string) =>
  eventually(async () => {
    const { status } = await suite.store.get(kind, key);
    const condition = status?.conditions?.find(({ type }) => type === 'Ready');
    expect(`${condition?.status} ${condition?.reason}`).toBe(wanted);
  });

async function expectNothingInForce(): Promise<void> {
  await shows('Organization', { name: 'thief' }, 'False NamespaceProtected');
  await shows('Source', inRelay, 'False OrganizationNotFound');
  await shows('Destination', inRelay, 'False OrganizationNotFound');
  for (const kind of ['organization', 'source', 'destination', 'credentials'] as const)
    await eventually(async () => expect(await suite.controllers.registry.ids(kind)).toEqual([]));
}

describe('the namespace of the installation', () => {
  test('nothing in the namespace of the installation is in force for an Organization that names it', async () => {
    suite.start({ installation });
    await applyAll();
    await expectNothingInForce();
    const { metadata } = await suite.store.get('Namespace', { name: 'relay' });
    expect(metadata.labels ?? {}).not.toHaveProperty('posthorn.dev/organization');
  });

  test('an Organization that was in force in the namespace of the installation is taken out of force, with what is there', async () => {
    suite.start();
    await applyAll();
    await shows('Destination', inRelay, 'True Ready');
    await shows('Source', inRelay, 'True Ready');
    await suite.controllers.stop();
    suite.start({ installation });
    await expectNothingInForce();
  });

  test('an Organization that names the namespace of the installation can be deleted, and leaves the namespace as it is', async () => {
    suite.start();
    await applyAll();
    await shows('Destination', inRelay, 'True Ready');
    await suite.controllers.stop();
    suite.start({ installation });
    await expectNothingInForce();
    await suite.store.delete('Organization', { name: 'thief' });
    await eventually(async () => expect((await suite.store.list('Organization')).items).toEqual([]));
    expect((await suite.store.get('Destination', inRelay)).spec.type).toBe('http');
  });

  test('no Organization is held when the namespace of the installation is being deleted, so that none waits for a controller that is no more', async () => {
    const finalizersOf = async (name: string) => (await suite.store.get('Organization', { name })).metadata.finalizers ?? [];
    await suite.store.apply({ kind: 'Namespace', metadata: { name: 'relay', finalizers: ['test.example/busy'] } }, options);
    suite.start({ installation });
    for (const name of ['acme', 'globex'])
      await suite.store.apply({ kind: 'Organization', metadata: { name }, spec: { namespace: name } }, options);
    for (const name of ['acme', 'globex']) await eventually(async () => expect(await finalizersOf(name)).toEqual(['posthorn.dev/purge']));
    await suite.store.delete('Namespace', { name: 'relay' });
    for (const name of ['acme', 'globex']) await eventually(async () => expect(await finalizersOf(name)).toEqual([]));
    expect(await suite.controllers.registry.ids('organization')).toHaveLength(2);
    await suite.controllers.stop();
    await suite.store.delete('Organization', { name: 'acme' });
    expect((await suite.store.list('Organization')).items.map(({ metadata }) => metadata.name)).toEqual(['globex']);
  });
});
