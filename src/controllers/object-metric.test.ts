import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { silentLogger as logger } from '../../test/support/logger.ts';
import { systemClock as clock } from '../runtime/system-clock.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { createStoreMetrics } from '../store/metrics.ts';
import { controllerCaches } from './controller-caches.ts';
import { objectMetric } from './object-metric.ts';

test('the leader counts the objects of each kind by their condition Ready, and another process none', async () => {
  const store = new MemoryStore(clock);
  const registry = new Registry();
  const caches = controllerCaches({ store, servedInstallation: null, clock, logger, metrics: createStoreMetrics(new Registry()) });
  let isLeading = true;
  objectMetric(registry, { caches, isLeading: () => isLeading });
  const condition = (status: string, reason: string) => ({
    conditions: [{ type: 'Ready', status, reason, message: '', lastTransitionTime: '2026-01-31T12:00:00Z' }],
  });
  const metadata = { namespace: 'acme', uid: '', resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-31T12:00:00Z' };
  const filter = (name: string, status: object) =>
    caches.Filter.upsert({ ...base, metadata: { ...metadata, name, uid: name }, ...status } as never);
  const base = { apiVersion: 'posthorn.dev/v1alpha1', kind: 'Filter', spec: { conditions: [] } };
  filter('one', { status: condition('True', 'Ready') });
  filter('two', { status: condition('True', 'PartiallyInForce') });
  filter('three', { status: condition('False', 'SecretNotFound') });
  filter('four', { spec: { conditions: [], enabled: false }, status: condition('False', 'SecretNotFound') });
  filter('six', { status: condition('False', 'OrganizationNotFound') });
  filter('seven', { status: condition('False', 'Expired') });
  filter('five', {});
  const counted = async () =>
    ((await registry.getSingleMetric('posthorn_objects')?.get())?.values ?? [])
      .filter(({ labels }) => labels['kind'] === 'Filter' || labels['kind'] === 'Route')
      .map(({ labels, value }) => `${labels['kind']} ${labels['state']} ${value}`);
  expect(new Set(await counted())).toEqual(
    new Set([
      'Route ready 0',
      'Route not_ready 0',
      'Route disabled 0',
      'Route ended 0',
      'Filter ready 2',
      'Filter not_ready 2',
      'Filter disabled 1',
      'Filter ended 2',
    ]),
  );
  isLeading = false;
  expect(await counted()).toEqual([]);
});
