import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesEvents } from '../../src/store/kubernetes/kubernetes-events.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';

const namespace = 'default';
const perObject = 520;

let plane: ControlPlane;
let api: KubernetesApi;
beforeAll(async () => {
  plane = await startControlPlane();
  api = kubernetesApi(plane);
}, 120_000);
afterAll(async () => {
  await api?.close();
  await plane?.stop();
});

/** The order of the names is another one than that of the times. */
function write(uid: string, number: number): Promise<unknown> {
  const at = new Date(Date.UTC(2026, 0, 31, 2) + number * 1000).toISOString().replace('.000', '');
  return plane.request('POST', `/api/v1/namespaces/${namespace}/events`, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${uid}.${1000 + ((number * 37) % perObject)}`, namespace },
    involvedObject: { apiVersion: 'posthorn.dev/v1alpha1', kind: 'Route', name: 'orders', namespace, uid },
    type: 'Warning',
    reason: 'CircuitOpen',
    message: `${number}`,
    firstTimestamp: at,
    lastTimestamp: at,
  });
}

test('the newest Events of an object are shown where there are too many, whatever their names, and none of another object', async () => {
  for (let from = 0; from < perObject; from += 20)
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => Promise.all([write('one', from + i), ...(i === 0 ? [write('two', from)] : [])])),
    );
  const told = await new KubernetesEvents({ api }).of({ namespace, uid: 'one' });
  expect(told.map(({ message }) => message)).toEqual(Array.from({ length: 100 }, (_, i) => `${perObject - 1 - i}`));
  expect(await new KubernetesEvents({ api }).of({ namespace, uid: 'none' })).toEqual([]);
}, 120_000);
