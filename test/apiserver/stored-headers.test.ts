import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { crdFor } from '../../src/resources/custom-resource-definitions.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ApiClient, collectionPath } from './api-client.ts';

const namespace = 'default';
const path = collectionPath('Destination', namespace);
const deadlineMs = 60_000;

let plane: ControlPlane;
let client: ApiClient;
beforeAll(async () => {
  plane = await startControlPlane({ crds: true });
  client = new ApiClient(plane);
}, 120_000);
afterAll(async () => {
  await client?.close();
  await plane?.stop();
});

const destination = (name: string, headers: string[], spec: object = {}, metadata: object = {}): object => ({
  apiVersion: 'posthorn.dev/v1alpha1',
  kind: 'Destination',
  metadata: { name, namespace, ...metadata },
  spec: { http: { url: 'https://shop.example', headers: headers.map((each) => ({ name: each, value: '1' })) }, ...spec },
});

/** Whether the API server accepts a new object with the header as configured, which it applies some time after a change. */
const takes = (expected: boolean): Promise<void> =>
  eventually(async () => {
    const { object } = await client.write(path, destination('probe', ['Sec-GPC']));
    expect(object !== undefined).toBe(expected);
  }, deadlineMs);

test('an object that an earlier release took with a header of browsers can be changed, and its status written', async () => {
  const crd = crdFor('Destination');
  const address = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata.name}`;
  const earlier = JSON.parse(JSON.stringify(crd.spec).replaceAll("self.lowerAscii().startsWith('sec-') || ", ''));
  await plane.request('PATCH', address, { spec: { versions: earlier.versions } }, 'application/merge-patch+json');
  await takes(true);
  const stored = await client.write(path, destination('old', ['X-A', 'Sec-GPC']), { keep: true });
  const { versions } = crd.spec as { versions: unknown };
  await plane.request('PATCH', address, { spec: { versions } }, 'application/merge-patch+json');
  await takes(false);

  const { resourceVersion } = stored.object?.metadata ?? {};
  const change = (headers: string[]) => destination('old', headers, { enabled: false }, { resourceVersion });
  const refused = await client.write(path, change(['Sec-GPC', 'X-A', 'Sec-Fetch-Site']), { name: 'old' });
  expect(refused).toMatchObject({ fields: ['spec.http.headers[2].name'] });
  expect((await client.write(path, change(['Sec-GPC', 'X-B']), { name: 'old', keep: true })).message).toBeUndefined();
  const status = { status: { observedGeneration: 2 } };
  await plane.request('PATCH', `${path}/old/status`, status, 'application/merge-patch+json');
}, 180_000);
