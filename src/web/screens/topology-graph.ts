/** A source or a destination. */
export interface End {
  id: string;
  name: string;
  /** Its provider or type. */
  sub: string;
  state: string;
  /** Events that a source has taken, deliveries that have ended at a destination; null while it is not known. */
  perMinute: number | null;
}

/** A route, and what it leads to. */
export interface WiredRoute {
  id: string;
  name: string;
  sourceId: string;
  destinationIds: readonly string[];
  failoverIds: readonly string[];
  state: string;
  perMinute: number | null;
  /** Destinations to which its circuit is open or half open. */
  cutOff: ReadonlyMap<string, CutOff>;
}

export interface CutOff {
  state: 'open' | 'half_open';
  /** Null while it is not known. */
  openedAt: string | null;
}

export interface Wiring {
  sources: readonly End[];
  routes: readonly WiredRoute[];
  destinations: readonly End[];
}

/** Grouping of routes: those of a source and a first destination, those of a source, those of a first destination, or each alone. */
export type Grouping = 'pair' | 'source' | 'destination' | 'each';
export type Side = 'sources' | 'routes' | 'destinations';
export const sides: readonly Side[] = ['sources', 'routes', 'destinations'];

export interface Node {
  key: string;
  kind: 'source' | 'group' | 'route' | 'destination';
  name: string;
  sub: string;
  state: string;
  perMinute: number | null;
  /** The routes that it represents, or that begin or end at it. */
  routes: readonly WiredRoute[];
  /** 2 of a route below its group. */
  level: 1 | 2;
  /** Whether the routes of a group are shown below it. */
  isOpen: boolean;
}

export type Columns = Record<Side, readonly Node[]>;

/** A line between a node of the routes and one of an end. */
export interface Line {
  key: string;
  from: string;
  to: string;
  state: string;
  isFailover: boolean;
  perMinute: number;
}

const worstFirst = ['circuit_open', 'failed', 'half_open', 'degraded', 'healthy', 'idle', 'no_routes', 'disabled'];
const troubles: ReadonlySet<string> = new Set(['circuit_open', 'failed', 'half_open', 'degraded']);

export function isWrong({ state }: { state: string }): boolean {
  return troubles.has(state);
}

export function sideOf(key: string): Side {
  if (key.startsWith('src_')) return 'sources';
  return key.startsWith('dst_') ? 'destinations' : 'routes';
}

/** Those that have the text in a name, or are joined to one by a route; `onlyWrong`: those with trouble, and what they are joined to. */
export function narrowed(wiring: Wiring, { text, onlyWrong }: { text: string; onlyWrong: boolean }): Wiring {
  const wanted = text.trim().toLowerCase();
  if (wanted === '' && !onlyWrong) return wiring;
  const has = ({ name }: { name: string }): boolean => wanted === '' || name.toLowerCase().includes(wanted);
  const ends = new Map([...wiring.sources, ...wiring.destinations].map((each) => [each.id, each]));
  const routes = wiring.routes.filter((route) => {
    const joined = [route, ...endIdsOf(route).flatMap((id) => ends.get(id) ?? [])];
    return joined.some(has) && (!onlyWrong || joined.some(isWrong));
  });
  const joined = new Set(routes.flatMap(endIdsOf));
  const stays = (end: End): boolean => joined.has(end.id) || (has(end) && (!onlyWrong || isWrong(end)));
  return { sources: wiring.sources.filter(stays), routes, destinations: wiring.destinations.filter(stays) };
}

/** The routes that begin or end at a node, or that it represents; null where nothing has the key. */
export function routesAt({ sources, routes, destinations }: Wiring, key: string): readonly WiredRoute[] | null {
  const side = sideOf(key);
  if (side !== 'routes') {
    const exists = (side === 'sources' ? sources : destinations).some(({ id }) => id === key);
    return exists ? routes.filter((route) => endIdsOf(route).includes(key)) : null;
  }
  const grouping = groupingOf(key);
  const found = routes.filter((route) => (grouping === 'each' ? route.id : groupKey(route, grouping)) === key);
  return found.length === 0 ? null : found;
}

