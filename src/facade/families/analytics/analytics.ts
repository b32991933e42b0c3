import { z } from 'zod';
import { worstState } from '../../../core/circuit.ts';
import { mapInTurns, sortInTurns } from '../../../core/in-turns.ts';
import type { OrganizationStatistics } from '../../../data/analytics/statistics.ts';
import type { ObjectOf } from '../../../resources/kinds.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { cachedObjects, idOf } from '../../records/lookup.ts';
import { isoTime, isoTimeOrNull, nameOf, timestamp } from '../../records/record-fields.ts';
import {
  type Figures,
  figuresOf,
  healthScore,
  healthScoreRule,
  newestFailures,
  percent,
  roundedOrNull,
  statusBreakdown,
} from './analytics-figures.ts';
import { getSeries } from './series.ts';

const range = z
  .enum(['1h', '24h', '7d', '30d'])
  .default('24h')
  .describe('Ends now. 1h is exact to five minutes, 24h and 7d to an hour, 30d to a day (UTC).');
const query = z.object({ range });
type RangeCall = Call<z.output<typeof query>>;

const count = z.int().min(0);
const successRate = z.number().nullable().describe('Percent; null without deliveries.');
const latency = z.number().nullable().describe('Milliseconds, of all attempts; percentiles within 5 %. null without attempts.');
const latencies = { avgLatency: latency, p50Latency: latency, p95Latency: latency, p99Latency: latency };

const destinationHealth = z
  .object({
    destinationId: z.string().describe('Id of the destination.'),
    name: z.string().describe('Its name.'),
    deliveryCount: count.describe('Deliveries that have ended: delivered, failed, or moved to a failover destination.'),
    successRate,
    ...latencies,
    recentFailures: z
      .array(
        z.object({
          messageId: z.string().describe('Id of the delivery.'),
          at: timestamp.describe('When it failed.'),
          responseStatus: z.int().nullable().describe('Status of the answer; null without one.'),
          errorMessage: z.string().nullable().describe('What went wrong, in words.'),
        }),
      )
      .describe('The newest failed attempts, at most five.'),
    healthScore: z.int().min(0).max(100).describe(healthScoreRule),
  })
  .meta({ id: 'DestinationHealth' });

const routeFigures = z
  .object({
    routeId: z.string().describe('Id of the route.'),
    name: z.string().describe('Its name.'),
    eventsRouted: count.describe('Events that its filter has let through.'),
    delivered: count.describe('Deliveries; an event has one per destination.'),
    failed: count.describe('Dead letters, and what its schema or its transform has refused.'),
    filtered: count.describe('Events that its filter has excluded.'),
    pending: count.describe('Deliveries that have not ended, now.'),
    successRate,
    ...latencies,
    circuitState: z.enum(['closed', 'open', 'half_open']).describe('The worst of its destinations.'),
    lastEventAt: timestamp.nullable().describe('When the last event came; null before the first.'),
  })
  .meta({ id: 'RouteAnalytics' });

const overview = z
  .object({
    range: z.string().describe('The range of time.'),
    summary: z
      .object({
        totalEvents: count.describe('Events that were taken.'),
        totalDeliveries: count.describe('Those that have ended.'),
        successRate,
        avgLatency: latency,
        duplicatesDropped: count.describe('Repeated events.'),
        eventsFiltered: count.describe('Per event, each route whose filter has excluded it.'),
      })
      .describe('Of the whole organization.'),
    sources: z
      .array(
        z.object({
          sourceId: z.string().describe('Id of the source.'),
          name: z.string().describe('Its name.'),
          eventsCount: count.describe('Events that it has taken.'),
          duplicatesDropped: count.describe('Repeated events.'),
          lastEventAt: timestamp.nullable().describe('When the last event came; null before the first.'),
        }),
      )
      .describe('Each source.'),
    destinations: z
      .array(
        z.object({
          destinationId: z.string().describe('Id of the destination.'),
          name: z.string().describe('Its name.'),
          deliveryCount: count.describe('Deliveries that have ended.'),
          successRate,
          avgLatency: latency,
        }),
      )
      .describe('Each destination.'),
    statusBreakdown: z
      .object({
        delivered: count.describe('Delivered.'),
        failed: count.describe('Given up.'),
        pending: count.describe('Before their first attempt.'),
        retrying: count.describe('Before another attempt.'),
        circuit_open: count.describe('Wait for an open circuit.'),
      })
      .describe(
        'Deliveries: delivered and failed in the range; the others as it is now. circuit_open are those that wait for an open circuit.',
      ),
  })
  .meta({ id: 'Analytics' });

export const analytics: Family = {
  name: 'Analytics',
  noun: 'organization',
  description: 'Statistics of events and deliveries in the last hour, day, week or month.',
  shown: { range: '24h', successRate: 99.82, avgLatency: 141.2, p50Latency: 118.6, p95Latency: 402.4, p99Latency: 911.7 },
  operations: [
    operation({
      method: 'GET',
      path: '/analytics',
      operationId: 'getAnalytics',
      summary: 'Overview of the organization',
      description: 'The sums include resources that have been deleted since; the lists include existing ones.',
      scope: 'read',
      query,
      answer: { status: 200, description: 'The overview.', schema: overview },
      handle: overviewOf,
    }),
    operation({
      method: 'GET',
      path: '/analytics/destinations/health',
      operationId: 'getDestinationHealth',
      summary: 'Health and latency of the destinations',
      scope: 'read',
      query,
      answer: {
        status: 200,
        description: 'Every destination, the least healthy first.',
        schema: z.object({
          range: z.string().describe('The range of time.'),
          destinations: z.array(destinationHealth).describe('Each of them.'),
        }),
      },
      handle: async (call) => ({ range: call.query.range, destinations: await healthOfAll(call) }),
    }),
    operation({
      method: 'GET',
      path: '/analytics/routes',
      operationId: 'getRouteAnalytics',
      summary: 'Delivery figures of the routes',
      scope: 'read',
      query,
      answer: {
        status: 200,
        description: 'Every route, by name.',
        schema: z.object({ range: z.string().describe('The range of time.'), routes: z.array(routeFigures).describe('Each of them.') }),
      },
      handle: async (call) => ({ range: call.query.range, routes: await figuresOfRoutes(call) }),
    }),
    getSeries,
  ],
};

