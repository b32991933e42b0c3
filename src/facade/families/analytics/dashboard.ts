import { z } from 'zod';
import { mapInTurns } from '../../../core/in-turns.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { cachedObjects, idOf } from '../../records/lookup.ts';
import { nameOf, recordIdentity } from '../../records/record-fields.ts';
import { type Figures, figuresOf } from './analytics-figures.ts';

const count = z.int().min(0);
const latency = z.number().nullable().describe('Milliseconds; null without attempts.');
const totals = z
  .object({
    total_events: count.describe('Events that sources took.'),
    successful_deliveries: count.describe('Deliveries that arrived.'),
    failed_deliveries: count.describe('Deliveries that ended and did not arrive.'),
    avg_latency: latency,
    source_count: count.describe('Sources that there are.'),
    destination_count: count.describe('Destinations that there are.'),
  })
  .meta({ id: 'DashboardTotals', description: 'Sums over all.' });
const figures = z
  .object({
    id: z.string().describe('Its id.'),
    name: z.string().describe('Its name.'),
    total_deliveries: count.describe('Deliveries that have ended.'),
    successful: count.describe('Those that arrived.'),
    failed: count.describe('Those that did not.'),
    success_rate: z.number().describe('Percent; 0 without deliveries.'),
    avg_latency: latency,
  })
  .meta({ id: 'DashboardFigures', description: 'Figures of a destination or a route.' });
const percentile = z.number().describe('Milliseconds, within 5 %; 0 without attempts.');

const dashboard = z
  .object({
    range: z.string().describe('The range of the query.'),
    overview: totals,
    latency: z
      .object({
        percentiles: z.object({ p50: percentile, p95: percentile, p99: percentile }).describe('Of all attempts.'),
        avg: percentile,
      })
      .describe('How long attempts took.'),
    sources: z
      .array(
        z.object({ id: figures.shape.id, name: figures.shape.name, slug: recordIdentity.slug, event_count: count.describe('Its events.') }),
      )
      .describe('Each source.'),
    destinations: z
      .array(figures.extend({ url: z.string().nullable().describe('Its URL; null of a warehouse.') }).meta({ id: 'DashboardDestination' }))
      .describe('Each destination.'),
    routes: z
      .array(figures.extend({ priority: z.int().describe('Higher values run first.') }).meta({ id: 'DashboardRoute' }))
      .describe('Each route.'),
  })
  .meta({ id: 'Dashboard' });

/** Statistics in the shape that clients of the hosted API expect; `analytics.ts` returns more. */
export const dashboards: Family = {
  name: 'Dashboard',
  noun: 'organization',
  common: [figures],
  description: 'Figures of analytics in the form that clients of the hosted API read, with names in snake_case.',
  operations: [
    operation({
      method: 'GET',
      path: '/analytics/dashboard',
      operationId: 'getDashboard',
      summary: 'Figures of a time for a dashboard',
      description: 'The sums include resources that have been deleted since; the lists include existing ones.',
      scope: 'read',
      query: z.object({
        range: z.enum(['1h', '24h', '7d', '30d']).default('7d').describe('Ends now; as that of /analytics.'),
        tz: z.string().max(64).optional().describe('Taken and not heeded: nothing here is by hours or days.'),
      }),
      answer: { status: 200, description: 'The figures.', schema: dashboard },
      handle: async (call) => dashboardOf(call, call.query.range),
    }),
    operation({
      method: 'GET',
      path: '/analytics/overview',
      operationId: 'getTotals',
      summary: 'Figures of all time',
      description: 'Of the existing sources and destinations, since they were created.',
      scope: 'read',
      answer: { status: 200, description: 'The figures.', schema: z.object({ stats: totals }) },
      handle: async (call) => ({ stats: await totalsOf(call) }),
    }),
  ],
};

async function dashboardOf(call: Call, range: '1h' | '24h' | '7d' | '30d'): Promise<z.input<typeof dashboard>> {
  const { services, caller, turn } = call;
  const { total, events, targets, unsent } = await services.statistics.ofOrganization(caller.organization.id, range);
  const sources = cachedObjects(call, 'Source');
  const destinations = cachedObjects(call, 'Destination');
  const ofDestination = Map.groupBy(targets, ({ destinationId }) => destinationId);
  const ofRoute = Map.groupBy(targets, ({ routeId }) => routeId);
  const { p50LatencyMs, p95LatencyMs, p99LatencyMs, averageLatencyMs } = figuresOf(targets, { movedAwayCounts: true });
  return {
    range,
    overview: {
      total_events: [...events].reduce((all, [id, each]) => (id.startsWith('src_') ? all + each : all), 0),
      successful_deliveries: total.delivered,
      failed_deliveries: total.failed,
      avg_latency: averageLatencyMs,
      source_count: sources.length,
      destination_count: destinations.length,
    },
    latency: {
      percentiles: { p50: p50LatencyMs ?? 0, p95: p95LatencyMs ?? 0, p99: p99LatencyMs ?? 0 },
      avg: averageLatencyMs ?? 0,
    },
    sources: await mapInTurns(turn, sources, (source) => ({
      id: idOf(source),
      name: nameOf(source),
      slug: source.metadata.name,
      event_count: events.get(idOf(source)) ?? 0,
    })),
    destinations: await mapInTurns(turn, destinations, (destination) => ({
      id: idOf(destination),
      name: nameOf(destination),
      url: destination.spec.http?.url ?? null,
      ...shown(figuresOf(ofDestination.get(idOf(destination)) ?? [], { movedAwayCounts: true })),
    })),
    routes: await mapInTurns(turn, cachedObjects(call, 'Route'), (route) => ({
      id: idOf(route),
      name: nameOf(route),
      priority: route.spec.priority,
      ...shown(figuresOf(ofRoute.get(idOf(route)) ?? [], { movedAwayCounts: false, unsent: unsent.get(idOf(route)) ?? 0 })),
    })),
  };
}

function shown({ deliveries, delivered, successRate, averageLatencyMs }: Figures) {
  return {
    total_deliveries: deliveries,
    successful: delivered,
    failed: deliveries - delivered,
    success_rate: successRate ?? 0,
    avg_latency: averageLatencyMs,
  };
}

async function totalsOf(call: Call): Promise<z.input<typeof totals>> {
  const { services, caller, turn } = call;
  const org = caller.organization.id;
  const sources = cachedObjects(call, 'Source');
  const destinations = cachedObjects(call, 'Destination');
  const taken = await mapInTurns(turn, sources, (source) => services.messages.eventCounters(org, idOf(source)));
  const ended = await mapInTurns(turn, destinations, (destination) => services.messages.destinationCounters(org, idOf(destination)));
  const deliveries = ended.reduce((all, each) => all + each.deliveries, 0);
  const successes = ended.reduce((all, each) => all + each.successes, 0);
  const latencies = ended.reduce((all, each) => all + (each.averageLatencyMs ?? 0) * each.deliveries, 0);
  return {
    total_events: taken.reduce((all, { events }) => all + events, 0),
    successful_deliveries: successes,
    failed_deliveries: deliveries - successes,
    avg_latency: deliveries === 0 ? null : Math.round((100 * latencies) / deliveries) / 100,
    source_count: sources.length,
    destination_count: destinations.length,
  };
}
