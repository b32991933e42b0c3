import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Outcome } from '../../../src/data/queue/delivery-queue.ts';
import type { WebhookEndpoint } from '../../../src/data/webhooks/webhooks.ts';
import { dead, delivered, failure, takeFrom } from '../../support/queue-worker.ts';
import { waitForPeriodStart } from '../../support/wait-for-period-start.ts';
import { dropped, later, type MessagesWorld, startMessagesWorld } from './messages-world.ts';

let world: MessagesWorld;
beforeAll(async () => {
  world = await startMessagesWorld();
});
afterAll(() => world.stop());
beforeEach(async () => {
  await world.clear();
  // Periods of five minutes, and longer ones that end with one of them.
  await waitForPeriodStart(300_000);
});

const read = (path: string, key?: string) =>
  world.facade.request('GET', `/api/webhooks/analytics${path}`, key === undefined ? {} : { key });
const overview = async (query = '') => (await read(query)).body.data;
const took = (durationMs: number): Outcome => ({
  type: 'delivered',
  attempt: { ...failure, responseStatus: 200, errorType: null, errorMessage: null, durationMs },
});
const timedOut: Outcome = {
  type: 'retry',
  delayMs: 3_600_000,
  attempt: { ...failure, responseStatus: null, responseBody: null, errorType: 'timeout', errorMessage: 'no answer', durationMs: 10 },
};
async function sent(endpoint: WebhookEndpoint, ...outcomes: Outcome[]): Promise<string[]> {
  const ids: string[] = [];
  for (const outcome of outcomes) {
    ids.push(...(await world.send([endpoint])));
    await world.end(outcome);
  }
  return ids;
}
const fold = async () => {
  const due = `test:{s0}:tallies`;
  for (const name of await world.facade.redis.client.zrange(due, '0', '-1')) await world.facade.redis.client.zadd(due, 'XX', 1, name);
  while (await world.queue.foldTallies());
};

