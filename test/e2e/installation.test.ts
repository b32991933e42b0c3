import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { z } from 'zod';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { deployedChart, helm } from '../support/helm.ts';
import { describeInCluster } from '../support/in-cluster.ts';
import { portForward } from '../support/port-forward.ts';
import { startTlsReceiver } from '../support/tls-receiver.ts';
import { addressOfThisMachine } from './cluster-world.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import { ingest } from './rest.ts';
import { releaseRevision } from './system-commands.ts';

const inSystem = ['--namespace', 'posthorn-system'];
const podList = z.object({
  items: z.array(z.object({ metadata: z.object({ uid: z.string(), deletionTimestamp: z.string().optional() }) })),
});

describeInCluster('the chart in a cluster', () => {
  const uidOfDefault = () => kubectl(['get', 'organization', 'default', '-o', 'jsonpath={.metadata.uid}']);
  const ends: (() => unknown)[] = [];
  /** The file with those that it was installed with. */
  let values: string;
  let uid: string;
  const uninstalledWithAllItsPods = async (): Promise<void> => {
    await helm('uninstall', 'posthorn', ...inSystem, '--wait', '--timeout', '240s');
    const left = await kubectl(['get', 'organization', 'default', '-o', 'jsonpath={.metadata.uid} {.metadata.finalizers}']);
    expect(left).toBe(`${uid} `);
    expect(await kubectl(['get', 'deliverypools', ...inSystem, '-o', 'name'])).toBe('');
    await eventually('the garbage collector to take what the pools owned', 90_000, async () => {
      const owned = await kubectl(['get', 'deployments,statefulsets,jobs,networkpolicies', ...inSystem, '-o', 'name']);
      return owned === '';
    });
  };
  const isServed = async (): Promise<void> => {
    const pool = ['wait', 'deliverypool/default', ...inSystem, '--timeout=120s'];
    await kubectl([...pool, '--for=create']);
    await kubectl([...pool, '--for=condition=Ready']);
    await kubectl(['wait', 'organization/default', '--for=condition=Ready', '--timeout=120s']);
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

  test('an upgrade to an image that cannot be pulled and its uninstallation fail, the earlier pods keep running, and a rollback restores the release', async () => {
    const names = ['api', 'ingest', 'controller'];
    const running = async (): Promise<string[]> => {
      const selector = [
        '--selector',
        `app.kubernetes.io/component in (${names.join()},delivery)`,
        '--field-selector',
        'status.phase=Running',
      ];
      const { items } = podList.parse(JSON.parse(await kubectl(['get', 'pods', ...inSystem, ...selector, '-o', 'json'])));
      // Those of an earlier rollout may be about to end.
      return items.flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [metadata.uid] : [])).sort();
    };
    const goOn = async (): Promise<void> => {
      for (const name of names)
        await kubectl(['wait', `deployment/posthorn-${name}`, ...inSystem, '--for=condition=Available', '--timeout=60s']);
      expect(await running()).toEqual(before);
    };
    const ofJob = async (): Promise<string> => {
      const kinds = 'jobs,pods,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings';
      return (await kubectl(['get', kinds, ...inSystem, '-o', 'name']))
        .split('\n')
        .filter((name) => name.includes('-uninstall'))
        .join();
    };
    const [before, revision] = [await running(), await releaseRevision()];
    const absent = ['--reset-then-reuse-values', '--set', 'image.tag=absent'];
    await expect(helm('upgrade', 'posthorn', deployedChart(), ...inSystem, ...absent, '--wait', '--timeout', '8s')).rejects.toThrow();
    await goOn();
    await expect(helm('uninstall', 'posthorn', ...inSystem, '--timeout', '5s')).rejects.toThrow();
    await eventually('what the job needed to go', 90_000, async () => (await ofJob()) === '');
    await goOn();
    await helm('rollback', 'posthorn', revision, ...inSystem, '--wait', '--timeout', '180s');
    await goOn();
  }, 600_000);

  test('an uninstalled release leaves no pods and nothing that waits, but the resources and the keys that seal secrets', async () => {
    await uninstalledWithAllItsPods();
    // Kubernetes deletes what belongs to deleted objects after them.
    await eventually(
      async () =>
        expect(await kubectl(['get', 'secrets', ...inSystem, '-o', 'jsonpath={.items[*].metadata.name}'])).toBe('posthorn-encryption'),
      90_000,
    );
  }, 600_000);

  test('one whose controllers were scaled to 0 goes as well, with nobody to end its pools', async () => {
    // Not until its pods are ready.
    await helm('install', 'posthorn', deployedChart(), ...inSystem, '--values', values);
    await kubectl(['wait', 'deliverypool/default', ...inSystem, '--for=create', '--timeout=120s']);
    const drain = '--for=jsonpath={.metadata.finalizers[0]}=posthorn.dev/drain';
    await kubectl(['wait', 'deliverypool/default', ...inSystem, drain, '--timeout=120s']);
    const purge = '--for=jsonpath={.metadata.finalizers[0]}=posthorn.dev/purge';
    await kubectl(['wait', 'organization/default', purge, '--timeout=120s']);
    await kubectl(['scale', 'deployment/posthorn-controller', ...inSystem, '--replicas=0']);
    const controllers = ['pods', ...inSystem, '--selector', 'app.kubernetes.io/component=controller', '--output', 'name'];
    await eventually(async () => expect(await kubectl(['get', ...controllers])).toBe(''), 120_000);
    await uninstalledWithAllItsPods();
  }, 900_000);

  test('installed again it continues with what was kept, and delivers its first event', async () => {
    const address = addressOfThisMachine();
    const authority = createCertificateAuthority();
    ends.push(() => authority.remove());
    const receiver = await startTlsReceiver({ tls: authority.issue([address]), address });
    ends.push(() => receiver.stop());
    const settings = ['--values', values, '--set', `organization.allowedCidrs={${address}/32}`];
    await helm('install', 'posthorn', deployedChart(), ...inSystem, ...settings, '--wait', '--timeout', '240s');
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
    await kubectl(['wait', '--for=condition=Ready', 'route/all-orders', '--timeout=120s', '--namespace', 'default']);
    const event = { headers: { 'content-type': 'application/json' }, body: Buffer.from('{"order":7}') };
    await eventually(async () => expect((await ingest(`http://127.0.0.1:${forward.port}`, 'default/orders', event)).status).toBe(200));
    await receiver.waitForRequests(1, 90_000);
    expect(receiver.requests[0]?.body.toString()).toBe('{"order":7}');
    expect(await uidOfDefault()).toBe(uid);
  }, 900_000);

  test('an uninstallation with crds.keep=false takes all organizations and what is theirs by deletionPolicy, and is followed by a new installation', async () => {
    const spec = { namespace: 'drill', deletionPolicy: 'Delete' };
    await kubectlApply([{ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Organization', metadata: { name: 'drill' }, spec }]);
    await kubectl(['wait', 'organization/drill', '--for=condition=Ready', '--timeout=120s']);
    await helm('upgrade', 'posthorn', deployedChart(), ...inSystem, '--reset-then-reuse-values', '--set', 'crds.keep=false', '--wait');
    await helm('uninstall', 'posthorn', ...inSystem, '--wait', '--timeout', '240s');
    await eventually('all kinds to be gone', 90_000, async () =>
      (await kubectl(['get', 'customresourcedefinitions', '-o', 'name'])).includes('posthorn.dev') ? undefined : true,
    );
    await kubectl(['wait', 'namespace/drill', '--for=delete', '--timeout=120s']);
    await helm('install', 'posthorn', deployedChart(), ...inSystem, '--values', values, '--wait', '--timeout', '240s');
    await isServed();
    expect(await uidOfDefault()).not.toBe(uid);
  }, 1_200_000);
});
