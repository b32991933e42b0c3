import { useEffect, useMemo } from 'react';
import type { Answer, ApiError } from '../api/client.ts';
import { type CursorList, usePages, useRead } from '../app/use-api.ts';
import { maxRead, useWholeList } from '../app/whole-list.ts';
import { useNow } from '../ui/time.tsx';
import { type Circuit, failingIn, knownCircuits, useCircuitsOf } from './target-data.ts';
import { destinationState } from './target-state.ts';
import type { CutOff, End, WiredRoute, Wiring } from './topology-graph.ts';

type Route = Answer<'GET /routes'>['data'][number];
type RouteFigures = Answer<'GET /analytics/routes'>['routes'][number];

export interface Topology {
  wiring: Wiring;
  isLoading: boolean;
  error: ApiError | null;
  refresh: () => void;
  /** Kinds with more than `maxRead` objects: only the first of them are shown. */
  cut: readonly string[];
}

const everyMs = 10_000;
const hour = { query: { range: '1h' as const } };
const whole = { isWhole: true };
const none: readonly never[] = [];

/** Sources, routes and destinations, with the rates and circuits of the last hour. `at`: the end or route that is selected. */
export function useTopology(at: string | null): Topology {
  const sources = useWholeList(usePages('GET /sources', {}, sourcesOf, whole));
  const routes = useWholeList(usePages('GET /routes', {}, routesOf, whole));
  const destinations = useWholeList(usePages('GET /destinations', {}, destinationsOf, whole));
  const ofSources = useRead('GET /analytics', hour, { everyMs });
  const ofRoutes = useRead('GET /analytics/routes', hour, { everyMs });
  const health = useRead('GET /analytics/destinations/health', hour, { everyMs });
  useReadAgain(routes, ofRoutes.data?.routes.length);
  useReadAgain(destinations, health.data?.destinations.length);
  useReadAgain(sources, ofSources.data?.sources.length);
  const figures = useMemo(() => new Map((ofRoutes.data?.routes ?? none).map((each) => [each.routeId, each])), [ofRoutes.data]);
  const failing = useMemo(() => new Set(failingIn(health.data?.destinations ?? none)), [health.data]);
  const asked = routes.rows
    .map((route) => ({ route, urgency: urgencyOf(route, isOpen(route, figures), failing, at) }))
    .filter(({ urgency }) => urgency !== null)
    .toSorted((one, other) => Number(other.urgency) - Number(one.urgency));
  const read = useCircuitsOf(asked.map(({ route }) => route));
  const now = useNow(everyMs);
  const minutes = minutesSince(ofRoutes.dataUpdatedAt);
  const cutOffs = cutOffsOf(routes.rows, figures, read.circuits);
  const events = new Map((ofSources.data?.sources ?? none).map((each) => [each.sourceId, each.eventsCount]));
  const healths = new Map((health.data?.destinations ?? none).map((each) => [each.destinationId, each]));
  const rate = (count: number | undefined): number | null => (count === undefined ? null : count / minutes);
  const withRoutes = new Set(routes.rows.map(({ sourceId }) => sourceId));
  const lists = [sources, routes, destinations];
  const reads = [ofSources, ofRoutes, health];
  return {
    wiring: {
      sources: sources.rows.map(
        ({ id, name, provider, enabled }): End => ({
          id,
          name,
          sub: provider,
          state: sourceState(enabled, withRoutes.has(id), events.get(id)),
          perMinute: rate(events.get(id)),
        }),
      ),
      routes: routes.rows.map((route): WiredRoute => {
        const own = figures.get(route.id);
        return {
          id: route.id,
          name: route.name,
          sourceId: route.sourceId,
          destinationIds: route.destinationIds,
          failoverIds: route.failoverDestinationIds,
          state: routeState(route.enabled, own),
          perMinute: rate(own?.eventsRouted),
          cutOff: cutOffs.get(route.id) ?? new Map(),
        };
      }),
      destinations: destinations.rows.map(({ id, name, type, enabled }): End => {
        const known = knownCircuits(id, routes, read);
        const circuits = [...known.circuits, ...[...cutOffs.values()].flatMap((each) => each.get(id) ?? [])];
        return {
          id,
          name,
          sub: type,
          state: destinationState(enabled, healths.get(id), { ...known, circuits }, now),
          perMinute: rate(healths.get(id)?.deliveryCount),
        };
      }),
    },
    isLoading: lists.some(({ isLoading }) => isLoading) || reads.some((read) => read.isLoading),
    error: lists.find(({ error }) => error !== null)?.error ?? reads.find(({ error }) => error !== null)?.error ?? null,
    refresh: () => {
      for (const list of lists) list.refresh();
      for (const read of reads) void read.refetch();
    },
    cut: lists.flatMap(({ rows, hasMore }, index) => (hasMore && rows.length >= maxRead ? [kinds[index] ?? ''] : [])),
  };
}

