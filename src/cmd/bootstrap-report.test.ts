import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../test/support/eventually.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import type { ObjectEvent } from '../controllers/event-recorder.ts';
import { checkBootstrap } from './bootstrap.ts';
import { bootstrapComplaints } from './bootstrap-check.ts';
import { BootstrapReport, bootstrapGauge } from './bootstrap-report.ts';
import { Readiness } from './readiness.ts';

const apiVersion = 'posthorn.dev/v1alpha1';
const configMap: ObjectEvent['object'] = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'posthorn-bootstrap', namespace: 'posthorn-system', uid: 'u', resourceVersion: '1' },
};
let directory: string;
let registry: Registry;
let readiness: Readiness;
let events: ObjectEvent[];
let report: BootstrapReport;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-bootstrap-'));
  registry = new Registry();
  readiness = new Readiness([]);
  events = [];
  report = new BootstrapReport({
    gauge: bootstrapGauge(registry),
    readiness,
    recorder: { record: (event) => void events.push(event) },
    subject: async () => configMap,
  });
});
afterEach(() => rmSync(directory, { recursive: true }));

const source = () => ({ directory, installation: 'default', namespace: 'posthorn-system' });
const put = (kind: string, spec: object): void =>
  writeFileSync(join(directory, `${kind}.yaml`), JSON.stringify({ apiVersion, kind, metadata: { name: 'default' }, spec }));
const measured = async (): Promise<number | undefined> =>
  (await registry.getSingleMetric('posthorn_bootstrap_complaints')?.get())?.values[0]?.value;

test.each([
  ['DeliveryPool', { autoscaling: { min: 9, max: 3 } }, 'DeliveryPool default: spec.autoscaling.min: must be at most max'],
  ['DeliveryPool', { autoscaling: { mode: 'hpa', min: 0, max: 3 } }, 'spec.autoscaling.min: must be at least 1 unless mode is builtin'],
  ['DeliveryPool', { replica: 2 }, 'replica'],
  ['Organization', { namespace: 'default', egress: { allowedCidrs: ['10.0.0.0/99'] } }, 'must be a network such as 10.0.0.0/8'],
  ['Organization', { namespace: 'kube-system' }, 'must not be a namespace of Kubernetes itself'],
  [
    'Organization',
    { namespace: 'default', installation: 'two' },
    'Organization default: spec.installation is two: only default is served here',
  ],
  ['Deployment', {}, 'Deployment.yaml: Deployment of posthorn.dev/v1alpha1 is not a kind'],
])('a controller sees without an API server what it would refuse of a %s: %j', async (kind, spec, complaint) => {
  put(kind, spec);
  expect(await bootstrapComplaints(source())).toEqual([expect.stringContaining(complaint)]);
});

test('a directory that cannot be read is a complaint, and good manifests are none', async () => {
  put('DeliveryPool', { replicas: 2 });
  expect(await bootstrapComplaints(source())).toEqual([]);
  expect(await bootstrapComplaints({ ...source(), directory: join(directory, 'nowhere') })).toEqual([expect.stringContaining('nowhere')]);
});

test('a controller is not ready while the manifests are invalid, with an Event and a metric, and is when they are corrected', async () => {
  expect(readiness.missing).toBe('bootstrap: starting');
  put('DeliveryPool', { autoscaling: { min: 9, max: 3 } });
  const clock = new FakeClock();
  const ending = new AbortController();
  const refused = (complaints: readonly string[]): void => report.refused(complaints);
  const checking = checkBootstrap({ source: source(), clock, logger: silentLogger, refused }, ending.signal);
  await eventually(() => expect(events).toHaveLength(1));
  expect(readiness.missing).toBe('bootstrap: DeliveryPool default: spec.autoscaling.min: must be at most max');
  expect(await measured()).toBe(1);
  expect(events[0]).toEqual({
    object: configMap,
    type: 'Warning',
    reason: 'BootstrapFailed',
    message: 'DeliveryPool default: spec.autoscaling.min: must be at most max',
  });
  put('DeliveryPool', { autoscaling: { min: 1, max: 3 } });
  await clock.advance(10_000);
  await checking;
  expect([readiness.ready, await measured()]).toEqual([true, 0]);
  expect(events).toHaveLength(1);
});

test('a leader is not ready until it has applied everything, and reports each complaint once', async () => {
  report.refused([]);
  expect(readiness.ready).toBe(true);
  report.failed(null);
  expect([readiness.missing, await measured()]).toEqual(['bootstrap: the bootstrap manifests are being applied', 0]);
  report.failed(['DeliveryPool default: forbidden', 'the admin key: not found']);
  report.failed(['DeliveryPool default: forbidden']);
  expect([readiness.missing, await measured()]).toEqual(['bootstrap: DeliveryPool default: forbidden', 1]);
  await eventually(() =>
    expect(events.map(({ message }) => message)).toEqual(['DeliveryPool default: forbidden', 'the admin key: not found']),
  );
  report.failed([]);
  expect([readiness.ready, await measured()]).toEqual([true, 0]);
  report.failed(['DeliveryPool default: forbidden']);
  await eventually(() => expect(events).toHaveLength(3));
});
