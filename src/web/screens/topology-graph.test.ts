import { describe, expect, test } from '@jest/globals';
import {
  columnsOf,
  type End,
  linesOf,
  narrowed,
  rateText,
  routesAt,
  selectedIn,
  type WiredRoute,
  type Wiring,
  widthOf,
} from './topology-graph.ts';
import { summaryOf } from './topology-summary.ts';

function end(id: string, more: Partial<End> = {}): End {
  return { id, name: id.slice(4), sub: '', state: 'healthy', perMinute: 0, ...more };
}

function route(id: string, from: string, to: string[], more: Partial<WiredRoute> = {}): WiredRoute {
  return {
    id: `rte_${id}`,
    name: id,
    sourceId: `src_${from}`,
    destinationIds: to.map((each) => `dst_${each}`),
    failoverIds: [],
    state: 'healthy',
    perMinute: 1,
    cutOff: new Map(),
    ...more,
  };
}

const open = { state: 'circuit_open', cutOff: new Map([['dst_billing', { state: 'open' as const, openedAt: null }]]) };
const wiring: Wiring = {
  sources: [end('src_shop'), end('src_erp'), end('src_idle', { state: 'no_routes' })],
  routes: [
    route('1', 'shop', ['billing']),
    route('2', 'shop', ['billing', 'lake'], open),
    route('3', 'erp', ['lake'], { failoverIds: ['dst_spare'] }),
  ],
  destinations: [end('dst_spare'), end('dst_lake'), end('dst_billing', { state: 'circuit_open' })],
};

const keys = (nodes: readonly { key: string }[]): string[] => nodes.map(({ key }) => key);

describe('without a selection', () => {
  test('each column has all nodes, worst first, and routes of a pair are shown as one', () => {
    const { sources, routes, destinations } = columnsOf(wiring, null, 'pair');
    expect(keys(sources)).toEqual(['src_shop', 'src_erp', 'src_idle']);
    expect(routes).toMatchObject([
      { key: 'pair.src_shop.dst_billing', name: 'shop to billing', sub: '2 routes', state: 'circuit_open', perMinute: 2, isOpen: false },
      { key: 'rte_3', kind: 'route' },
    ]);
    expect(keys(destinations)).toEqual(['dst_billing', 'dst_lake', 'dst_spare']);
  });

  test.each([
    ['source', ['from shop', '3']],
    ['destination', ['to billing', '3']],
    ['each', ['2', '1', '3']],
  ] as const)('routes stand together by %s', (grouping, names) => {
    expect(columnsOf(wiring, null, grouping).routes.map(({ name }) => name)).toEqual(names);
  });
});

describe('a selection', () => {
  test.each([
    ['src_erp', ['src_shop', 'src_erp', 'src_idle'], ['rte_3'], ['dst_lake', 'dst_spare']],
    ['dst_lake', ['src_shop', 'src_erp'], ['rte_2', 'rte_3'], ['dst_billing', 'dst_lake', 'dst_spare']],
    ['src_shop', ['src_shop', 'src_erp', 'src_idle'], ['rte_2', 'rte_1'], ['dst_billing', 'dst_lake']],
    ['dst_spare', ['src_erp'], ['rte_3'], ['dst_billing', 'dst_lake', 'dst_spare']],
    ['rte_3', ['src_erp'], ['pair.src_shop.dst_billing', 'rte_3'], ['dst_lake', 'dst_spare']],
    ['src_idle', ['src_shop', 'src_erp', 'src_idle'], [], []],
  ])('a selection of %s keeps its own column, and of the others what is joined to it', (selected, ...columns) => {
    const { sources, routes, destinations } = columnsOf(wiring, selected, 'pair');
    expect([keys(sources), keys(routes), keys(destinations)]).toEqual(columns);
  });

  test.each(['pair.src_shop.dst_billing', 'rte_2'])('a selection of the group or a route of it opens the group: %s', (selected) => {
    const { routes } = columnsOf(wiring, selected, 'pair');
    expect(routes.map(({ key, level, isOpen }) => [key, level, isOpen])).toEqual([
      ['pair.src_shop.dst_billing', 1, true],
      ['rte_2', 2, false],
      ['rte_1', 2, false],
      ['rte_3', 1, false],
    ]);
  });

  test('a selection of what is not there is null', () => {
    expect(routesAt(wiring, 'rte_9')).toBeNull();
    expect(routesAt(wiring, 'src_9')).toBeNull();
    expect(routesAt(wiring, 'pair.src_shop.dst_billing')?.map(({ name }) => name)).toEqual(['1', '2']);
  });
});

describe('a selected group', () => {
  const key = 'pair.src_shop.dst_billing';
  test.each([
    ['stays in its own grouping', wiring, key, 'pair', key],
    ['is in no other grouping', wiring, key, 'source', null],
    ['is in no grouping of single routes', wiring, key, 'each', null],
    ['is that of a source', wiring, 'source.src_shop', 'source', 'source.src_shop'],
    ['is that of a first destination', wiring, 'destination.dst_billing', 'destination', 'destination.dst_billing'],
    ['of which one route is left is that route', narrowed(wiring, { text: '1', onlyWrong: false }), key, 'pair', 'rte_1'],
    ['of which nothing is left is none', narrowed(wiring, { text: 'erp', onlyWrong: false }), key, 'pair', null],
    ['is the same when its first route comes back', { ...wiring, routes: wiring.routes.toReversed() }, key, 'pair', key],
  ] as const)('%s', (_, each, at, grouping, selected) => {
    expect(selectedIn(each, at, grouping)).toBe(selected);
    const { routes } = columnsOf(each, selected, grouping);
    expect(routes.filter((node) => node.key === selected)).toHaveLength(selected === null ? 0 : 1);
  });

  test.each(['rte_2', 'src_shop', 'dst_lake'])('a selected group is not needed for %s, which each grouping has', (at) => {
    for (const grouping of ['pair', 'source', 'destination', 'each'] as const) expect(selectedIn(wiring, at, grouping)).toBe(at);
  });
});

