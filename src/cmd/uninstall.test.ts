import { expect, test } from '@jest/globals';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { PosthornError } from '../core/errors.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { uninstall } from './uninstall.ts';

const namespace = 'posthorn-system';
const owner = { manager: 'test', force: true };
const holder = { manager: 'posthorn-controller', force: true };

/** The API server of a Deployment without pods. */
function scaledDown(): { isThere: boolean; request(method: string): Promise<unknown> } {
  const deployment = {
    isThere: true,
    request: async (method: string): Promise<unknown> => {
      if (!deployment.isThere) throw new PosthornError('RESOURCE_NOT_FOUND', 'there is no such Deployment');
      if (method === 'DELETE') deployment.isThere = false;
      return { spec: { replicas: 0 } };
    },
  };
  return deployment;
}

test.each([false, true])('waits for no controllers that are scaled to 0 (deletes organizations: %s)', async (deletesOrganizations) => {
  // Nothing moves it.
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  await store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, owner);
  await store.apply({ kind: 'Organization', metadata: { name: 'acme', finalizers: ['posthorn.dev/purge'] } }, holder);
  await store.apply({ kind: 'Namespace', metadata: { name: namespace } }, owner);
  await store.apply({ kind: 'DeliveryPool', metadata: { namespace, name: 'default' }, spec: {} }, owner);
  await store.apply({ kind: 'DeliveryPool', metadata: { namespace, name: 'default', finalizers: ['posthorn.dev/drain'] } }, holder);
  const deployment = scaledDown();
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const where = { namespace, installation: 'default', controller: 'posthorn-controller' };
  await uninstall({ ...where, api: deployment, store, clock, deletesOrganizations, deletesCrds: false, write });
  expect(lines[0]).toBe('the controllers have not ended all pools of workers');
  expect((await store.list('DeliveryPool')).items).toEqual([]);
  const { items } = await store.list('Organization');
  expect(items.map(({ metadata }) => [metadata.name, metadata.finalizers])).toEqual(deletesOrganizations ? [] : [['acme', []]]);
  expect(deployment.isThere).toBe(false);
});

test.each([true, false])(
  'the Organizations of other installations are not touched (deletes organizations: %s)',
  async (deletesOrganizations) => {
    const clock = new FakeClock();
    const store = new MemoryStore(clock);
    for (const [name, spec] of Object.entries({ acme: {}, shop: { installation: 'two' }, park: { installation: 'three' } })) {
      await store.apply({ kind: 'Organization', metadata: { name }, spec: { namespace: name, ...spec } }, owner);
      await store.apply({ kind: 'Organization', metadata: { name, finalizers: ['posthorn.dev/purge'] } }, holder);
    }
    const deployment = scaledDown();
    const lines: string[] = [];
    const options = { api: deployment, store, clock, namespace, installation: 'two', controller: 'c', deletesOrganizations };
    const run = (deletesCrds: boolean) => uninstall({ ...options, deletesCrds, write: (line) => void lines.push(line) });
    const held = async () => (await store.list('Organization')).items.map(({ metadata }) => [metadata.name, metadata.finalizers]);
    const before = await held();
    await expect(run(true)).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: expect.stringContaining('acme (default), park (three).'),
    });
    expect([lines, await held()]).toEqual([[], before]);
    await run(false);
    const purge = ['posthorn.dev/purge'];
    const left = [
      ['acme', purge],
      ['park', purge],
    ];
    expect(await held()).toEqual(deletesOrganizations ? left : [...left, ['shop', []]]);
  },
);
