import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { PosthornError } from '../core/errors.ts';
import type { NamespaceObject } from '../resources/kinds.ts';
import { ResourceCache } from './cache.ts';
import { createStoreMetrics } from './metrics.ts';
import { Reflector } from './reflector.ts';
import type { Page, Version, WatchEvent } from './store.ts';

type Answer = (() => AsyncIterable<WatchEvent<'Namespace'>>) | Error;

/** A store with scripted responses: only faults and time are played, never its semantics. */
class ScriptedStore {
  readonly calls: string[] = [];
  readonly lists: (Page<'Namespace'> | Error)[] = [];
  readonly watches: Answer[] = [];

  async list(): Promise<Page<never>> {
    this.calls.push('list');
    const answer = this.lists.shift() ?? new PosthornError('UNAVAILABLE', 'nothing laid out');
    if (answer instanceof Error) throw answer;
    return answer as Page<never>;
  }

  async *watch(_kind: string, from: Version, signal: AbortSignal): AsyncGenerator<never> {
    this.calls.push(`watch ${from}`);
    const answer = this.watches.shift() ?? open;
    if (answer instanceof Error) throw answer;
    yield* answer() as AsyncIterable<never>;
    if (answer === open) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  }
}

async function* open(): AsyncGenerator<WatchEvent<'Namespace'>> {}

function events(...all: (WatchEvent<'Namespace'> | Error)[]): Answer {
  return async function* () {
    for (const event of all) {
      if (event instanceof Error) throw event;
      yield event;
    }
  };
}

