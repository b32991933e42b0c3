import { z } from 'zod';
import { invalidParameter } from '../../../core/errors.ts';
import { maxStepMs, minStepMs, type SeriesPeriods, seriesPeriods } from '../../../data/analytics/series-periods.ts';
import type { SeriesPoint } from '../../../data/analytics/series-scope.ts';
import type { Series, SeriesSubject } from '../../../data/analytics/statistics-series.ts';
import { type Call, operation } from '../../http/operation.ts';
import { queryTime, timeRange } from '../../http/query.ts';
import { findOrDeleted } from '../../records/deleted-ids.ts';
import { cachedReferrers, idOf } from '../../records/lookup.ts';
import { idOrSlug, isoTime, timestamp } from '../../records/record-fields.ts';
import { roundedOrNull } from './analytics-figures.ts';

const unitsMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const units = ['d', 'h', 'm'] as const;
const defaultRangeMs = 86_400_000;
const stepError = 'must be 5m, 1h, 1d or a multiple of one of them, such as 15m or 6h, and at most 32d';

/** The parameters of every series. */
export const seriesQuery = {
  from: queryTime.optional().describe('The first step begins then or later: ISO 8601. Default: 24 hours before `to`.'),
  to: queryTime.optional().describe('Every step begins earlier: ISO 8601; of a day all its hours. Default: now.'),
  step: z
    .string()
    .refine((text) => isStep(stepMs(text)), { error: stepError })
    .optional()
    .describe(
      '5m (kept for 26 hours), 1h (8 days), 1d (32 days) or a multiple of one of them. Default: the smallest that is kept since `from`.',
    ),
};
interface SentRange {
  from?: string | undefined;
  to?: string | undefined;
  step?: string | undefined;
}

const count = z.int().min(0);
const ofSome = count.nullable();
const latency = z.number().nullable().describe('Milliseconds, of all attempts; percentiles within 5 %. null without attempts.');
const sums = {
  events: ofSome.describe('Events that were taken, of a route let through; of webhooks, messages that were made. null of a destination.'),
  duplicates: ofSome.describe('Repeated events. null but of a source and of the organization.'),
  filtered: ofSome.describe(
    'Per event, each route whose filter has excluded it; of webhooks, what a transform has. null of a destination and of a deleted source.',
  ),
  delivered: ofSome.describe('Deliveries. null of a source that is deleted or has very many routes, as all that follows.'),
  failed: ofSome.describe('Given up: dead letters, and what a schema or a transform has refused.'),
  movedAway: ofSome.describe('Failed at a destination and went to its failover.'),
  retried: ofSome.describe('Failed attempts after which another one was planned.'),
  attempts: ofSome.describe('All attempts; a batch has one.'),
  circuitsOpened: ofSome.describe('Circuits that opened. A failed probe continues the same opening.'),
  backlog: z
    .number()
    .nullable()
    .describe(
      'Mean of the samples of what waited or was being delivered, one every five minutes; of the whole range in `total`. null without a sample.',
    ),
  oldestAgeMs: ofSome.describe('Highest sampled age of the oldest delivery that could be attempted. null where nothing waited.'),
  avgLatency: latency,
  p50Latency: latency,
  p95Latency: latency,
  p99Latency: latency,
};
export const seriesRecord = z
  .object({
    from: timestamp.describe('Begin of the first step.'),
    to: timestamp.describe('End of the last step, not included. Continue from here.'),
    step: z.string().describe('Length of a step, such as 5m.'),
    now: z
      .object({
        backlog: ofSome.describe(
          'Deliveries that have not ended, without scheduled ones; a batch tried again is one. null above 10,000 targets.',
        ),
        oldestAgeMs: ofSome.describe(
          'Age of the oldest of them that could be attempted; retries whose time has not come are left out. null without any.',
        ),
        scheduled: ofSome.describe('Deliveries scheduled for later. null as `backlog`.'),
      })
      .nullable()
      .describe('What waits now, whatever the range is. null of a source with very many routes.'),
    total: z.object(sums).meta({ id: 'SeriesTotal' }).describe('Of the whole range.'),
    points: z
      .array(z.object({ at: timestamp.describe('Begin of the step.'), ...sums }).meta({ id: 'SeriesPoint' }))
      .describe('Every step, the oldest first. The last one may not be over yet.'),
  })
  .meta({ id: 'Series' });

const query = z.object({
  ...seriesQuery,
  sourceId: idOrSlug.optional().describe('Of this source and the routes that it has.'),
  routeId: idOrSlug.optional().describe('Of this route.'),
  destinationId: idOrSlug.optional().describe('Of this destination.'),
});

export const getSeries = operation({
  method: 'GET',
  path: '/analytics/series',
  operationId: 'getAnalyticsSeries',
  summary: 'Time series of the organization, a source, a route or a destination',
  description:
    'Also of what is deleted, by its id, as long as figures are kept. Steps are counted from 1970 (UTC), and the range holds those that begin in it: two calls whose ranges adjoin have each step once. A step that is not kept for the range is 400 with the steps that are.',
  scope: 'read',
  query,
  answer: { status: 200, description: 'The series.', schema: seriesRecord },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const periods = periodsOf(call, call.query);
    const subject = await subjectOf(call, call.query);
    return toSeries(
      await call.services.statistics.series(call.caller.organization.id, subject, periods),
      subject.type === 'source' && subject.routeIds === null ? 'deletedSource' : subject.type,
      call.services.clock.now(),
    );
  },
});

