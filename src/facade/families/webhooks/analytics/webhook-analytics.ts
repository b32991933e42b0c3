import { z } from 'zod';
import { isPosthornError, PosthornError } from '../../../../core/errors.ts';
import type { FailingEndpoint, WebhookFigures } from '../../../../data/webhooks/webhook-figures.ts';
import { reasonOf } from '../../../../data/webhooks/webhook-message-view.ts';
import type { FiguresSubject, WebhookSeriesSubject } from '../../../../data/webhooks/webhook-statistics.ts';
import { type Call, type Family, operation } from '../../../http/operation.ts';
import { wasDeleted } from '../../../records/deleted-ids.ts';
import { isoTime, timestamp } from '../../../records/record-fields.ts';
import { percent, roundedOrNull } from '../../analytics/analytics-figures.ts';
import { periodsOf, seriesQuery, seriesRecord, toSeries } from '../../analytics/series.ts';
import { single } from '../../shared/envelope.ts';
import { endpointRecord, endpointRecords, toEndpoint } from '../endpoints/endpoint-record.ts';
import { findEndpoint } from '../endpoints/find-endpoint.ts';
import { messageAttempt, toAttempt } from '../messages/message-record.ts';

const timeRange = z
  .enum(['1h', '24h', '7d', '30d'])
  .default('24h')
  .describe('Ends now. 1h is exact to five minutes, 24h to an hour, 7d and 30d to a day (UTC).');
const id = z.string().min(1).max(128);
const count = z.int().min(0);
const latency = z.number().nullable().describe('Milliseconds, of all attempts; percentiles within 5 %. null without attempts.');

const failingEndpoint = endpointRecord.pick({ circuitState: true, totalMessages: true, totalSuccesses: true, totalFailures: true }).extend({
  endpointId: z.string().describe('Id of the endpoint.'),
  endpointUrl: z.string().describe('URL of the endpoint.'),
  failureCount: count.describe('Failed attempts in the range.'),
});

const overview = z
  .object({
    timeRange: z.string().describe('The range of time.'),
    startTime: timestamp.describe('Begin of the range.'),
    summary: z
      .object({
        totalDeliveries: count.describe('Messages that ended in the range: successCount and failedCount.'),
        successCount: count.describe('Messages that were delivered.'),
        failedCount: count.describe(
          'Messages that were given up in the range: they became dead letters (dlqCount), or their transform failed. Archived ones count on. Not the status `failed`, which is a failed attempt that is tried again: such messages count in pendingCount.',
        ),
        pendingCount: count.describe(
          'Messages that wait now: for their first attempt (status `pending`) or for a retry (status `failed`).',
        ),
        processingCount: count.describe('Are being delivered, now.'),
        dlqCount: count.describe(
          'Messages that became dead letters in the range, a part of failedCount; those that were archived or sent again since, too. /outbound-messages/dlq/stats returns the current number.',
        ),
        successRate: z.number().nullable().describe('Percent of totalDeliveries; null without any.'),
      })
      .describe('Of all messages.'),
    latency: z.object({ p50: latency, p95: latency, p99: latency, avg: latency }).describe('How long attempts took.'),
    topFailingEndpoints: z.array(failingEndpoint).describe('Those with the most failed attempts in the range, at most ten.'),
    errorTypes: z
      .array(z.object({ type: z.string().describe('Kind of the failure.'), count: count.describe('Failed attempts.') }))
      .describe('Failed attempts of the range by the kind of failure, the most first.'),
    dlqByReason: z.record(z.string(), count).describe('Dead letters of the range, by reason.'),
    chartData: z
      .array(
        z.object({
          period: timestamp.describe('Begin of five minutes (1h), an hour (24h) or a day (7d, 30d).'),
          success: count.describe('Delivered.'),
          failed: count.describe('Given up, as failedCount.'),
          pending: count.describe('Had not ended at its end; of the last period: now.'),
        }),
      )
      .describe('Every period of the range, the oldest first.'),
  })
  .meta({ id: 'WebhookAnalytics' });

