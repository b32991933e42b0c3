import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { organizationFacts } from '../../compile/organization.ts';
import type { TransformRecord } from '../../core/records.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { createStoreMetrics } from '../../store/metrics.ts';
import type { ApplyObject } from '../../store/store.ts';
import type { CodeChecks } from '../code-checks.ts';
import { type ControllerCaches, controllerCaches } from '../controller-caches.ts';
import type { FencedPublisher } from '../fenced-publisher.ts';
import { RouteCode } from './route-code.ts';

let store: MemoryStore;
let caches: ControllerCaches;
let stopping: AbortController;
/** The published record; null: none. */
let inForce: TransformRecord | null;
/** Runs while the first record is being published. */
let meanwhile: () => Promise<unknown>;

beforeEach(async () => {
  store = new MemoryStore(systemClock);
  caches = controllerCaches({
    store,
    servedInstallation: null,
    clock: systemClock,
    logger: silentLogger,
    metrics: createStoreMetrics(new Registry()),
  });
  stopping = new AbortController();
  inForce = null;
  void caches.run(stopping.signal);
  for (const name of ['acme', 'globex']) {
    await store.apply({ kind: 'Namespace', metadata: { name } }, { manager: 'test' });
    await apply({
      kind: 'Organization',
      metadata: { name, annotations: { 'posthorn.dev/id': `org_${name.padEnd(26, 'a')}` } },
      spec: { namespace: name },
    });
  }
});
afterEach(() => stopping.abort());

async function apply(object: ApplyObject): Promise<void> {
  const { metadata } = await store.apply(object, { manager: 'test', force: true });
  const { kind } = object as { kind: 'Organization' | 'Transform' };
  await eventually(async () => expect(caches[kind].get(metadata)?.metadata.resourceVersion).toBe(metadata.resourceVersion));
}
const shared = (code: string, sharedWith: string[]) =>
  apply({ kind: 'Transform', metadata: { namespace: 'acme', name: 'shared' }, spec: { code, sharedWith } });

async function resolve() {
  const publisher = {
    get: async () => inForce,
    publish: async (_kind: string, record: TransformRecord) => {
      const first = meanwhile;
      meanwhile = async () => {};
      await first();
      inForce = record;
      return true;
    },
    retract: async () => {
      inForce = null;
      return true;
    },
  } as unknown as FencedPublisher;
  const code = new RouteCode({ caches, publisher, checks: { transform: async () => null } as unknown as CodeChecks });
  const organization = organizationFacts(await store.get('Organization', { name: 'globex' }));
  return await code.transform({ spec: { transformRef: { name: 'mine' } } }, organization);
}

test.each([
  ['is withdrawn', () => shared('1', []), null],
  ['becomes another code', () => shared('2', ['globex']), '2'],
  ['stays', () => shared('1', ['globex', 'initech']), '1'],
])('what is published of a shared transform that %s meanwhile is what is shared then', async (_, change, code) => {
  await shared('1', ['globex']);
  await apply({
    kind: 'Transform',
    metadata: { namespace: 'globex', name: 'mine' },
    spec: { sharedFrom: { organization: 'acme', name: 'shared' } },
  });
  meanwhile = change;
  const resolved = await resolve();
  expect(inForce?.code ?? null).toBe(code);
  expect(resolved.unresolved?.reason).toBe(code === null ? 'TransformNotReady' : undefined);
});
