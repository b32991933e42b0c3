import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { bootstrapInstallation } from '../../src/cmd/bootstrap.ts';
import type { ObjectEvent } from '../../src/controllers/event-recorder.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { controllerApi } from '../support/controller-api.ts';
import { eventually } from '../support/eventually.ts';
import { silentLogger } from '../support/logger.ts';

const namespace = 'posthorn-system';
const path = `/apis/posthorn.dev/v1alpha1/namespaces/${namespace}/deliverypools/default`;
let plane: ControlPlane;
let controller: KubernetesApi;
let directory: string;
const events: ObjectEvent[] = [];

beforeAll(async () => {
  plane = await startControlPlane({ crds: true });
  await plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  controller = await controllerApi(plane);
  directory = mkdtempSync(join(tmpdir(), 'posthorn-bootstrap-'));
}, 120_000);
afterAll(async () => {
  await controller?.close();
  await plane?.stop();
  rmSync(directory, { recursive: true });
});

/** What a controller that begins to lead does. */
async function lead(spec: object): Promise<void> {
  const manifest = { apiVersion: 'posthorn.dev/v1alpha1', kind: 'DeliveryPool', metadata: { name: 'default' }, spec };
  writeFileSync(join(directory, 'pool.yaml'), JSON.stringify(manifest));
  events.length = 0;
  const ending = new AbortController();
  const applied = Promise.withResolvers<void>();
  const store = new KubernetesStore({ api: controller, clock: systemClock });
  const running = bootstrapInstallation(
    {
      store,
      source: { directory, namespace, installation: 'default' },
      installation: 'default',
      adminKey: null,
      changes: [],
      clock: systemClock,
      logger: silentLogger,
      recorder: { record: (event) => void events.push(event) },
      report: (complaints) => {
        if (complaints?.length === 0) applied.resolve();
      },
    },
    ending.signal,
  );
  await applied.promise;
  ending.abort();
  await running;
}

// biome-ignore lint/suspicious/noExplicitAny: of the API server
const spec = async (): Promise<any> => ((await plane.request('GET', path)) as any).spec;

test('workers that were scaled by the subresource stay so when another controller leads, until they are given back', async () => {
  await lead({ replicas: 2, concurrency: 64 });
  expect(await spec()).toMatchObject({ replicas: 2, concurrency: 64 });
  await lead({ replicas: 3, concurrency: 64 });
  expect(await spec()).toMatchObject({ replicas: 3 });
  expect(events).toEqual([]);

  await plane.request('PATCH', `${path}/scale`, { spec: { replicas: 5 } }, 'application/merge-patch+json');
  await plane.request('PATCH', path, { spec: { concurrency: 8 } }, 'application/merge-patch+json');
  await lead({ replicas: 4, concurrency: 64 });
  expect(await spec()).toMatchObject({ replicas: 5, concurrency: 64 });
  expect(events.map(({ reason }) => reason).sort()).toEqual(['FieldLeft', 'FieldTakenOver']);
  await lead({ replicas: 4, concurrency: 64 });
  expect(events.map(({ reason }) => reason)).toEqual(['FieldLeft']);

  // As on the page: the manifest of the ConfigMap, applied as the manager of the bootstrap.
  const manifest = { apiVersion: 'posthorn.dev/v1alpha1', kind: 'DeliveryPool', metadata: { name: 'default' }, spec: { replicas: 4 } };
  await plane.request('PATCH', `${path}?fieldManager=posthorn-bootstrap&force=true`, manifest, 'application/apply-patch+yaml');
  await lead({ replicas: 3, concurrency: 64 });
  expect(await eventually(spec)).toMatchObject({ replicas: 3, concurrency: 64 });
  expect(events).toEqual([]);
});
