import { useQueries } from '@tanstack/react-query';
import { type Answer, type ApiError, call } from '../api/client.ts';
import type { Range } from '../app/range.ts';
import { type CursorList, type RowOf, useCursorList, useOrganization, usePages, useRead } from '../app/use-api.ts';
import { useWholeList } from '../app/whole-list.ts';
import { useNow } from '../ui/time.tsx';
import { destinationState, type KnownCircuits } from './target-state.ts';

type DestinationItem = Answer<'GET /destinations'>['data'][number];
type Health = Answer<'GET /analytics/destinations/health'>['destinations'][number];
type Endpoint = RowOf<'GET /webhook-endpoints'>;

/** The circuit between one route and one destination. */
export interface Circuit {
  routeId: string;
  routeName: string;
  destinationId: string;
  state: 'closed' | 'open' | 'half_open';
  openedAt: string | null;
  lastSuccessAt: string | null;
  lastFailureAt: string | null;
  /** When a probe is due. */
  probeAt: string | null;
  failureCount: number;
  cooldownSeconds: number;
  probeSuccessCount: number;
  probeSuccessThreshold: number;
}

export interface ReadCircuits {
  circuits: Circuit[];
  /** Routes whose circuits were read. */
  routeIds: ReadonlySet<string>;
}

/** What the circuits of a route go by. */
interface WiredRoute {
  id: string;
  name: string;
  destinationIds: readonly string[];
  failoverDestinationIds: readonly string[];
}

export interface Target {
  id: string;
  kind: 'destination' | 'endpoint';
  name: string;
  /** Its type, or the application of an endpoint. */
  sub: string;
  state: string;
  /** When a probe of the open circuit of an endpoint is due; of destinations `circuits` has it. */
  probeAt: string | null;
  total: number;
  /** From 0 to 1; null where nothing has ended. */
  share: number | null;
  p95Ms: number | null;
  failure: { at: string; responseStatus: number | null; errorMessage: string | null } | null;
}

export interface TargetList extends CursorList<Target> {
  circuits: Circuit[];
}

const everyMs = 10_000;
const maxRoutesRead = 30;
const order = ['circuit_open', 'failed', 'half_open', 'degraded', 'disabled', 'healthy', 'idle'];

const whole = { isWhole: true };
const destinationsOf = ({ data }: Answer<'GET /destinations'>) => data;
const routesOf = ({ data }: Answer<'GET /routes'>) => data;

/** Destinations and endpoints, worst first, up to a bound of each. `search`: only those whose name or address has it. */
export function useTargets(range: Range, search?: string): TargetList {
  const destinations = useWholeList(usePages('GET /destinations', { search }, destinationsOf, whole));
  const health = useRead('GET /analytics/destinations/health', { query: { range: range.value } }, { everyMs });
  const applications = useWholeList(useCursorList('GET /webhook-applications', {}, whole));
  const endpoints = useWholeList(useCursorList('GET /webhook-endpoints', {}, whole));
  const healths = health.data?.destinations ?? [];
  const { circuits, knownOf } = useCircuits(failingIn(healths));
  const now = useNow(everyMs);
  const text = search?.toLowerCase() ?? '';
  const names = new Map(applications.rows.map(({ id, name }) => [id, name]));
  const healthOf = new Map(healths.map((each) => [each.destinationId, each]));
  const found = [
    ...destinations.rows.map((each) => {
      const own = healthOf.get(each.id);
      return ofDestination(each, own, destinationState(each.enabled, own, knownOf(each.id), now));
    }),
    ...endpoints.rows
      .map((each) => ofEndpoint(each, names.get(each.applicationId) ?? ''))
      .filter(({ name }) => name.toLowerCase().includes(text)),
  ];
  const failed = destinations.error ?? health.error ?? endpoints.error;
  return {
    ...endpoints,
    rows: found.toSorted((one, other) => order.indexOf(one.state) - order.indexOf(other.state) || one.name.localeCompare(other.name)),
    error: failed,
    isLoading: destinations.isLoading || health.isLoading || endpoints.isLoading,
    refresh: () => {
      destinations.refresh();
      void health.refetch();
      endpoints.refresh();
    },
    hasMore: destinations.hasMore || endpoints.hasMore,
    loadMore: destinations.hasMore ? destinations.loadMore : endpoints.loadMore,
    circuits,
  };
}

/** Destinations with a failure in the time of the figures. */
export function failingIn(healths: readonly Health[]): string[] {
  return healths.filter(({ recentFailures }) => recentFailures.length > 0).map(({ destinationId }) => destinationId);
}

/** The circuits of these destinations. `knownOf`: those of one of them. */
export function useCircuits(destinationIds: readonly string[]): {
  circuits: Circuit[];
  knownOf: (destinationId: string) => KnownCircuits;
} {
  const routes = useWholeList(usePages('GET /routes', {}, routesOf, whole));
  const read = useCircuitsOf(routes.rows.filter((route) => destinationIds.some((id) => leadsTo(route, id))));
  return {
    circuits: read.circuits.filter(({ destinationId }) => destinationIds.includes(destinationId)),
    knownOf: (id) => knownCircuits(id, routes, read),
  };
}

type Route = Answer<'GET /routes'>['data'][number];

