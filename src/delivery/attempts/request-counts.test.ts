import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { countRequest, deliveryMetrics } from '../metrics.ts';

const name = 'posthorn_delivery_requests_total';
const registry = new Registry();
const metrics = deliveryMetrics(registry, {
  queues: [],
  now: Date.now,
  inFlight: () => 0,
  bytes: () => Promise.reject(new Error('no figures')),
});

test('requests stay counted, each once, however often the metrics are read', async () => {
  countRequest(metrics, 'destination', undefined);
  countRequest(metrics, 'endpoint', { isThin: true, scheme: 'ed25519' });
  expect(await counted()).toEqual([
    `${name}{target="destination",form="full",scheme="none"} 1`,
    `${name}{target="endpoint",form="thin",scheme="ed25519"} 1`,
  ]);
  countRequest(metrics, 'destination', undefined);
  await counted();
  expect(await counted()).toEqual([
    `${name}{target="destination",form="full",scheme="none"} 2`,
    `${name}{target="endpoint",form="thin",scheme="ed25519"} 1`,
  ]);
});

async function counted(): Promise<string[]> {
  const lines = (await registry.getSingleMetricAsString(name)).split('\n');
  return lines.filter((line) => line.startsWith(name) && !line.endsWith(' 0')).sort();
}