const kinds = ['sources', 'routes', 'destinations'];
const sourcesOf = ({ data }: Answer<'GET /sources'>) => data;
const routesOf = ({ data }: Answer<'GET /routes'>): Route[] => data;
const destinationsOf = ({ data }: Answer<'GET /destinations'>) => data;

/** A list of several pages is seldom read again by itself; it is once the figures speak of more or fewer than it has. */
function useReadAgain({ rows, hasMore, isLoading, refresh }: CursorList<unknown>, counted: number | undefined): void {
  const differs = !hasMore && !isLoading && counted !== undefined && counted !== rows.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each number
  useEffect(() => {
    if (differs) refresh();
  }, [differs, counted]);
}

/** The figures of `1h` begin at a full five minutes. */
function minutesSince(readAtMs: number): number {
  const nowMs = readAtMs === 0 ? Date.now() : readAtMs;
  return (nowMs - Math.floor((nowMs - 3_600_000) / 300_000) * 300_000) / 60_000;
}

function isOpen({ id }: Route, figures: ReadonlyMap<string, RouteFigures>): boolean {
  return (figures.get(id)?.circuitState ?? 'closed') !== 'closed';
}

/** Circuits are read first where the figures do not identify the destination, then of what is selected, then of what may have healed. Null: not at all. */
function urgencyOf(route: Route, hasOpen: boolean, failing: ReadonlySet<string>, at: string | null): number | null {
  const targets = targetsOf(route);
  if (hasOpen && targets.length > 1) return 3;
  const mayHaveHealed = targets.some((id) => failing.has(id));
  if (!hasOpen && !mayHaveHealed) return null;
  if (at !== null && [route.id, route.sourceId, ...targets].includes(at)) return 2;
  return hasOpen ? 0 : 1;
}

function cutOffsOf(
  routes: readonly Route[],
  figures: ReadonlyMap<string, RouteFigures>,
  circuits: readonly Circuit[],
): Map<string, Map<string, CutOff>> {
  const found = new Map<string, Map<string, CutOff>>();
  const set = (routeId: string, destinationId: string, cutOff: CutOff): void => {
    const own = found.get(routeId) ?? new Map<string, CutOff>();
    found.set(routeId, own.set(destinationId, cutOff));
  };
  for (const route of routes.filter((each) => isOpen(each, figures))) {
    const state = figures.get(route.id)?.circuitState;
    const [only, ...more] = targetsOf(route);
    if (only !== undefined && more.length === 0 && state !== undefined && state !== 'closed')
      set(route.id, only, { state, openedAt: null });
  }
  for (const { routeId, destinationId, state, openedAt } of circuits)
    if (state !== 'closed') set(routeId, destinationId, { state, openedAt });
  return found;
}

function targetsOf({ destinationIds, failoverDestinationIds }: Route): string[] {
  return [...new Set([...destinationIds, ...failoverDestinationIds])];
}

function sourceState(enabled: boolean, hasRoutes: boolean, events: number | undefined): string {
  if (!enabled) return 'disabled';
  if (!hasRoutes) return 'no_routes';
  return (events ?? 0) === 0 ? 'idle' : 'healthy';
}

function routeState(enabled: boolean, figures: RouteFigures | undefined): string {
  if (!enabled) return 'disabled';
  if (figures === undefined) return 'idle';
  const { circuitState, delivered, failed, eventsRouted } = figures;
  if (circuitState === 'open') return 'circuit_open';
  if (circuitState === 'half_open') return 'half_open';
  if (failed > 0) return delivered === 0 ? 'failed' : 'degraded';
  return delivered === 0 && eventsRouted === 0 ? 'idle' : 'healthy';
}
