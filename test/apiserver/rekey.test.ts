import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readConfig } from '../../src/cmd/config.ts';
import { rekey } from '../../src/cmd/rekey.ts';
import { resourceId } from '../../src/core/ids.ts';
import { Keyring } from '../../src/core/sealing.ts';
import { recordSealingContext, secretSealingContext } from '../../src/core/sealing-contexts.ts';
import { madeForIn } from '../../src/resources/secret-use.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade/facade-world.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { tokenOfJob } from '../support/service-account-tokens.ts';

let controlPlane: ControlPlane;
let api: KubernetesApi;
let store: KubernetesStore;
let world: FacadeWorld;
beforeAll(async () => {
  controlPlane = await startControlPlane({ crds: true });
  api = kubernetesApi(controlPlane);
  store = new KubernetesStore({ api, clock: systemClock });
  world = await startFacadeWorld({ store });
}, 120_000);
afterAll(async () => {
  await world.stop();
  await api.close();
  await controlPlane.stop();
});

test('rekey, with the rights that its manifest gives it, seals Secrets in Kubernetes and published records under the newest key, whose owner and fields stay', async () => {
  const body = { name: 'Orders', url: 'https://hooks.example.com/in', authType: 'bearer', authConfig: { token: 'a-long-token-000042' } };
  const { body: made } = await world.request('POST', '/api/destinations', { body });
  const ref = (await store.get('Destination', { namespace: 'acme', name: 'orders' })).spec.http?.auth?.tokenSecretRef;
  if (ref === undefined) throw new Error('the destination has no token');
  const before = await store.getSecret({ namespace: 'acme', name: ref.name });
  const own = {
    kind: 'Secret' as const,
    metadata: { name: 'own', namespace: 'acme' },
    data: { key: Buffer.from('plain').toString('base64') },
  };
  const plain = await store.apply(own, { manager: 'kubectl' });

  const next = Buffer.alloc(32, 9);
  const config = readConfig('rekey', {
    POSTHORN_REDIS_URL: world.redis.url,
    POSTHORN_REDIS_KEY_PREFIX: 'test:',
    POSTHORN_ENCRYPTION_KEYS: `k2:${next.toString('base64')},k1:${Buffer.alloc(32, 1).toString('base64')}`,
    KUBECONFIG: controlPlane.writeKubeconfig({ token: await tokenOfJob(controlPlane, 'rekey/rekey.yaml', 'posthorn-rekey') }),
  });
  const lines: string[] = [];
  await world.redis.client.set('test:{cfg}:installation', 'two');
  await expect(rekey(config, (line) => lines.push(line))).rejects.toThrow(
    'belongs to the installation two, and POSTHORN_INSTALLATION is default',
  );
  await world.redis.client.del('test:{cfg}:installation');
  expect(await rekey(config, (line) => lines.push(line))).toBe(0);
  expect(lines).toEqual(['resealed: 1 secrets, 0 stored objects, 1 records, 0 webhook endpoints; 0 did not open']);

  const keyring = new Keyring([{ id: 'k2', key: next }]);
  const org = resourceId('org_', (await store.get('Organization', { name: 'acme' })).metadata);
  const after = await store.getSecret({ namespace: 'acme', name: ref.name });
  const value = Buffer.from(after.data?.[ref.key] ?? '', 'base64').toString('utf8');
  expect(keyring.open(value, secretSealingContext(org, ref.name, ref.key, madeForIn(after.metadata)))).toBe('a-long-token-000042');
  expect(after.metadata.ownerReferences).toEqual(before.metadata.ownerReferences);
  expect(Object.keys(after.data ?? {})).toEqual(Object.keys(before.data ?? {}));
  expect((await store.getSecret({ namespace: 'acme', name: 'own' })).metadata.resourceVersion).toBe(plain.metadata.resourceVersion);
  const record = JSON.parse((await world.redis.client.hget('test:{cfg}:rec:destination', made.id)) ?? '');
  expect(keyring.open(record.http.auth.token, recordSealingContext(org, 'destination', made.id, 'token'))).toBe('a-long-token-000042');
});
