import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { KubeConfig } from '@kubernetes/client-node';
import { Registry } from 'prom-client';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { type CacheChange, ResourceCache } from '../../src/store/cache.ts';
import { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { createStoreMetrics } from '../../src/store/metrics.ts';
import { Reflector } from '../../src/store/reflector.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, FaultProxy } from '../support/fault-proxy.ts';
import { silentLogger } from '../support/logger.ts';

const settleMs = 30_000;

let controlPlane: ControlPlane;
let direct: KubernetesStore;
let directApi: KubernetesApi;
beforeAll(async () => {
  controlPlane = await startControlPlane({ crds: true });
  directApi = new KubernetesApi({ loadKubeConfig: () => kubeConfig(controlPlane.url, true), clock: systemClock });
  direct = new KubernetesStore({ api: directApi, clock: systemClock });
}, 120_000);
afterAll(async () => {
  await directApi?.close();
  await controlPlane?.stop();
});

let proxy: FaultProxy;
let api: KubernetesApi;
let cache: ResourceCache<'Filter'>;
let reflector: Reflector<'Filter'>;
let changes: CacheChange<'Filter'>[];
let stop: AbortController;
let running: Promise<void>;
let namespace: string;

beforeEach(async () => {
  namespace = `t-${randomBytes(5).toString('hex')}`;
  await direct.create({ kind: 'Namespace', metadata: { name: namespace } }, { manager: 'test' });
  proxy = await FaultProxy.start(controlPlane);
  api = new KubernetesApi({ loadKubeConfig: () => kubeConfig(proxy.url, false), clock: systemClock });
  cache = new ResourceCache('Filter', { logger: silentLogger });
  changes = [];
  cache.onChange((_, change) => void changes.push(change));
  reflector = newReflector();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await running;
  await api.close();
  await proxy.stop();
});

function newReflector(watchLimits?: { silenceMs: number }): Reflector<'Filter'> {
  const store = new KubernetesStore({ api, clock: systemClock, ...(watchLimits !== undefined && { watchLimits }) });
  const metrics = createStoreMetrics(new Registry());
  return new Reflector({ store, cache, clock: systemClock, logger: silentLogger, metrics, namespace });
}

const start = async (): Promise<void> => {
  running = reflector.run(stop.signal);
  await reflector.synced;
  await eventually('a watch', settleMs, () => proxy.openStreams > 0);
};
/** A stream that was silent for too long may be closed and reopened just now. */
async function endStreamExpired(): Promise<void> {
  await eventually('a watch', settleMs, () => proxy.openStreams > 0);
  proxy.endStreamsWith(errorEvent(410, 'Expired', 'too old resource version'));
}
const put = (name: string, field = 'a') =>
  direct.apply(
    { kind: 'Filter', metadata: { name, namespace }, spec: { conditions: [{ field, operator: 'exists' }] } },
    { manager: 'test' },
  );
const cached = (): string[] =>
  cache
    .list()
    .map((each) => each.metadata.name)
    .sort();
const cachedBecomes = (...names: string[]) =>
  eventually(`the cache to hold ${names.join(', ')}`, settleMs, () => JSON.stringify(cached()) === JSON.stringify(names));

/** What a list brings is cached before the watch after it begins. */
async function requests(counts: FaultProxy['counts']): Promise<void> {
  await eventually('the next watch', settleMs, () => proxy.counts.watches >= counts.watches);
  expect(proxy.counts).toEqual(counts);
}

/** Returns the first `times` requests that `matches`, then passes all on. */
function firstTimes(times: number, matches: (isWatch: boolean) => boolean, answer: Answer): FaultProxy['fault'] {
  let left = times;
  return ({ isWatch }) => (matches(isWatch) && left-- > 0 ? answer : null);
}

const statusObject = (code: number, reason: string, message: string) => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  reason,
  message,
});
const errorEvent = (code: number, reason: string, message: string) => ({ type: 'ERROR', object: statusObject(code, reason, message) });