async function overviewOf(call: RangeCall): Promise<z.input<typeof overview>> {
  const statistics = await statisticsOf(call);
  const { total, events, filtered, duplicates, targets } = statistics;
  const deliveries = total.delivered + total.failed;
  const ofDestination = Map.groupBy(targets, ({ destinationId }) => destinationId);
  const sources = await mapInTurns(call.turn, await byName(call, 'Source'), async (source) => {
    const sourceId = idOf(source);
    return {
      sourceId,
      name: nameOf(source),
      eventsCount: events.get(sourceId) ?? 0,
      duplicatesDropped: duplicates.get(sourceId) ?? 0,
      lastEventAt: await lastEventAt(call, sourceId),
    };
  });
  return {
    range: call.query.range,
    summary: {
      totalEvents: sum([...events].filter(([id]) => id.startsWith('src_')).map(([, events]) => events)),
      totalDeliveries: deliveries,
      successRate: percent(total.delivered, deliveries),
      avgLatency: roundedOrNull(total.averageLatencyMs),
      duplicatesDropped: sum([...duplicates.values()]),
      eventsFiltered: sum([...filtered.values()]),
    },
    sources,
    destinations: await mapInTurns(call.turn, await byName(call, 'Destination'), (destination) => {
      const destinationId = idOf(destination);
      const figures = figuresOf(ofDestination.get(destinationId) ?? [], { movedAwayCounts: true });
      return {
        destinationId,
        name: nameOf(destination),
        deliveryCount: figures.deliveries,
        successRate: figures.successRate,
        avgLatency: figures.averageLatencyMs,
      };
    }),
    statusBreakdown: statusBreakdown(total, targets),
  };
}

async function healthOfAll(call: RangeCall): Promise<z.input<typeof destinationHealth>[]> {
  const { targets } = await statisticsOf(call, { failures: true });
  const ofDestination = Map.groupBy(targets, ({ destinationId }) => destinationId);
  const all = await mapInTurns(call.turn, await byName(call, 'Destination'), (destination) => {
    const destinationId = idOf(destination);
    const own = ofDestination.get(destinationId) ?? [];
    const figures = figuresOf(own, { movedAwayCounts: true });
    return {
      destinationId,
      name: nameOf(destination),
      deliveryCount: figures.deliveries,
      successRate: figures.successRate,
      ...latenciesOf(figures),
      recentFailures: newestFailures(own).map(({ atMs, ...failure }) => ({ ...failure, at: isoTime(atMs) })),
      healthScore: healthScore(figures),
    };
  });
  return await sortInTurns(call.turn, all, (one, other) => one.healthScore - other.healthScore);
}

async function figuresOfRoutes(call: RangeCall): Promise<z.input<typeof routeFigures>[]> {
  const { targets, events, filtered, unsent } = await statisticsOf(call);
  const ofRoute = Map.groupBy(targets, ({ routeId }) => routeId);
  const named = await mapInTurns(call.turn, cachedObjects(call, 'Destination'), (object) => [object.metadata.name, idOf(object)] as const);
  const destinationIds = new Map(named);
  return await mapInTurns(call.turn, await byName(call, 'Route'), async (route) => {
    const routeId = idOf(route);
    const own = ofRoute.get(routeId) ?? [];
    const refs = [...route.spec.destinationRefs, ...(route.spec.failover?.destinationRefs ?? [])];
    const current = new Set(refs.map(({ name }) => destinationIds.get(name)));
    const figures = figuresOf(own, { movedAwayCounts: false, unsent: unsent.get(routeId) ?? 0 });
    return {
      routeId,
      name: nameOf(route),
      eventsRouted: events.get(routeId) ?? 0,
      delivered: figures.delivered,
      failed: figures.failed,
      filtered: filtered.get(routeId) ?? 0,
      pending: figures.fresh + figures.retries,
      successRate: figures.successRate,
      ...latenciesOf(figures),
      circuitState: worstState(own.filter(({ destinationId }) => current.has(destinationId)).map(({ circuit }) => circuit)),
      lastEventAt: await lastEventAt(call, routeId),
    };
  });
}

function statisticsOf(call: RangeCall, options?: { failures: boolean }): Promise<OrganizationStatistics> {
  return call.services.statistics.ofOrganization(call.caller.organization.id, call.query.range, options);
}

async function lastEventAt(call: RangeCall, id: string): Promise<string | null> {
  return isoTimeOrNull((await call.services.messages.eventCounters(call.caller.organization.id, id)).lastEventAtMs);
}

function latenciesOf({ averageLatencyMs, p50LatencyMs, p95LatencyMs, p99LatencyMs }: Figures) {
  return { avgLatency: averageLatencyMs, p50Latency: p50LatencyMs, p95Latency: p95LatencyMs, p99Latency: p99LatencyMs };
}

const collator = new Intl.Collator();

function byName<K extends 'Source' | 'Destination' | 'Route'>(call: Call, kind: K): Promise<ObjectOf<K>[]> {
  return sortInTurns(call.turn, cachedObjects(call, kind), (one, other) => collator.compare(nameOf(one), nameOf(other)));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, each) => all + each, 0);
}