describe('the overview', () => {
  test('the overview of nothing holds every period of its range, empty', async () => {
    const data = await overview();
    expect(data).toEqual({
      timeRange: '24h',
      startTime: expect.any(String),
      summary: {
        totalDeliveries: 0,
        successCount: 0,
        failedCount: 0,
        pendingCount: 0,
        processingCount: 0,
        dlqCount: 0,
        successRate: null,
      },
      latency: { p50: null, p95: null, p99: null, avg: null },
      topFailingEndpoints: [],
      errorTypes: [],
      dlqByReason: {},
      chartData: Array.from({ length: 25 }, () => ({ period: expect.any(String), success: 0, failed: 0, pending: 0 })),
    });
  });

  test.each([
    ['1h', 13, 300_000],
    ['24h', 25, 3_600_000],
    ['7d', 8, 86_400_000],
    ['30d', 31, 86_400_000],
  ])('the overview of %s has %i periods of %i ms, the last of which is now', async (range, count, lengthMs) => {
    const askedAtMs = Date.now();
    const { chartData, startTime, timeRange } = await overview(`?timeRange=${range}`);
    const begins = chartData.map(({ period }: { period: string }) => Date.parse(period));
    expect([timeRange, chartData.length, chartData[0].period]).toEqual([range, count, startTime]);
    expect(begins.slice(1).every((begin: number, i: number) => begin - begins[i] === lengthMs && begin % lengthMs === 0)).toBe(true);
    expect(askedAtMs - begins.at(-1)).toBeLessThan(lengthMs);
    expect(begins.at(-1)).toBeLessThanOrEqual(Date.now());
  });

  // Before tallies are folded, after it, and with some of both.
  test.each(['tallies', 'sums', 'both'])('the overview counts messages by what became of them, and their attempts (%s)', async (where) => {
    const endpoint = await world.endpoint();
    await sent(endpoint, took(100), took(200), took(400), timedOut, later, dead);
    if (where !== 'tallies') await fold();
    await sent(
      endpoint,
      { type: 'dead', attempt: null, reason: 'secret_decryption_failed' },
      dropped('transform_failed'),
      dropped('filtered'),
    );
    await world.send([endpoint]);
    await takeFrom(world.queue, 'w1', 64);
    await world.send([endpoint]);
    if (where === 'sums') await fold();
    for (const query of ['', `?applicationId=${endpoint.applicationId}`, `?endpointId=${endpoint.id}`, '?timeRange=1h', '?timeRange=30d']) {
      const { summary, latency, errorTypes, dlqByReason, chartData, topFailingEndpoints } = await overview(query);
      expect(summary).toEqual({
        totalDeliveries: 6,
        successCount: 3,
        failedCount: 3,
        pendingCount: 3,
        processingCount: 1,
        dlqCount: 2,
        successRate: 50,
      });
      expect(latency.avg).toBeCloseTo((100 + 200 + 400 + 10 + 5 + 5) / 6, 1);
      expect(latency.p50).toBeGreaterThan(9);
      expect(Math.abs(latency.p99 / 400 - 1)).toBeLessThan(0.05);
      expect(errorTypes).toEqual([
        { type: 'http_error', count: 2 },
        { type: 'timeout', count: 1 },
      ]);
      expect(dlqByReason).toEqual({ max_retries_exceeded: 1, secret_decryption_failed: 1 });
      expect(chartData.at(-1)).toMatchObject({ success: 3, failed: 3, pending: 4 });
      expect(chartData.slice(0, -1)).not.toContainEqual(expect.objectContaining({ pending: 1 }));
      expect(topFailingEndpoints).toEqual([
        {
          endpointId: endpoint.id,
          endpointUrl: endpoint.url,
          circuitState: 'closed',
          failureCount: 3,
          totalMessages: 6,
          totalSuccesses: 3,
          totalFailures: 3,
        },
      ]);
    }
  });

  test('the overview says of an application and of an endpoint what is theirs alone', async () => {
    const first = await world.endpoint();
    const [second, other] = [await world.endpoint(first.applicationId), await world.endpoint()];
    await sent(first, delivered, dead);
    await sent(second, delivered, delivered, later);
    await sent(other, delivered, dead, dead);
    const sums = async (query: string) => {
      const { summary, topFailingEndpoints } = await overview(query);
      return [
        summary.successCount,
        summary.failedCount,
        summary.pendingCount,
        topFailingEndpoints.map((each: { endpointId: string }) => each.endpointId),
      ];
    };
    for (const where of ['tallies', 'sums']) {
      if (where === 'sums') await fold();
      expect(await sums('')).toEqual([4, 3, 1, expect.arrayContaining([first.id, second.id])]);
      expect((await overview()).topFailingEndpoints[0]).toMatchObject({ endpointId: other.id, failureCount: 2 });
      expect(await sums(`?applicationId=${first.applicationId}`)).toEqual([3, 1, 1, expect.arrayContaining([first.id, second.id])]);
      expect(await sums(`?endpointId=${second.id}`)).toEqual([2, 0, 1, [second.id]]);
      expect(await sums(`?endpointId=${other.id}&applicationId=${other.applicationId}`)).toEqual([1, 2, 0, [other.id]]);
    }
  });

  test('the overview has the same numbers as the counts by status', async () => {
    const endpoint = await world.endpoint();
    await sent(endpoint, delivered, later, dead);
    const messages = await world.send([endpoint, await world.endpoint()]);
    await takeFrom(world.queue, 'w1', 1);
    const { pending, failed, processing, success, dlq } = (await world.facade.request('GET', '/api/outbound-messages/stats/summary')).body
      .data;
    const { summary } = await overview();
    expect(messages).toHaveLength(2);
    expect(summary).toMatchObject({ pendingCount: pending + failed, processingCount: processing, successCount: success, dlqCount: dlq });
  });

  test('the overview keeps what was unfinished at the end of earlier periods', async () => {
    const endpoint = await world.endpoint();
    await world.send([endpoint, await world.endpoint()]);
    await fold();
    // As if it had happened an hour ago.
    const { client } = world.facade.redis;
    const hour = Math.floor(Date.now() / 3_600_000);
    const key = (number: number) => `test:{s0}:st:+${world.org}:h${number}`;
    await client.rename(key(hour), key(hour - 1));
    await world.end(delivered);
    const { chartData } = await overview();
    expect(chartData.slice(-3)).toMatchObject([{ pending: 0 }, { success: 0, pending: 2 }, { success: 2, pending: 0 }]);
  });

  test.each(['timeRange=2h', 'timeRange=', 'endpointId=', 'applicationId='])('the overview with %s is 400', async (query) => {
    const { status, body } = await read(`?${query}`);
    expect([status, Object.keys(body.details)]).toEqual([400, [query.split('=')[0]]]);
  });

  test('the overview of an application or endpoint that is not there, or of another organization, is 404', async () => {
    const [endpoint, other] = [await world.endpoint(), await world.endpoint()];
    await world.facade.addOrganization('other');
    const stranger = await world.facade.addKey('other');
    const answers = [
      await read('?applicationId=app_none'),
      await read('?endpointId=ep_none'),
      await read(`?endpointId=${endpoint.id}&applicationId=${other.applicationId}`),
      await read(`?applicationId=${endpoint.applicationId}`, stranger),
      await read('/endpoints/ep_none'),
      await read(`/endpoints/${endpoint.id}`, stranger),
    ];
    expect(answers.map(({ status, body }) => [status, body.error])).toEqual(answers.map(() => [404, 'Not found']));
  });

  test('the overview leaves out failing endpoints that were deleted', async () => {
    const endpoint = await world.endpoint();
    await sent(endpoint, dead);
    await world.store.deleteEndpoint(world.org, endpoint.id);
    expect(await overview()).toMatchObject({ summary: { failedCount: 1 }, topFailingEndpoints: [] });
  });
});