describe('faults between the reflector and the API server', () => {
  test('faults between the reflector and the API server without any, changes arrive over one list and one watch', async () => {
    await put('a');
    await start();
    await put('b');
    await direct.delete('Filter', { name: 'a', namespace });
    await cachedBecomes('b');
    expect(proxy.counts).toEqual({ lists: 1, watches: 1 });
  });

  test('a reset connection loses nothing: what changed meanwhile arrives, without a second list', async () => {
    await put('a');
    await start();
    proxy.resetStreams();
    await put('b');
    await direct.delete('Filter', { name: 'a', namespace });
    await cachedBecomes('b');
    expect(proxy.counts).toEqual({ lists: 1, watches: 2 });
  });

  test('a list that is answered 500 is tried again until it succeeds', async () => {
    await put('a');
    proxy.fault = firstTimes(2, (isWatch) => !isWatch, { status: 500, body: statusObject(500, 'InternalError', 'etcd is away') });
    running = reflector.run(stop.signal);
    await eventually('two failures', settleMs, () => proxy.counts.lists > 1);
    expect(reflector.state).toBe('syncing');
    await cachedBecomes('a');
    expect(proxy.counts.lists).toBe(3);
  });

  test('410 in the stream causes a new list', async () => {
    await put('a');
    await start();
    proxy.endStreamsWith(errorEvent(410, 'Expired', 'too old resource version'));
    await put('b');
    await cachedBecomes('a', 'b');
    await requests({ lists: 2, watches: 2 });
  });

  test('410 in answer to the watch causes a new list', async () => {
    await put('a');
    proxy.fault = firstTimes(1, (isWatch) => isWatch, { status: 410, body: statusObject(410, 'Expired', 'too old resource version') });
    await start();
    await put('b');
    await cachedBecomes('a', 'b');
    await requests({ lists: 2, watches: 2 });
  });

  test('429 with Retry-After causes a watch from the same version, not before that time', async () => {
    await put('a');
    proxy.fault = firstTimes(1, (isWatch) => isWatch, {
      status: 429,
      headers: { 'retry-after': '3' },
      body: statusObject(429, 'TooManyRequests', 'busy'),
    });
    const begunMs = Date.now();
    await start();
    await put('b');
    await cachedBecomes('a', 'b');
    expect(Date.now() - begunMs).toBeGreaterThanOrEqual(3000);
    expect(proxy.counts).toEqual({ lists: 1, watches: 2 });
  });

  test('another ERROR event causes a watch from the same version', async () => {
    await put('a');
    await start();
    proxy.endStreamsWith(errorEvent(504, 'Timeout', 'Too large resource version: 9, current: 8'));
    await put('b');
    await cachedBecomes('a', 'b');
    expect(proxy.counts).toEqual({ lists: 1, watches: 2 });
  });

  test('a line that is no JSON causes a watch from the same version', async () => {
    await put('a');
    await start();
    proxy.endStreamsWith('{"type":');
    await put('b');
    await cachedBecomes('a', 'b');
    expect(proxy.counts).toEqual({ lists: 1, watches: 2 });
  });

  test('a silent stream is given up, and what it kept back arrives', async () => {
    reflector = newReflector({ silenceMs: 2000 });
    await put('a');
    await start();
    proxy.muteStreams();
    await put('b');
    await cachedBecomes('a', 'b');
    expect(proxy.counts.lists).toBe(1);
  });

  test('a deletion that was missed before a new list removes the object', async () => {
    await put('a');
    await put('b');
    await start();
    proxy.muteAllStreams();
    await direct.delete('Filter', { name: 'a', namespace });
    await endStreamExpired();
    await cachedBecomes('b');
    expect(changes.at(-1)?.before?.metadata.name).toBe('a');
    expect(changes.at(-1)?.after).toBeUndefined();
  });

  test('an object that was recreated during an outage is reported with both uids', async () => {
    const first = await put('a');
    await start();
    proxy.muteAllStreams();
    await direct.delete('Filter', { name: 'a', namespace });
    const second = await put('a', 'b');
    await endStreamExpired();
    await eventually('the second object', settleMs, () => cache.getByUid(second.metadata.uid));
    expect(changes.at(-1)?.before?.metadata.uid).toBe(first.metadata.uid);
    expect(cache.getByUid(first.metadata.uid)).toBeUndefined();
  });

  test('an API server that is killed and started again degrades the reflector, then everything arrives', async () => {
    await put('a');
    await start();
    await controlPlane.stopApiServer();
    await eventually('degraded', settleMs, () => reflector.state === 'degraded');
    expect(cached()).toEqual(['a']);
    await controlPlane.startApiServer();
    await put('b');
    await eventually('synced', 40_000, () => reflector.state === 'synced');
    await cachedBecomes('a', 'b');
  });
});

function kubeConfig(server: string, checked: boolean): KubeConfig {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'c', server, skipTLSVerify: !checked, ...(checked ? { caFile: controlPlane.caFile } : {}) },
    { name: 'u', token: controlPlane.token },
  );
  return config;
}
