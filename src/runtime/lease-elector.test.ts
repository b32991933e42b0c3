import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type ControlPlane, startControlPlane } from '../../test/support/control-plane.ts';
import { kubernetesApi } from '../../test/support/kubernetes-api.ts';
import { silentLogger } from '../../test/support/logger.ts';
import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import { LeaderElector } from './elector.ts';
import { kubernetesLeaseApi } from './lease-api.ts';
import { LeaseLock } from './lease-elector.ts';
import { systemClock } from './system-clock.ts';

let controlPlane: ControlPlane;
let api: KubernetesApi;
beforeAll(async () => {
  controlPlane = await startControlPlane();
  api = kubernetesApi(controlPlane);
});
afterAll(async () => {
  await api?.close();
  await controlPlane?.stop();
});

const times = { leaseDurationMs: 2000, renewDeadlineMs: 1200, retryPeriodMs: 200 };
const lock = (name: string, identity: string) =>
  new LeaseLock(kubernetesLeaseApi(api), { namespace: 'default', name, identity, clock: systemClock, times });
const leaseOf = (name: string) => controlPlane.request('GET', `/apis/coordination.k8s.io/v1/namespaces/default/leases/${name}`);

test('the API server takes the lease as it is made, renewed and released', async () => {
  const mine = lock('accepted', 'a');
  expect(await mine.hold()).toBe(true);
  expect(await mine.hold()).toBe(true);
  expect(await leaseOf('accepted')).toMatchObject({ spec: { holderIdentity: 'a', leaseDurationSeconds: 2, leaseTransitions: 0 } });
  await mine.release();
  expect(await leaseOf('accepted')).toMatchObject({ spec: { holderIdentity: '', leaseDurationSeconds: 1 } });
  expect(await lock('accepted', 'b').hold()).toBe(true);
  expect(await leaseOf('accepted')).toMatchObject({ spec: { holderIdentity: 'b', leaseTransitions: 1 } });
});

test('exactly one of many candidates that start at once holds the lease', async () => {
  const held = await Promise.all(Array.from({ length: 8 }, (_, i) => lock('raced', `candidate-${i}`).hold()));
  expect(held.filter(Boolean)).toHaveLength(1);
});

test('the lease of a silent holder is taken only after its duration has been watched', async () => {
  expect(await lock('silent', 'a').hold()).toBe(true);
  const stop = new AbortController();
  const startedAtMs = systemClock.now();
  const term = await new LeaderElector(lock('silent', 'b'), { clock: systemClock, logger: silentLogger, times }).acquire(stop.signal);
  expect(systemClock.now() - startedAtMs).toBeGreaterThanOrEqual(times.leaseDurationMs);
  await term?.release();
});

test('a leader continues over a short outage of the API server', async () => {
  const term = await new LeaderElector(lock('outage', 'a'), {
    clock: systemClock,
    logger: silentLogger,
    times: { ...times, leaseDurationMs: 60_000, renewDeadlineMs: 50_000 },
  }).acquire(new AbortController().signal);
  await controlPlane.stopApiServer();
  await expect(term?.renew()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await controlPlane.startApiServer();
  await term?.renew();
  expect(term?.lost.aborted).toBe(false);
  await term?.release();
});
