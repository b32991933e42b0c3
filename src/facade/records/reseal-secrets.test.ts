import { expect, test } from '@jest/globals';
import { resourceId } from '../../core/ids.ts';
import { Keyring } from '../../core/sealing.ts';
import { secretSealingContext } from '../../core/sealing-contexts.ts';
import { kinds } from '../../resources/kinds.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { resealSecrets } from './reseal-secrets.ts';

const keyOf = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill) });

test('Secrets of the installation are resealed, and those of another installation stay and are no complaint', async () => {
  const store = new MemoryStore(systemClock);
  const manager = { manager: 'test', force: true };
  const seals: Record<string, Keyring> = { default: new Keyring([keyOf('k1', 1)]), two: new Keyring([keyOf('other', 2)]) };
  for (const installation of ['default', 'two']) {
    const namespace = `of-${installation}`;
    await store.apply({ kind: 'Namespace', metadata: { name: namespace } }, manager);
    const { metadata } = await store.apply(
      { kind: 'Organization', metadata: { name: namespace }, spec: { namespace, installation } },
      manager,
    );
    const context = secretSealingContext(resourceId(kinds.Organization.idPrefix, metadata), 'shop', 'token');
    const sealed = Buffer.from(seals[installation]?.seal('the-token', context) ?? '').toString('base64');
    const labels = { 'app.kubernetes.io/managed-by': 'posthorn' };
    await store.apply({ kind: 'Secret', metadata: { name: 'shop', namespace, labels }, type: 'Opaque', data: { token: sealed } }, manager);
  }
  const stored = async (installation: string): Promise<string> => {
    const { data } = await store.getSecret({ name: 'shop', namespace: `of-${installation}` });
    return Buffer.from(data?.['token'] ?? '', 'base64').toString();
  };
  const before = await stored('two');
  const complaints: string[] = [];
  const keyring = new Keyring([keyOf('k2', 3), keyOf('k1', 1)]);
  const reseal = () => resealSecrets({ store, keyring, installation: 'default' }, (complaint) => complaints.push(complaint));
  expect([await reseal(), complaints]).toEqual([1, []]);
  expect(await stored('default')).toMatch(/^sealed\.v1\.k2\./);
  expect(await stored('two')).toBe(before);
  expect([await reseal(), complaints]).toEqual([0, []]);
});