async function subjectOf(call: Call, sent: Pick<z.output<typeof query>, 'sourceId' | 'routeId' | 'destinationId'>): Promise<SeriesSubject> {
  const { sourceId, routeId, destinationId } = sent;
  const [first, second] = Object.entries({ sourceId, routeId, destinationId }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (second !== undefined) throw invalidParameter(second, `does not go with ${first}`);
  if (sourceId !== undefined) {
    const { id, object: source } = await findOrDeleted(call, 'Source', sourceId);
    // Which routes a deleted one had is not kept: by its name they may be those of another one.
    if (source === null) return { type: 'source', id, routeIds: null };
    const routes = cachedReferrers(call, 'Route', source);
    return { type: 'source', id, routeIds: routes.map(idOf) };
  }
  if (routeId !== undefined) return subjectOfTargets('route', await findOrDeleted(call, 'Route', routeId));
  if (destinationId !== undefined) return subjectOfTargets('destination', await findOrDeleted(call, 'Destination', destinationId));
  return { type: 'organization' };
}

function subjectOfTargets(type: 'route' | 'destination', { id, object }: { id: string; object: unknown }): SeriesSubject {
  return { type, id, isDeleted: object === null };
}

/** INVALID_QUERY where the figures are not kept. */
export function periodsOf({ services }: Pick<Call, 'services'>, { from, to, step }: SentRange): SeriesPeriods {
  const nowMs = services.clock.now();
  const { fromMs, toMs = nowMs } = timeRange(from, to);
  return seriesPeriods({ fromMs: fromMs ?? toMs - defaultRangeMs, toMs, ...(step !== undefined && { stepMs: stepMs(step) }) }, nowMs);
}

type Shown = SeriesSubject['type'] | 'deletedSource' | 'webhooks';

export function toSeries(series: Series, shown: Shown, nowMs: number): z.input<typeof seriesRecord> {
  const { beginMs, endMs, stepMs: lengthMs, points, total, hasDeliveries, waiting } = series;
  const sumsOf = (point: SeriesPoint) => toSums(point, shown, hasDeliveries);
  const oldestAtMs = waiting?.oldestAtMs ?? null;
  const now = {
    backlog: waiting?.messages ?? null,
    oldestAgeMs: oldestAtMs === null ? null : Math.max(0, nowMs - oldestAtMs),
    scheduled: waiting?.scheduled ?? null,
  };
  return {
    from: isoTime(beginMs),
    to: isoTime(endMs),
    step: stepText(lengthMs),
    now: hasDeliveries ? now : null,
    total: sumsOf(total),
    points: points.map((point, i) => ({ at: isoTime(beginMs + i * lengthMs), ...sumsOf(point) })),
  };
}

function toSums({ events, duplicates, filtered, statistics, backlog, oldestAgeMs }: SeriesPoint, shown: Shown, hasDeliveries: boolean) {
  const { delivered, failed, movedAway, retried, circuitsOpened, latencies, averageLatencyMs } = statistics;
  // Some shards may have read them although others have not.
  const ofDeliveries = (value: number | null): number | null => (hasDeliveries ? value : null);
  return {
    events: shown === 'destination' ? null : shown === 'webhooks' ? ofDeliveries(events) : events,
    duplicates: shown === 'organization' || shown === 'source' || shown === 'deletedSource' ? duplicates : null,
    filtered: shown === 'destination' || shown === 'deletedSource' ? null : shown === 'webhooks' ? ofDeliveries(filtered) : filtered,
    delivered: ofDeliveries(delivered),
    failed: ofDeliveries(failed),
    movedAway: ofDeliveries(movedAway),
    retried: ofDeliveries(retried),
    attempts: ofDeliveries(latencies.total),
    circuitsOpened: ofDeliveries(circuitsOpened),
    backlog: ofDeliveries(backlog === null ? null : Math.round(backlog * 10) / 10),
    oldestAgeMs: ofDeliveries(oldestAgeMs),
    avgLatency: ofDeliveries(roundedOrNull(averageLatencyMs)),
    p50Latency: ofDeliveries(roundedOrNull(latencies.quantile(0.5))),
    p95Latency: ofDeliveries(roundedOrNull(latencies.quantile(0.95))),
    p99Latency: ofDeliveries(roundedOrNull(latencies.quantile(0.99))),
  };
}

/** NaN of what is no step. */
function stepMs(text: string): number {
  const [, number = '', unit = ''] = /^([1-9]\d{0,4})([mhd])$/.exec(text) ?? [];
  return Number(number) * (unitsMs[unit] ?? Number.NaN);
}

function isStep(ms: number): boolean {
  return ms >= minStepMs && ms <= maxStepMs && ms % minStepMs === 0;
}

function stepText(ms: number): string {
  const unit = units.find((each) => ms % (unitsMs[each] ?? 1) === 0) ?? 'm';
  return `${ms / (unitsMs[unit] ?? 1)}${unit}`;
}