test('a search keeps what has the text and what is joined to it, and drops the rest', () => {
  const found = narrowed(wiring, { text: ' ERP ', onlyWrong: false });
  expect([found.sources, found.routes, found.destinations].map((each) => each.map(({ id }) => id))).toEqual([
    ['src_erp'],
    ['rte_3'],
    ['dst_spare', 'dst_lake'],
  ]);
  expect(narrowed(wiring, { text: 'idle', onlyWrong: false }).sources.map(({ id }) => id)).toEqual(['src_idle']);
});

test('only what is wrong is what has trouble, and what is joined to that', () => {
  const found = narrowed(wiring, { text: '', onlyWrong: true });
  expect(found.routes.map(({ id }) => id)).toEqual(['rte_1', 'rte_2']);
  expect(found.sources.map(({ id }) => id)).toEqual(['src_shop']);
});

describe('lines', () => {
  const linesTo = (to: 'sources' | 'destinations', wanted: string[] = []) =>
    linesOf(columnsOf(wiring, null, 'each').routes, to, new Set(wanted)).map((line) => [line.from, line.to, line.state, line.isFailover]);

  test('show an open circuit only to the destination that it cuts off, and which way is the failover', () => {
    expect(linesTo('destinations')).toEqual([
      ['rte_2', 'dst_billing', 'circuit_open', false],
      ['rte_2', 'dst_lake', 'healthy', false],
      ['rte_1', 'dst_billing', 'healthy', false],
      ['rte_3', 'dst_lake', 'healthy', false],
      ['rte_3', 'dst_spare', 'healthy', true],
    ]);
    expect(linesTo('sources').map(([, to]) => to)).toEqual(['src_shop', 'src_shop', 'src_erp']);
  });

  test('of a group with many ends are drawn only where they are requested', () => {
    const many = { ...wiring, routes: ['a', 'b', 'c', 'd'].map((to) => route(to, 'shop', [to])) };
    const { routes } = columnsOf(many, null, 'source');
    expect(linesOf(routes, 'destinations', new Set())).toEqual([]);
    expect(linesOf(routes, 'destinations', new Set(['source.src_shop']))).toHaveLength(4);
    expect(linesOf(routes, 'sources', new Set())).toHaveLength(1);
  });
});

describe('the summary', () => {
  const all = '3 routes from 3 sources to 3 destinations.';
  const of = (...routes: Partial<WiredRoute>[]): Wiring => ({
    ...wiring,
    routes: wiring.routes.map((each, i) => ({ ...each, state: 'healthy', cutOff: new Map(), ...routes[i] })),
    destinations: wiring.destinations.map((each) => ({ ...each, state: 'healthy' })),
  });
  const unknown = { state: 'circuit_open' };
  const twice = { ...open, cutOff: new Map([...open.cutOff, ['dst_lake', { state: 'open' as const, openedAt: null }]]) };

  test.each([
    ['nothing is wrong', of(), 'None has failed in the last hour.'],
    ['the circuits of a route are not known', of(unknown), '1 route with an open circuit.'],
    ['a route has its one circuit open', of(open), '1 route with an open circuit.'],
    ['routes have more open circuits', of(twice, open), '2 routes with 3 open circuits.'],
    ['the circuits of one route are not known', of(twice, unknown), '2 routes with open circuits.'],
    [
      'there is one of each',
      of({ state: 'half_open' }, { state: 'failed' }, { state: 'degraded' }),
      '1 route with a half-open circuit, 1 route failing, 1 route failing in part.',
    ],
    [
      'a disabled route has the open circuit',
      { ...of({ ...open, state: 'disabled' }), destinations: wiring.destinations },
      '1 destination in trouble.',
    ],
  ])('counts routes by their state where %s', (_, each, text) => {
    expect(summaryOf(each, false)).toBe(`${all} ${text}`);
  });

  test('the summary of a part reports it', () => {
    expect(summaryOf(of(), true)).toBe(`Shown: ${all} None of these has failed in the last hour.`);
    expect(summaryOf(of(unknown), true)).toBe(`Shown: ${all} 1 route with an open circuit.`);
  });
});

test.each([
  [0, '0'],
  [0.04, '< 0.1'],
  [0.25, '0.3'],
  [12.14, '12.1'],
  [1204.4, '1,204'],
])('a rate of %d a minute reads %s', (perMinute, text) => {
  expect(rateText(perMinute)).toBe(text);
});

test('a line grows with its rate, within bounds', () => {
  expect(widthOf(0)).toBe(1.25);
  expect(widthOf(100)).toBeGreaterThan(widthOf(10));
  expect(widthOf(10 ** 9)).toBe(7);
});
