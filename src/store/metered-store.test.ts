import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { MemoryStore } from './memory/memory-store.ts';
import { meteredStore } from './metered-store.ts';
import { createStoreMetrics } from './metrics.ts';

test('calls are counted by verb, kind and outcome, and errors pass through', async () => {
  const registry = new Registry();
  const clock = new FakeClock();
  const store = meteredStore(new MemoryStore(clock), clock, createStoreMetrics(registry));
  await store.create({ kind: 'Namespace', metadata: { name: 'a' } }, { manager: 'test' });
  await expect(store.get('Namespace', { name: 'b' })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  const text = await registry.metrics();
  expect(text).toContain('posthorn_store_request_duration_seconds_count{verb="create",kind="Namespace",outcome="success"} 1');
  expect(text).toContain('posthorn_store_request_duration_seconds_count{verb="get",kind="Namespace",outcome="RESOURCE_NOT_FOUND"} 1');
});
