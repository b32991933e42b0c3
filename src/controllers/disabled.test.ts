import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { everythingIn, firstOf, readyAs, switchedKinds } from '../../test/support/disabled-cases.ts';
import type { ConfigurationKind } from '../resources/kinds.ts';

const suite = controllerSuite();
const programmed = 'the current generation is programmed';

beforeEach(async () => {
  suite.start();
  const options = { manager: 'argocd-controller' };
  await suite.store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, options);
  await readyAs(suite.store, 'Organization', { name: 'acme' }, 'Ready');
  for (const object of everythingIn('acme')) await suite.store.apply(object, options);
});

const apply = (kind: ConfigurationKind, spec: object, manager: string) =>
  suite.store.apply({ kind, metadata: { namespace: 'acme', name: firstOf(kind) }, spec }, { manager, force: true });
/** When the manager changed the object last. */
const timeOf = async (kind: ConfigurationKind, manager: string) => {
  const { metadata } = await suite.store.get(kind, { namespace: 'acme', name: firstOf(kind) });
  return metadata.managedFields?.find((entry) => entry.manager === manager && entry.subresource === undefined)?.time;
};

describe('a disabled object', () => {
  test.each(switchedKinds)(
    'a disabled object of kind %s is Ready as Disabled, and its message names who disabled it and when',
    async (kind) => {
      const key = { namespace: 'acme', name: firstOf(kind) };
      await readyAs(suite.store, kind, key, 'Ready');
      await apply(kind, { enabled: false }, 'posthorn-api');
      const { message } = await readyAs(suite.store, kind, key, 'Disabled');
      expect(message).toBe(`disabled by posthorn-api at ${await timeOf(kind, 'posthorn-api')}; ${programmed}`);
      expect(await timeOf(kind, 'posthorn-api')).toMatch(/^\d{4}-/);
      await apply(kind, { enabled: true }, 'posthorn-api');
      expect((await readyAs(suite.store, kind, key, 'Ready')).message).toBe(programmed);
    },
  );

  test('a disabled object keeps the time at which it was disabled while its manager changes other fields', async () => {
    const key = { namespace: 'acme', name: firstOf('Route') };
    await apply('Route', { enabled: false }, 'kubectl');
    const { message } = await readyAs(suite.store, 'Route', key, 'Disabled');
    const time = await timeOf('Route', 'kubectl');
    await sleep(1100); // times are in seconds
    await apply('Route', { enabled: false, description: 'paused' }, 'kubectl');
    expect(await timeOf('Route', 'kubectl')).not.toBe(time);
    expect((await readyAs(suite.store, 'Route', key, 'Disabled')).message).toBe(message);
  });

  test('an object that several managers disable names all of them', async () => {
    const key = { namespace: 'acme', name: firstOf('Source') };
    await apply('Source', { enabled: false }, 'kubectl');
    await apply('Source', { enabled: false }, 'posthorn-api');
    const times = await Promise.all(['kubectl', 'posthorn-api'].map((manager) => timeOf('Source', manager)));
    await readyAs(suite.store, 'Source', key, 'Disabled');
    await expect(readyAs(suite.store, 'Source', key, 'Disabled')).resolves.toMatchObject({
      message: `disabled by kubectl at ${times[0]} and posthorn-api at ${times[1]}; ${programmed}`,
    });
  });

  test('a disabled route that is partially in force names what it does without, and a disabled destination is no complaint', async () => {
    const key = { namespace: 'acme', name: firstOf('Route') };
    await apply('Destination', { enabled: false }, 'kubectl');
    await readyAs(suite.store, 'Destination', { namespace: 'acme', name: firstOf('Destination') }, 'Disabled');
    await readyAs(suite.store, 'Route', key, 'Ready');
    const destinationRefs = [{ name: firstOf('Destination') }, { name: 'lost' }];
    await apply('Route', { enabled: false, destinationRefs }, 'kubectl');
    const { message } = await readyAs(suite.store, 'Route', key, 'Disabled');
    expect(message).toMatch(/^disabled by kubectl at .*; .*Destinations that do not exist: lost$/);
  });
});