/** The key of the node that the address selects; null where no column has one. Of a group that has one route left, it is that route. */
export function selectedIn(wiring: Wiring, at: string | null, grouping: Grouping): string | null {
  const routes = at === null || !belongsTo(at, grouping) ? null : routesAt(wiring, at);
  if (at === null || routes === null) return null;
  const [first, ...more] = routes;
  return groupingOf(at) !== 'each' && first !== undefined && more.length === 0 ? first.id : at;
}

/** A group is in no other grouping than its own. */
export function belongsTo(key: string, grouping: Grouping): boolean {
  const own = groupingOf(key);
  return own === 'each' || own === grouping;
}

/**
 * The rows of the three columns, worst first. The column of the selected node keeps all its nodes, so that the arrow keys work there. The other
 * columns have only the nodes that a route connects to it. The routes of a selected source or destination are not grouped.
 */
export function columnsOf(wiring: Wiring, selected: string | null, grouping: Grouping): Columns {
  const chosen = selected === null ? null : routesAt(wiring, selected);
  const side = selected === null || chosen === null ? null : sideOf(selected);
  const joined = new Set((chosen ?? []).flatMap(endIdsOf));
  const of = (own: Side, ends: readonly End[]): Node[] => {
    const shown = side === null || side === own ? ends : ends.filter(({ id }) => joined.has(id));
    const kind = own === 'sources' ? 'source' : 'destination';
    const nodes = shown.map((end) => ofEnd(end, kind, byEnd.get(end.id) ?? [])).toSorted(inOrder);
    // A source has no trouble of its own: its routes have.
    return own === 'sources' ? nodes.toSorted((one, other) => troubleAt(other) - troubleAt(one)) : nodes;
  };
  const byEnd = routesBy(wiring.routes, endIdsOf);
  const shownRoutes = side === null || side === 'routes' ? wiring.routes : (chosen ?? []);
  const names = new Map([...wiring.sources, ...wiring.destinations].map(({ id, name }) => [id, name]));
  return {
    sources: of('sources', wiring.sources),
    routes: grouped(shownRoutes, names, side === null || side === 'routes' ? grouping : 'each', side === 'routes' ? selected : null),
    destinations: of('destinations', wiring.destinations),
  };
}

/** A group with more ends on a side shows its lines only on request. */
const linesAtMost = 3;

/**
 * The lines of these nodes of routes to the sources or to the destinations. `wanted` holds the nodes whose lines are drawn in any case.
 */
export function linesOf(nodes: readonly Node[], to: 'sources' | 'destinations', wanted: ReadonlySet<string>): Line[] {
  return nodes.flatMap((node) => {
    const ends = endsOf(node, to);
    if (ends.size > linesAtMost && !wanted.has(node.key)) return [];
    return [...ends].map(([end, routes]): Line => {
      const main = to === 'sources' ? routes : routes.filter(({ destinationIds }) => destinationIds.includes(end));
      return {
        key: `${node.key} ${end}`,
        from: node.key,
        to: end,
        state: to === 'sources' ? sourceLine(routes) : destinationLine(routes, end),
        isFailover: main.length === 0,
        perMinute: sumOf(main),
      };
    });
  });
}

function endsOf({ routes }: Node, to: 'sources' | 'destinations'): Map<string, WiredRoute[]> {
  return routesBy(routes, ({ sourceId, destinationIds, failoverIds }) =>
    to === 'sources' ? [sourceId] : [...destinationIds, ...failoverIds],
  );
}

function sourceLine(routes: readonly WiredRoute[]): string {
  if (routes.every(({ state }) => state === 'disabled')) return 'disabled';
  return sumOf(routes) === 0 ? 'idle' : 'healthy';
}

function destinationLine(routes: readonly WiredRoute[], end: string): string {
  const states = routes.map(({ state, cutOff }) => {
    const cut = cutOff.get(end)?.state;
    if (cut !== undefined) return cut === 'open' ? 'circuit_open' : 'half_open';
    // An open circuit to another destination does not concern this one.
    return state === 'circuit_open' || state === 'half_open' ? 'healthy' : state;
  });
  return worst(states);
}

/** The ends of a route: its source, its destinations and those that it fails over to. */
function endIdsOf({ sourceId, destinationIds, failoverIds }: WiredRoute): string[] {
  return [sourceId, ...destinationIds, ...failoverIds];
}

