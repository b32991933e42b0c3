import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import type { CircuitState } from '../../core/circuit.ts';
import { idAnnotation } from '../../core/ids.ts';
import type { CircuitTransition } from '../../data/queue/circuits.ts';
import { ControllerMetrics } from '../../runtime/controller-metrics.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { createStoreMetrics } from '../../store/metrics.ts';
import { controllerCaches } from '../controller-caches.ts';
import { idOf } from '../held-ids.ts';
import { type HealthOptions, runHealth } from './run-health.ts';

const manager = { manager: 'test', force: true };
const namespace = 'acme';
const promisedMs = 5000;

let clock: FakeClock;
let store: MemoryStore;
let routeNames: string[];
let routeIds: string[];
let destinationId: string;
let feed: TestFeed;
/** When each object's status was written. */
let writes: { name: string; atMs: number }[];
let stop = async (): Promise<unknown> => undefined;

/** Transitions as the test hands them over. */
class TestFeed {
  #pending: CircuitTransition[] = [];
  #wanted = Promise.withResolvers<void>();

  async head() {
    return new Map<string, string>();
  }

  async after() {
    await this.#wanted.promise;
    this.#wanted = Promise.withResolvers();
    return { transitions: this.#pending.splice(0), position: new Map<string, string>(), isBehind: false };
  }

  close(): void {
    this.#wanted.reject(new Error('closed'));
  }

  push(transitions: CircuitTransition[]): void {
    this.#pending.push(...transitions);
    this.#wanted.resolve();
  }
}

/** A destination with as many routes, whose circuits are closed, and the health controllers of a leader. */
async function lead(routes: number): Promise<void> {
  await store.apply({ kind: 'Namespace', metadata: { name: namespace } }, manager);
  const shop = { namespace, name: 'shop' };
  const http = { url: 'https://shop.example/' };
  destinationId = idOf('Destination', await store.apply({ kind: 'Destination', metadata: shop, spec: { http } }, manager));
  routeNames = Array.from({ length: routes }, (_, i) => `route-${i}`);
  const spec = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] };
  const made = routeNames.map((name) => store.apply({ kind: 'Route', metadata: { namespace, name }, spec }, manager));
  routeIds = (await Promise.all(made)).map((object) => idOf('Route', object));
  const abort = new AbortController();
  const caches = controllerCaches({
    servedInstallation: null,
    store,
    clock,
    logger: silentLogger,
    metrics: createStoreMetrics(new Registry()),
  });
  const following = caches.run(abort.signal);
  await eventually(() => expect([caches.Route.size, caches.Destination.size]).toEqual([routes, 1]));
  const options: HealthOptions = {
    caches,
    circuits: { broken: async () => [], ofTargets: async () => [] },
    feed,
    store: {
      applyStatus: (kind, key, status, how) => {
        writes.push({ name: key.name, atMs: clock.now() });
        return store.applyStatus(kind, key, status, how);
      },
    },
    clock,
    logger: silentLogger,
    recorder: { record: () => {} },
    metrics: new ControllerMetrics(new Registry()),
  };
  const running = runHealth(options, abort.signal);
  stop = () => {
    abort.abort();
    return Promise.allSettled([following, running]);
  };
  await clock.advance(0);
}

function become(state: CircuitState): void {
  feed.push(routeIds.map((routeId) => ({ routeId, destinationId, state, atMs: clock.now(), consecutiveFailures: 5 })));
}

beforeEach(() => {
  clock = new FakeClock();
  store = new MemoryStore(clock);
  feed = new TestFeed();
  writes = [];
});
afterEach(() => stop());

/** Writes after the first `skipped` ones: one of each object, within the promised time, and each status is as expected. */
async function expectPromptWrites(state: CircuitState, changedAtMs: number, skipped: number): Promise<void> {
  const made = writes.slice(skipped);
  expect(made.map(({ name }) => name).sort()).toEqual(['shop', ...routeNames].sort());
  for (const { atMs } of made) expect(atMs - changedAtMs).toBeLessThan(promisedMs);
  for (const name of routeNames) expect((await store.get('Route', { namespace, name })).status?.circuit?.state).toBe(state);
  expect((await store.get('Destination', { namespace, name: 'shop' })).status?.circuit?.state).toBe(state);
}

test('a transition is in the status within five seconds while fewer than fifty objects wait', async () => {
  await lead(48);
  const changedAtMs = clock.now();
  become('open');
  await clock.advance(60_000);
  await expectPromptWrites('open', changedAtMs, 0);
});

test('so is the next one of an object whose status was written half a minute before', async () => {
  await lead(1);
  become('open');
  await clock.advance(31_000);
  const changedAtMs = clock.now();
  become('half_open');
  await clock.advance(60_000);
  await expectPromptWrites('half_open', changedAtMs, 2);
});

const shop = { namespace, name: 'shop' };
const stateOf = async (name: string): Promise<CircuitState | undefined> =>
  (await store.get('Destination', { namespace, name })).status?.circuit?.state;

/** A destination that claims the id of `shop`, whose circuit is open. */
async function claimId(): Promise<void> {
  await lead(1);
  become('open');
  await clock.advance(10_000);
  const metadata = { namespace, name: 'renamed', annotations: { [idAnnotation]: destinationId } };
  await store.apply({ kind: 'Destination', metadata, spec: { http: { url: 'https://shop.example/' } } }, manager);
  await clock.advance(60_000);
  expect([await stateOf('shop'), await stateOf('renamed')]).toEqual(['open', undefined]);
}

test('the circuit of a destination that was renamed with its id stays in the status', async () => {
  await claimId();
  await store.delete('Destination', shop);
  await clock.advance(60_000);
  expect(await stateOf('renamed')).toBe('open');
});

test('an id that a destination no longer claims takes its circuit along to the next one', async () => {
  await claimId();
  const annotations = { [idAnnotation]: `dst_${'a'.repeat(26)}` };
  await store.apply({ kind: 'Destination', metadata: { ...shop, annotations }, spec: { http: { url: 'https://shop.example/' } } }, manager);
  await clock.advance(60_000);
  expect([await stateOf('shop'), await stateOf('renamed')]).toEqual(['closed', 'open']);
});