/** The routes that lead to a destination, also as a failover. `isPart`: there are more routes than were read. */
export function useRoutesTo(destinationId: string): { routes: Route[]; isLoading: boolean; error: ApiError | null; isPart: boolean } {
  const { rows, isLoading, error, hasMore } = useWholeList(usePages('GET /routes', {}, routesOf, whole));
  return { routes: rows.filter((route) => leadsTo(route, destinationId)), isLoading, error, isPart: hasMore };
}

function leadsTo({ destinationIds, failoverDestinationIds }: WiredRoute, destinationId: string): boolean {
  return destinationIds.includes(destinationId) || failoverDestinationIds.includes(destinationId);
}

/** State of the circuits of a destination. */
export function knownCircuits(destinationId: string, routes: CursorList<WiredRoute>, { circuits, routeIds }: ReadCircuits): KnownCircuits {
  const isListed = !routes.isLoading && !routes.hasMore && routes.error === null;
  return {
    circuits: circuits.filter((each) => each.destinationId === destinationId),
    isWhole: isListed && routes.rows.every((route) => routeIds.has(route.id) || !leadsTo(route, destinationId)),
  };
}

/** The circuits of the first routes. */
export function useCircuitsOf(routes: readonly { id: string; name: string }[]): ReadCircuits {
  const organization = useOrganization();
  const asked = routes.slice(0, maxRoutesRead);
  const answers = useQueries({
    queries: asked.map(({ id }) => ({
      queryKey: [organization, 'GET /routes/{id}/circuit-status', { path: { id } }],
      queryFn: ({ signal }: { signal: AbortSignal }) => call('GET /routes/{id}/circuit-status', { path: { id } }, { organization, signal }),
      refetchInterval: everyMs,
    })),
  });
  const routeIds = new Set(asked.filter((_route, index) => answers[index]?.data !== undefined).map(({ id }) => id));
  const circuits = answers.flatMap(({ data }, index) => {
    const route = asked[index];
    if (data === undefined || route === undefined) return [];
    return data.destinations.map(
      (each): Circuit => ({
        routeId: route.id,
        routeName: route.name,
        destinationId: each.id,
        state: each.circuitState,
        openedAt: each.openedAt,
        lastSuccessAt: each.lastSuccessAt,
        lastFailureAt: each.lastFailureAt,
        probeAt: probeAt(each.lastFailureAt ?? each.openedAt, data.cooldownSeconds),
        failureCount: each.failureCount,
        cooldownSeconds: data.cooldownSeconds,
        probeSuccessCount: each.probeSuccessCount,
        probeSuccessThreshold: data.probeSuccessThreshold,
      }),
    );
  });
  return { circuits, routeIds };
}

/** A circuit has its cooldown after its last failure, also that of a probe. */
export function probeAt(lastFailureAt: string | null, cooldownSeconds: number): string | null {
  return lastFailureAt === null ? null : new Date(Date.parse(lastFailureAt) + cooldownSeconds * 1000).toISOString();
}

export function endpointState({ isDisabled, circuitState, lastSuccessAt, lastFailureAt }: Endpoint): string {
  if (isDisabled) return 'disabled';
  if (circuitState === 'open') return 'circuit_open';
  if (circuitState === 'half_open') return 'half_open';
  if (lastFailureAt === null) return lastSuccessAt === null ? 'idle' : 'healthy';
  if (lastSuccessAt === null) return 'failed';
  return lastFailureAt > lastSuccessAt ? 'degraded' : 'healthy';
}

/** Whose fault a failure is, by its status or the kind of its error. */
export function faultOf(responseStatus: number | null): string {
  return responseStatus === null ? 'Receiver or network' : 'Receiver';
}

/** The word of a target's state. */
export function targetWord(state: string): string | undefined {
  if (state === 'idle') return 'Nothing sent';
  return state === 'failed' ? 'Failing' : undefined;
}

export function isEndpointId(id: string): boolean {
  return !id.startsWith('dst_');
}

export function needsAttention(state: string): boolean {
  return ['circuit_open', 'failed', 'half_open', 'degraded'].includes(state);
}

function ofDestination(each: DestinationItem, health: Health | undefined, state: string): Target {
  return {
    id: each.id,
    kind: 'destination',
    name: each.name,
    sub: each.type === 'http' ? 'destination' : `destination, ${each.type}`,
    state,
    probeAt: null,
    total: health?.deliveryCount ?? 0,
    share: health?.successRate === undefined || health.successRate === null ? null : health.successRate / 100,
    p95Ms: health?.p95Latency ?? null,
    failure: health?.recentFailures[0] ?? null,
  };
}

function ofEndpoint(each: Endpoint, application: string): Target {
  const ended = each.totalSuccesses + each.totalFailures;
  return {
    id: each.id,
    kind: 'endpoint',
    name: each.url.replace(/^https?:\/\//, ''),
    sub: application === '' ? 'endpoint' : `endpoint of ${application}`,
    state: endpointState(each),
    probeAt: each.circuitState === 'open' ? probeAt(each.lastFailureAt, each.circuitCooldownSeconds) : null,
    total: each.totalMessages,
    share: ended === 0 ? null : each.totalSuccesses / ended,
    p95Ms: null,
    failure: each.lastFailureAt === null ? null : { at: each.lastFailureAt, responseStatus: null, errorMessage: null },
  };
}