/** Such as `12.1`, `1,204`, `< 0.1` and `0`. */
export function rateText(perMinute: number): string {
  if (perMinute === 0) return '0';
  if (perMinute < 0.1) return '< 0.1';
  return perMinute < 100 ? (Math.round(perMinute * 10) / 10).toString() : Math.round(perMinute).toLocaleString('en');
}

/** Between 1.25 and 7 pixels; ten times as much is a step of 1.5 pixels. */
export function widthOf(perMinute: number): number {
  return Math.min(7, 1.25 + 1.5 * Math.log10(1 + perMinute));
}

function grouped(routes: readonly WiredRoute[], names: ReadonlyMap<string, string>, grouping: Grouping, selected: string | null): Node[] {
  if (grouping === 'each') return routes.map(ofRoute).toSorted(inOrder);
  const groups = [...Map.groupBy(routes, (route) => groupKey(route, grouping)).values()].map((own): Node => {
    const [first] = own;
    if (first !== undefined && own.length === 1) return ofRoute(first);
    const key = first === undefined ? '' : groupKey(first, grouping);
    return {
      key,
      kind: 'group',
      name: first === undefined ? '' : groupName(first, names, grouping),
      sub: `${own.length} routes`,
      state: worst(own.map(({ state }) => state)),
      perMinute: sumOf(own),
      routes: own,
      level: 1,
      isOpen: selected === key || own.some(({ id }) => id === selected),
    };
  });
  return groups
    .toSorted(inOrder)
    .flatMap((node) =>
      node.isOpen ? [node, ...node.routes.map((route): Node => ({ ...ofRoute(route), level: 2 })).toSorted(inOrder)] : [node],
    );
}

function groupName({ sourceId, destinationIds }: WiredRoute, names: ReadonlyMap<string, string>, grouping: Grouping): string {
  const source = names.get(sourceId) ?? sourceId;
  const [first = ''] = destinationIds;
  const destination = names.get(first) ?? first;
  if (grouping === 'source') return `from ${source}`;
  return grouping === 'destination' ? `to ${destination}` : `${source} to ${destination}`;
}

function ofRoute(route: WiredRoute): Node {
  const { id, name, state, perMinute } = route;
  return { key: id, kind: 'route', name, sub: '', state, perMinute, routes: [route], level: 1, isOpen: false };
}

function ofEnd({ id, name, sub, state, perMinute }: End, kind: 'source' | 'destination', routes: readonly WiredRoute[]): Node {
  return { key: id, kind, name, sub, state, perMinute, routes, level: 1, isOpen: false };
}

/** The routes by each of their ends that `idsOf` names. */
function routesBy(routes: readonly WiredRoute[], idsOf: (route: WiredRoute) => readonly string[]): Map<string, WiredRoute[]> {
  const found = new Map<string, WiredRoute[]>();
  for (const route of routes) {
    for (const id of new Set(idsOf(route))) {
      const own = found.get(id);
      if (own === undefined) found.set(id, [route]);
      else own.push(route);
    }
  }
  return found;
}

function troubleAt({ routes }: Node): number {
  return routes.some(isWrong) ? 1 : 0;
}

function inOrder(one: { state: string; name: string }, other: { state: string; name: string }): number {
  return rank(one.state) - rank(other.state) || one.name.localeCompare(other.name, 'en', { numeric: true });
}

function rank(state: string): number {
  const at = worstFirst.indexOf(state);
  return at === -1 ? worstFirst.length : at;
}

function worst(states: readonly string[]): string {
  return states.reduce((found, state) => (rank(state) < rank(found) ? state : found), states[0] ?? 'idle');
}

function sumOf(routes: readonly WiredRoute[]): number {
  return routes.reduce((sum, { perMinute }) => sum + (perMinute ?? 0), 0);
}

/** Key of what the routes of a group have in common, so that it stays the same whichever of them are shown. */
function groupKey({ sourceId, destinationIds }: WiredRoute, grouping: Grouping): string {
  const [first = ''] = destinationIds;
  if (grouping === 'source') return `source.${sourceId}`;
  return grouping === 'destination' ? `destination.${first}` : `pair.${sourceId}.${first}`;
}

function groupingOf(key: string): Grouping {
  return (['pair', 'source', 'destination'] as const).find((each) => key.startsWith(`${each}.`)) ?? 'each';
}