describe('the figures of an endpoint', () => {
  test('the figures of an endpoint are its record, its figures of the range and its newest attempts', async () => {
    const endpoint = await world.endpoint();
    const [first, second, third] = await sent(endpoint, took(40), later, dead);
    const { status, body } = await read(`/endpoints/${endpoint.id}`);
    expect(status).toBe(200);
    const record = (await world.facade.request('GET', `/api/webhook-endpoints/${endpoint.id}`)).body.data;
    expect(body.data).toEqual({
      endpoint: {
        id: endpoint.id,
        url: endpoint.url,
        circuitState: 'closed',
        circuitFailureCount: 2,
        totalMessages: 2,
        totalSuccesses: 1,
        totalFailures: 1,
        avgResponseTimeMs: record.avgResponseTimeMs,
        lastSuccessAt: record.lastSuccessAt,
        lastFailureAt: record.lastFailureAt,
      },
      stats: { success: 1, failed: 1, pending: 1, avgResponseTimeMs: 16.67 },
      recentAttempts: [third, second, first].map((messageId) => ({
        id: expect.stringMatching(/^att_.*_1$/),
        messageId,
        attemptNumber: 1,
        status: messageId === first ? 'success' : 'failed',
        responseStatus: messageId === first ? 200 : 500,
        responseTimeMs: messageId === first ? 40 : 5,
        createdAt: expect.any(String),
      })),
    });
    const attempts = (await world.facade.request('GET', `/api/outbound-messages/${third}/attempts`)).body.data;
    expect(body.data.recentAttempts[0]).toMatchObject({ id: attempts[0].id, createdAt: attempts[0].createdAt });
  });

  test('the figures of an endpoint have the ten newest attempts, of many messages settled together, too', async () => {
    const endpoint = await world.endpoint();
    for (let n = 0; n < 12; n++) await world.send([endpoint]);
    await world.end(later);
    const last = await sent(endpoint, delivered);
    const { recentAttempts } = (await read(`/endpoints/${endpoint.id}?timeRange=1h`)).body.data;
    expect(recentAttempts).toHaveLength(10);
    expect(recentAttempts[0]).toMatchObject({ messageId: last[0], status: 'success' });
  });

  test('the figures of an endpoint of one that never had a message are empty', async () => {
    const { id } = await world.endpoint();
    expect((await read(`/endpoints/${id}`)).body.data).toMatchObject({
      stats: { success: 0, failed: 0, pending: 0, avgResponseTimeMs: null },
      recentAttempts: [],
    });
    expect((await read(`/endpoints/${id}?timeRange=8h`)).body.details).toEqual({ timeRange: [expect.any(String)] });
  });
});
