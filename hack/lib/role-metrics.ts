import { collectDefaultMetrics, Registry } from 'prom-client';
import { apiServerClockMetric } from '../../src/cmd/api-server-clock.ts';
import { bootstrapGauge } from '../../src/cmd/bootstrap-report.ts';
import { buildInfo } from '../../src/cmd/build-info.ts';
import type { Role } from '../../src/cmd/config.ts';
import { leaderMetric } from '../../src/cmd/leader-metric.ts';
import { Readiness } from '../../src/cmd/readiness.ts';
import { readinessMetric } from '../../src/cmd/readiness-metric.ts';
import { encryptionKeyInfo } from '../../src/cmd/role-keyring.ts';
import { clockSkewMetric } from '../../src/cmd/watch-redis.ts';
import { PoolMetrics } from '../../src/controllers/delivery-pool/pool-metrics.ts';
import { objectMetric } from '../../src/controllers/object-metric.ts';
import { deliveryMetrics, mailCounter } from '../../src/delivery/metrics.ts';
import { facadeMetrics } from '../../src/facade/http/metrics.ts';
import { streamMetrics } from '../../src/feed/metrics.ts';
import { ingestMetrics } from '../../src/ingest/metrics.ts';
import { unreplicatedWrites } from '../../src/redis/replicated-writes.ts';
import { ControllerMetrics } from '../../src/runtime/controller-metrics.ts';
import { manifestErrors } from '../../src/runtime/manifests/directory.ts';
import { createStoreMetrics } from '../../src/store/metrics.ts';

const defineFor: Record<Role, (registry: Registry) => void> = {
  controller: (registry) => {
    leaderMetric(registry);
    bootstrapGauge(registry);
    new ControllerMetrics(registry);
    new PoolMetrics(registry);
    objectMetric(registry, null);
    createStoreMetrics(registry);
    apiServerClockMetric(registry, null);
  },
  api: (registry) => {
    facadeMetrics(registry);
    streamMetrics(registry);
    createStoreMetrics(registry);
    apiServerClockMetric(registry, null);
    unreplicatedWrites(registry);
  },
  ingest: (registry) => {
    ingestMetrics(registry);
  },
  delivery: (registry) => {
    mailCounter(registry);
    deliveryMetrics(registry, {
      queues: [],
      now: () => 0,
      inFlight: () => 0,
      bytes: () => Promise.reject(new Error('metrics are defined here, not read')),
    });
  },
  standalone: (registry) => {
    manifestErrors(registry);
  },
};

/** Defines what a process of the role shows on `/metrics`, without its parts. */
export function metricsOfRole(role: Role): Registry {
  const registry = new Registry();
  defineFor[role](registry);
  return registry;
}

/** What a process of any role shows of Node.js and of itself. */
export function processMetrics(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  buildInfo(registry);
  encryptionKeyInfo(registry);
  readinessMetric(registry, new Readiness([]));
  clockSkewMetric(registry);
  return registry;
}
