import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { chart, helm } from '../support/helm.ts';
import { describeInCluster } from '../support/in-cluster.ts';
import { portForward } from '../support/port-forward.ts';
import { startTlsReceiver } from '../support/tls-receiver.ts';
import { addressOfThisMachine } from './cluster-world.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import { ingest } from './rest.ts';

const inSystem = ['--namespace', 'posthorn-system'];

describeInCluster('the chart in a cluster', () => {
  const uidOfDefault = () => kubectl(['get', 'organization', 'default', '-o', 'jsonpath={.metadata.uid}']);
  const ends: (() => unknown)[] = [];
  /** The file with those that it was installed with. */
  let values: string;
  let uid: string;
  const uninstalledWithAllItsPods = async (): Promise<void> => {
    await helm('uninstall', 'posthorn', ...inSystem, '--wait', '--timeout', '120s');
    const left = await kubectl(['get', 'organization', 'default', '-o', 'jsonpath={.metadata.uid} {.metadata.finalizers}']);
    expect(left).toBe(`${uid} `);
    expect(await kubectl(['get', 'deliverypools', ...inSystem, '-o', 'name'])).toBe('');
    await eventually('the garbage collector to take what the pools owned', 30_000, async () => {
      const owned = await kubectl(['get', 'deployments,statefulsets,jobs,networkpolicies', ...inSystem, '-o', 'name']);
      return owned === '';
    });
  };
  const isServed = async (): Promise<void> => {
    const pool = ['wait', 'deliverypool/default', ...inSystem, '--timeout=60s'];
    await kubectl([...pool, '--for=create']);
    await kubectl([...pool, '--for=condition=Ready']);
    await kubectl(['wait', 'organization/default', '--for=condition=Ready', '--timeout=60s']);
  };

  beforeAll(async () => {
    const directory = mkdtempSync(join(tmpdir(), 'posthorn-installation-'));
    ends.push(() => rmSync(directory, { recursive: true }));
    values = join(directory, 'values.yaml');
    writeFileSync(values, await helm('get', 'values', 'posthorn', ...inSystem, '--output', 'yaml'));
    uid = await uidOfDefault();
  }, 60_000);
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  }, 60_000);

  test('helm test reaches ingest, and the API with the key that the installation has made', async () => {
    expect(await helm('test', 'posthorn', ...inSystem)).toContain('Phase:          Succeeded');
  });

  test('an uninstalled release leaves no pods and nothing that waits, but the resources and the keys that seal secrets', async () => {
    await uninstalledWithAllItsPods();
    expect(await kubectl(['get', 'secrets', ...inSystem, '-o', 'jsonpath={.items[*].metadata.name}'])).toBe('posthorn-encryption');
  }, 180_000);

  test('one whose controllers were scaled to 0 goes as well, with nobody to end its pools', async () => {
    // Not until its pods are ready.
    await helm('install', 'posthorn', chart, ...inSystem, '--values', values);
    await kubectl(['wait', 'deliverypool/default', ...inSystem, '--for=create', '--timeout=60s']);
    const drain = '--for=jsonpath={.metadata.finalizers[0]}=posthorn.dev/drain';
    await kubectl(['wait', 'deliverypool/default', ...inSystem, drain, '--timeout=60s']);
    const purge = '--for=jsonpath={.metadata.finalizers[0]}=posthorn.dev/purge';
    await kubectl(['wait', 'organization/default', purge, '--timeout=60s']);
    await kubectl(['scale', 'deployment/posthorn-controller', ...inSystem, '--replicas=0']);
    const controllers = ['pods', ...inSystem, '--selector', 'app.kubernetes.io/component=controller', '--output', 'name'];
    await eventually(async () => expect(await kubectl(['get', ...controllers])).toBe(''), 60_000);
    await uninstalledWithAllItsPods();
  }, 240_000);

  test('installed again it goes on with what was kept, and delivers its first event', async () => {
    const address = addressOfThisMachine();
    const authority = createCertificateAuthority();
    ends.push(() => authority.remove());
    const receiver = await startTlsReceiver({ tls: authority.issue([address]), address });
    ends.push(() => receiver.stop());
    const settings = ['--values', values, '--set', `organization.allowedCidrs={${address}/32}`];
    await helm('install', 'posthorn', chart, ...inSystem, ...settings, '--wait', '--timeout', '120s');
    await isServed();
    const object = (kind: string, name: string, spec: object) => ({
      apiVersion: 'posthorn.dev/v1alpha1',
      kind,
      metadata: { name, namespace: 'default' },
      spec,
    });
    const http = { url: receiver.url('/hooks'), tls: { caBundle: authority.text } };
    const resources = [
      object('Source', 'orders', { provider: 'generic' }),
      object('Destination', 'shop', { type: 'http', http }),
      object('Route', 'all-orders', { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] }),
    ];
    const forward = await portForward('posthorn-system', 'service/posthorn-ingest', 80);
    ends.push(() => forward.stop());
    ends.push(async () => {
      for (const { kind, metadata } of resources)
        await kubectl(['delete', kind, metadata.name, '--namespace', 'default', '--ignore-not-found']);
    });
    await kubectlApply(resources);
    await kubectl(['wait', '--for=condition=Ready', 'route/all-orders', '--timeout=60s', '--namespace', 'default']);
    const event = { headers: { 'content-type': 'application/json' }, body: Buffer.from('{"order":7}') };
    await eventually(async () => expect((await ingest(`http://127.0.0.1:${forward.port}`, 'default/orders', event)).status).toBe(200));
    await receiver.waitForRequests(1);
    expect(receiver.requests[0]?.body.toString()).toBe('{"order":7}');
    expect(await uidOfDefault()).toBe(uid);
  }, 240_000);

  test('with crds.keep=false it goes with all organizations, and is installed anew', async () => {
    await helm('upgrade', 'posthorn', chart, ...inSystem, '--reset-then-reuse-values', '--set', 'crds.keep=false', '--wait');
    await helm('uninstall', 'posthorn', ...inSystem, '--wait', '--timeout', '180s');
    await eventually('all kinds to be gone', 30_000, async () =>
      (await kubectl(['get', 'customresourcedefinitions', '-o', 'name'])).includes('posthorn.dev') ? undefined : true,
    );
    await helm('install', 'posthorn', chart, ...inSystem, '--values', values, '--wait', '--timeout', '120s');
    await isServed();
    expect(await uidOfDefault()).not.toBe(uid);
  }, 480_000);
});