const endpointFigures = z
  .object({
    endpoint: endpointRecord
      .pick({
        id: true,
        url: true,
        circuitState: true,
        circuitFailureCount: true,
        totalMessages: true,
        totalSuccesses: true,
        totalFailures: true,
        avgResponseTimeMs: true,
        lastSuccessAt: true,
        lastFailureAt: true,
      })
      .describe('The endpoint.'),
    stats: z
      .object({
        success: count.describe('Delivered.'),
        failed: count.describe('Given up, as failedCount of the overview.'),
        pending: count.describe('Have not ended, now.'),
        avgResponseTimeMs: z.number().nullable().describe('Milliseconds of an attempt on average; null without attempts.'),
      })
      .describe('Of the range.'),
    recentAttempts: z
      .array(
        messageAttempt.pick({
          id: true,
          messageId: true,
          attemptNumber: true,
          status: true,
          responseStatus: true,
          responseTimeMs: true,
          createdAt: true,
        }),
      )
      .describe('The newest attempts, at most ten, as long as their messages are kept.'),
  })
  .meta({ id: 'WebhookEndpointAnalytics' });

export const webhookAnalytics: Family = {
  name: 'Webhook analytics',
  noun: 'endpoint',
  description: 'Statistics of the messages to webhook endpoints in the last hour, day, week or month.',
  shown: {
    timeRange: '24h',
    startTime: '2026-01-30T12:00:00.000Z',
    successRate: 99.75,
    p50: 81.2,
    p95: 240.6,
    p99: 911.7,
    avg: 97.4,
    endpointUrl: 'https://customer.example.com/webhooks',
    url: 'https://customer.example.com/webhooks',
    avgResponseTimeMs: 97.4,
    errorTypes: [{ type: 'http_error', count: 12 }],
    dlqByReason: { max_retries_exceeded: 3 },
  },
  operations: [
    operation({
      method: 'GET',
      path: '/webhooks/analytics',
      operationId: 'getWebhookAnalytics',
      summary: 'Overview of the deliveries to webhook endpoints',
      description:
        'Of the organization, an application or an endpoint. What was deleted meanwhile counts in the figures of what it belonged to; it has none of its own any more, and asking for them is 404.',
      scope: 'read',
      query: z.object({
        timeRange,
        applicationId: id.optional().describe('Only of this application.'),
        endpointId: id.optional().describe('Only of this endpoint.'),
      }),
      answer: { status: 200, description: 'The overview.', schema: single(overview) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const figures = await call.services.webhookStatistics.figures(
          call.caller.organization.id,
          await subjectOf(call, call.query),
          call.query.timeRange,
        );
        return { data: await overviewOf(call, call.query.timeRange, figures) };
      },
    }),
    operation({
      method: 'GET',
      path: '/webhooks/analytics/series',
      operationId: 'getWebhookAnalyticsSeries',
      summary: 'Time series of the deliveries to webhook endpoints',
      description: 'Of the organization, an application or an endpoint, also a deleted one; as /analytics/series.',
      scope: 'read',
      query: z.object({
        ...seriesQuery,
        applicationId: id.optional().describe('Only of this application.'),
        endpointId: id.optional().describe('Only of this endpoint.'),
      }),
      answer: { status: 200, description: 'The series.', schema: single(seriesRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { webhookStatistics, clock } = call.services;
        const periods = periodsOf(call, call.query);
        const series = await webhookStatistics.series(call.caller.organization.id, await seriesSubjectOf(call, call.query), periods);
        return { data: toSeries(series, 'webhooks', clock.now()) };
      },
    }),
    operation({
      method: 'GET',
      path: '/webhooks/analytics/endpoints/{id}',
      operationId: 'getWebhookEndpointAnalytics',
      summary: 'Figures of an endpoint',
      scope: 'read',
      query: z.object({ timeRange }),
      answer: { status: 200, description: 'The figures.', schema: single(endpointFigures) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call): Promise<{ data: z.input<typeof endpointFigures> }> => {
        const { webhookStatistics } = call.services;
        const endpoint = await findEndpoint(call, call.params['id'] ?? '');
        const subject = await subjectOf(call, { endpointId: endpoint.id });
        const [record, figures, attempts] = await Promise.all([
          toEndpoint(endpoint, call),
          webhookStatistics.figures(endpoint.org, subject, call.query.timeRange),
          subject.type === 'endpoint' ? webhookStatistics.newestAttempts(endpoint.org, subject) : [],
        ]);
        const { statistics, unfinished } = figures;
        return {
          data: {
            endpoint: endpointFigures.shape.endpoint.parse(record),
            stats: {
              success: statistics.delivered,
              failed: statistics.failed,
              pending: unfinished,
              avgResponseTimeMs: roundedOrNull(statistics.averageLatencyMs),
            },
            recentAttempts: attempts.map(({ messageId, ...attempt }) =>
              endpointFigures.shape.recentAttempts.element.parse(toAttempt(messageId, attempt)),
            ),
          },
        };
      },
    }),
  ],
};

/** RESOURCE_NOT_FOUND when there is no such application, or no such endpoint of it. */
async function subjectOf(
  call: Call,
  { applicationId, endpointId }: { applicationId?: string | undefined; endpointId?: string | undefined },
): Promise<FiguresSubject> {
  const org = call.caller.organization.id;
  const endpoint = endpointId === undefined ? null : await findEndpoint(call, endpointId);
  if (endpoint !== null && applicationId !== undefined && endpoint.applicationId !== applicationId)
    throw new PosthornError('RESOURCE_NOT_FOUND', 'The application has no such endpoint.');
  const ownerId = endpoint?.applicationId ?? applicationId;
  if (ownerId === undefined) return { type: 'organization' };
  const application = await call.services.webhooks.application(org, ownerId);
  if (application === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such application.');
  const { id: found, shard } = application;
  return endpoint === null ? { type: 'application', id: found, shard } : { type: 'endpoint', id: endpoint.id, applicationId: found, shard };
}

/** The same of a series. A deleted endpoint is read without its application. */
async function seriesSubjectOf(
  call: Call,
  sent: { applicationId?: string | undefined; endpointId?: string | undefined },
): Promise<WebhookSeriesSubject> {
  try {
    return await subjectOf(call, sent);
  } catch (error) {
    const { applicationId, endpointId } = sent;
    const id = endpointId ?? applicationId;
    const areBoth = applicationId !== undefined && endpointId !== undefined;
    if (!isPosthornError(error, 'RESOURCE_NOT_FOUND') || id === undefined || areBoth) throw error;
    if (!(await wasDeleted(call, endpointId === undefined ? 'WebhookApplication' : 'WebhookEndpoint', id))) throw error;
    return { type: endpointId === undefined ? 'deletedApplication' : 'deletedEndpoint', id };
  }
}

async function overviewOf(
  call: Pick<Call, 'services' | 'caller'>,
  range: string,
  figures: WebhookFigures,
): Promise<z.input<typeof overview>> {
  const { statistics, unfinished, underWay } = figures;
  const { delivered, failed, latencies } = statistics;
  const processing = Math.min(unfinished, underWay);
  const dlqByReason: Record<string, number> = {};
  for (const [engineReason, letters] of figures.deadLetters) {
    const reason = reasonOf(engineReason);
    dlqByReason[reason] = (dlqByReason[reason] ?? 0) + letters;
  }
  return {
    timeRange: range,
    startTime: isoTime(figures.beginMs),
    summary: {
      totalDeliveries: delivered + failed,
      successCount: delivered,
      failedCount: failed,
      pendingCount: unfinished - processing,
      processingCount: processing,
      dlqCount: Object.values(dlqByReason).reduce((sum, each) => sum + each, 0),
      successRate: percent(delivered, delivered + failed),
    },
    latency: {
      p50: roundedOrNull(latencies.quantile(0.5)),
      p95: roundedOrNull(latencies.quantile(0.95)),
      p99: roundedOrNull(latencies.quantile(0.99)),
      avg: roundedOrNull(statistics.averageLatencyMs),
    },
    topFailingEndpoints: await failingOf(call, figures.failing),
    errorTypes: [...figures.errors]
      .map(([type, errors]) => ({ type, count: errors }))
      .sort((one, other) => other.count - one.count || one.type.localeCompare(other.type)),
    dlqByReason,
    chartData: figures.periods.map((period) => ({
      period: isoTime(period.beginMs),
      success: period.delivered,
      failed: period.failed,
      pending: period.unfinished,
    })),
  };
}

/** Existing ones. */
async function failingOf(
  call: Pick<Call, 'services' | 'caller'>,
  failing: readonly FailingEndpoint[],
): Promise<z.input<typeof failingEndpoint>[]> {
  const ids = failing.map(({ endpointId }) => endpointId);
  const found = [...(await call.services.webhooks.endpointsById(call.caller.organization.id, ids)).values()];
  const records = new Map((await endpointRecords(found, call)).map((record) => [record.id, record]));
  return failing.flatMap(({ endpointId, failedAttempts }) => {
    const record = records.get(endpointId);
    if (record === undefined) return [];
    const { url, circuitState, totalMessages, totalSuccesses, totalFailures } = record;
    return [{ endpointId, endpointUrl: url, circuitState, failureCount: failedAttempts, totalMessages, totalSuccesses, totalFailures }];
  });
}