function namespace(name: string, version: string): NamespaceObject {
  const metadata = { name, uid: `uid-${name}`, resourceVersion: version, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' };
  return { apiVersion: 'v1', kind: 'Namespace', metadata };
}

const page = (version: string, ...names: string[]): Page<'Namespace'> => ({
  items: names.map((name) => namespace(name, version)),
  version: version as Version,
});
const expired = new PosthornError('EXPIRED', 'too old');
const unavailable = new PosthornError('UNAVAILABLE', 'reset');

let clock: FakeClock;
let store: ScriptedStore;
let cache: ResourceCache<'Namespace'>;
let reflector: Reflector<'Namespace'>;
let stop: AbortController;
let registry: Registry;

beforeEach(() => {
  clock = new FakeClock();
  store = new ScriptedStore();
  cache = new ResourceCache('Namespace', { logger: silentLogger });
  registry = new Registry();
  reflector = new Reflector({ store, cache, clock, logger: silentLogger, metrics: createStoreMetrics(registry) });
  stop = new AbortController();
});
afterEach(() => stop.abort());

const start = async (): Promise<void> => {
  void reflector.run(stop.signal);
  await clock.advance(0);
};

test('a reflector lists, takes the list in, and watches from its version', async () => {
  store.lists.push(page('5', 'a', 'b'));
  await start();
  expect(store.calls).toEqual(['list', 'watch 5']);
  expect(cache.size).toBe(2);
  expect(reflector.state).toBe('synced');
  await reflector.synced;
});

test('a watch that the server closed continues from the last version seen, events and bookmarks alike', async () => {
  store.lists.push(page('5'));
  store.watches.push(events({ type: 'added', object: namespace('a', '6') }));
  store.watches.push(events({ type: 'deleted', object: namespace('a', '7') }));
  store.watches.push(events({ type: 'bookmark', version: '9' as Version }));
  await start();
  expect(store.calls).toEqual(['list', 'watch 5', 'watch 6', 'watch 7', 'watch 9']);
});

test('EXPIRED lists again at once', async () => {
  store.lists.push(page('5', 'a'), page('8', 'b'));
  store.watches.push(expired);
  await start();
  expect(store.calls).toEqual(['list', 'watch 5', 'list', 'watch 8']);
  expect(cache.list().map((each) => each.metadata.name)).toEqual(['b']);
});

test('EXPIRED again and again backs off', async () => {
  for (let i = 0; i < 6; i++) {
    store.lists.push(page('5'));
    store.watches.push(expired);
  }
  await start();
  expect(store.calls.filter((call) => call === 'list')).toHaveLength(2);
});

test('a broken watch continues from its version after a delay that doubles up to 30 s', async () => {
  store.lists.push(page('5'));
  for (let i = 0; i < 9; i++) store.watches.push(unavailable);
  await start();
  const waited: number[] = [];
  for (let i = 0; i < 8; i++) {
    const before = clock.now();
    const calls = store.calls.length;
    while (store.calls.length === calls) await clock.advance(100);
    waited.push(clock.now() - before);
  }
  const nominal = [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000];
  waited.forEach((ms, index) => {
    const expected = nominal[index] ?? 0;
    expect(ms).toBeGreaterThanOrEqual(expected * 0.75);
    expect(ms).toBeLessThanOrEqual(Math.min(30_000, expected * 1.25) + 100);
  });
  expect(store.calls.slice(1).every((call) => call === 'watch 5')).toBe(true);
});

test('the backoff restarts after two healthy minutes', async () => {
  store.lists.push(page('5'));
  for (let i = 0; i < 5; i++) store.watches.push(unavailable);
  const broken = Promise.withResolvers<void>();
  store.watches.push(async function* () {
    yield { type: 'bookmark', version: '5' as Version };
    await broken.promise;
    throw unavailable;
  });
  await start();
  await clock.advance(60_000);
  await clock.advance(130_000);
  const calls = store.calls.length;
  broken.resolve();
  await clock.advance(1100);
  expect(store.calls).toHaveLength(calls + 1);
});

test('a reflector waits as long as the server requests', async () => {
  store.lists.push(page('5'));
  store.watches.push(new PosthornError('UNAVAILABLE', 'busy', { retryAfterSeconds: 20 }));
  await start();
  await clock.advance(19_900);
  expect(store.calls).toEqual(['list', 'watch 5']);
  await clock.advance(200);
  expect(store.calls).toEqual(['list', 'watch 5', 'watch 5']);
});

test('a list that fails is tried again, and the state is syncing until it succeeds', async () => {
  store.lists.push(unavailable, unavailable, page('5', 'a'));
  await start();
  expect(reflector.state).toBe('syncing');
  expect(reflector.degradedSinceMs).toBe(clock.now());
  await clock.advance(5000);
  expect(reflector.state).toBe('synced');
  expect(reflector.degradedSinceMs).toBeNull();
});

test('a failing watch is degraded from its first failure until it is open again', async () => {
  store.lists.push(page('5'));
  store.watches.push(unavailable, unavailable, async function* () {
    yield { type: 'bookmark', version: '5' as Version };
    await new Promise(() => {});
  });
  await start();
  const since = clock.now();
  await clock.advance(1000);
  expect([reflector.state, reflector.degradedSinceMs]).toEqual(['degraded', since]);
  await clock.advance(2000);
  expect([reflector.state, reflector.degradedSinceMs]).toEqual(['synced', null]);
});

test('a watch that ends at once without an event backs off', async () => {
  store.lists.push(page('5'));
  for (let i = 0; i < 50; i++) store.watches.push(events());
  await start();
  await clock.advance(500);
  expect(store.calls).toEqual(['list', 'watch 5']);
});

test('failures that do not end list again in between', async () => {
  store.lists.push(page('5'), page('6'));
  for (let i = 0; i < 12; i++) store.watches.push(new PosthornError('INTERNAL', 'the version is from the future'));
  await start();
  await clock.advance(300_000);
  expect(store.calls.filter((call) => call === 'list')).toHaveLength(2);
  expect(store.calls).toContain('watch 6');
});

test('a store that is down for ten minutes is reported at once and now and then, and again when it is down again', async () => {
  const lines: string[] = [];
  const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(line) });
  reflector = new Reflector({ store, cache, clock, logger, metrics: createStoreMetrics(new Registry()) });
  store.lists.push(page('5', 'a'));
  store.watches.push(unavailable);
  const isAway = Array.from({ length: 100 }, () => unavailable);
  store.lists.push(...isAway);
  store.watches.push(...isAway);
  await start();
  expect(lines).toHaveLength(1);
  await clock.advance(600_000);
  expect(lines.length).toBeGreaterThan(1);
  expect(lines.length).toBeLessThan(6);
  store.lists.splice(0, isAway.length, page('6', 'a'));
  const reset = new AbortController();
  store.watches.splice(0, isAway.length, async function* () {
    yield* open();
    await clock.sleep(3_600_000, reset.signal);
    throw unavailable;
  });
  await clock.advance(60_000);
  expect(reflector.state).toBe('synced');
  const before = lines.length;
  reset.abort();
  await clock.advance(0);
  expect(lines).toHaveLength(before + 1);
});

test('a list of several pages is taken in whole', async () => {
  store.lists.push({ ...page('5', 'a'), continueToken: 'more' }, page('5', 'b'));
  await start();
  expect(cache.size).toBe(2);
});

test('a list that fails on its second page leaves the cache as it was', async () => {
  store.lists.push(page('5', 'a'), { ...page('8', 'b'), continueToken: 'more' }, unavailable);
  store.watches.push(expired);
  await start();
  expect(cache.list().map((each) => each.metadata.name)).toEqual(['a']);
});

test('aborting ends it', async () => {
  store.lists.push(page('5'));
  const run = reflector.run(stop.signal);
  await clock.advance(0);
  stop.abort();
  await run;
});

test('its metrics report lists, ends of watches and health', async () => {
  store.lists.push(page('5', 'a'), page('6', 'a'));
  store.watches.push(expired, unavailable);
  await start();
  const text = await registry.metrics();
  expect(text).toContain('posthorn_reflector_lists_total{kind="Namespace",outcome="success"} 2');
  expect(text).toContain('posthorn_reflector_watch_ends_total{kind="Namespace",reason="EXPIRED"} 1');
  expect(text).toContain('posthorn_reflector_watch_ends_total{kind="Namespace",reason="UNAVAILABLE"} 1');
  expect(text).toContain('posthorn_reflector_healthy{kind="Namespace"} 0');
  expect(text).toContain('posthorn_cached_objects{kind="Namespace"} 1');
});
