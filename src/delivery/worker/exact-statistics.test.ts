import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { startReceiver } from '../../../test/support/receiver.ts';
import { RecordRegistry } from '../../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { startTestDelivery } from '../../../test/support/test-delivery.ts';
import { RedisStatisticsReader } from '../../data/analytics/redis-statistics-reader.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const prefix = 'test:';
const messages = 600;
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('what a worker delivers until it is stopped is counted exactly, and percentiles are within 5 % of its attempts', async () => {
  const receiver = await startReceiver((response, number) => {
    const isRefused = number % 10 === 0;
    setTimeout(() => response.writeHead(isRefused ? 500 : 200).end(), number % 40);
  });
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  registry.put('route', routeRecord({ circuit: { failureThreshold: 1000, cooldownSeconds: 60, probeSuccessThreshold: 1 } }));
  const once = { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
  registry.put('destination', destinationRecord({ url: receiver.url }, { retryPolicy: once }));
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  const events = Array.from({ length: messages }, () => newEvent());
  await Promise.all(events.map((event) => acceptor.accept(event)));
  const delivery = startTestDelivery(redis, { prefix, registry });
  await receiver.arrived(messages, 60_000);
  // Statistics are made while the worker works, not ten seconds later.
  await eventually(async () => {
    const names = await redis.client.zrange(`${prefix}{s0}:tallies`, '0', '-1');
    for (const name of names) await redis.client.zadd(`${prefix}{s0}:tallies`, 'XX', 1, name);
    expect(await redis.client.keys(`${prefix}{s0}:st:org_a:h*`)).not.toEqual([]);
  });
  await delivery.stop(30_000);
  await receiver.close();

  const reader = new RedisMessageReader({ redis: redis.client, prefix });
  const ids = events.map(({ targets }) => targets[0]?.messageId ?? '');
  const attempts = (await Promise.all(ids.map((id) => reader.attempts('org_a', id)))).flat();
  const durations = attempts.map(({ durationMs }) => durationMs).sort((one, other) => one - other);
  const refused = attempts.filter(({ responseStatus }) => responseStatus === 500).length;
  const statistics = new RedisStatisticsReader({ redis: redis.client, prefix, clock: systemClock });
  const { total } = await statistics.ofOrganization('org_a', '1h');

  expect(attempts).toHaveLength(messages);
  expect(total).toMatchObject({ delivered: messages - refused, failed: refused });
  expect(total.averageLatencyMs).toBeCloseTo(durations.reduce((sum, ms) => sum + ms, 0) / messages, 6);
  for (const share of [0.5, 0.95, 0.99]) {
    const exact = Math.max(1, durations[Math.ceil(share * messages) - 1] ?? 0);
    expect(Math.abs((total.latencies.quantile(share) ?? 0) - exact) / exact).toBeLessThanOrEqual(0.05);
  }
  expect(await reader.destinationCounters('org_a', 'dst_a')).toMatchObject({ deliveries: messages, successes: messages - refused });
});
