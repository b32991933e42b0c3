import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual';
import { type KeyboardEvent, type ReactElement, type RefObject, useEffect, useId, useMemo, useRef, useState } from 'react';
import { count } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { State, stateWord, toneOfState } from '../ui/state.tsx';
import { targetWord } from './target-data.ts';
import { type Columns, type Line, linesOf, type Node, rateText, type Side, sideOf, sides, widthOf } from './topology-graph.ts';

export interface MapProps {
  columns: Columns;
  /** How many there are of each kind. */
  totals: Record<Side, number>;
  selected: string | null;
  select: (key: string | null) => void;
  /** What Enter does. */
  open: (key: string) => void;
}

const rowHeight = 34;
const gapWidth = 64;
const titles = { sources: 'Sources', routes: 'Routes', destinations: 'Destinations' } as const;
const units = { sources: 'events/min', routes: 'events/min', destinations: 'ended/min' } as const;
/** States that are shown beside the name in words; those of the others are for screen readers. */
const quiet: ReadonlySet<string> = new Set(['healthy', 'idle']);

/** Three columns of rows, each of any length, and lines between those rows that are in view. */
export function TopologyMap({ columns, totals, selected, select, open }: MapProps): ReactElement {
  const [under, setUnder] = useState<string | null>(null);
  // Nothing but the selected node has its lines drawn in its column.
  const pointed = under !== null && selected !== null && sideOf(under) === sideOf(selected) ? null : under;
  const [, setOffset] = useState(0);
  const frames = {
    sources: useRef<HTMLDivElement>(null),
    routes: useRef<HTMLDivElement>(null),
    destinations: useRef<HTMLDivElement>(null),
  };
  const items = {
    sources: useRowsInView(columns.sources, frames.sources, selected),
    routes: useRowsInView(columns.routes, frames.routes, selected),
    destinations: useRowsInView(columns.destinations, frames.destinations, selected),
  };
  const lit = useMemo(() => litBy(columns, pointed), [columns, pointed]);
  const placeOf = (side: Side): ReadonlyMap<string, number> => {
    const top = frames[side].current?.scrollTop ?? 0;
    return new Map(items[side].map(({ index, start }) => [columns[side][index]?.key ?? '', start - top + rowHeight / 2]));
  };
  const places = { sources: placeOf('sources'), routes: placeOf('routes'), destinations: placeOf('destinations') };
  const inView = items.routes.flatMap(({ index }) => columns.routes[index] ?? []).filter((node) => isDrawn(node, selected));
  const wanted = new Set([pointed, selected].flatMap((key) => key ?? []));
  const linesTo = (side: 'sources' | 'destinations'): Placed[] =>
    linesOf(inView, side, wanted).flatMap((line) => {
      const from = places.routes.get(line.from);
      const to = places[side].get(line.to);
      return from === undefined || to === undefined
        ? []
        : [{ line, from, to, isFar: lit !== null && !(lit.has(line.from) && lit.has(line.to)) }];
    });
  const go = (side: Side, step: 1 | -1): void => {
    const next = sides[sides.indexOf(side) + step];
    if (next === undefined) return;
    frames[next].current?.focus();
    const first = columns[next][0];
    if (first !== undefined) select(first.key);
  };
  const column = (side: Side): ReactElement => (
    <Column
      key={side}
      side={side}
      nodes={columns[side]}
      total={totals[side]}
      items={items[side]}
      frame={frames[side]}
      selected={selected}
      lit={lit}
      select={select}
      open={open}
      point={setUnder}
      go={(step) => go(side, step)}
      onScroll={setOffset}
    />
  );
  return (
    <div className="topo">
      {column('sources')}
      <Lines lines={linesTo('sources')} isResting={wanted.size === 0} isMirrored />
      {column('routes')}
      <Lines lines={linesTo('destinations')} isResting={wanted.size === 0} />
      {column('destinations')}
    </div>
  );
}

/** With a selection the lines are those of what is joined to it; an open group whose route is selected gives way to that route. */
function isDrawn(node: Node, selected: string | null): boolean {
  if (selected === null || sideOf(selected) !== 'routes') return node.level === 1;
  return node.key === selected;
}

/** What is joined to the node under the pointer, and the node; null: nothing steps back. */
function litBy(columns: Columns, pointed: string | null): ReadonlySet<string> | null {
  if (pointed === null) return null;
  const node = columns[sideOf(pointed)].find(({ key }) => key === pointed);
  if (node === undefined) return null;
  const ids = new Set(
    node.routes.flatMap(({ id, sourceId, destinationIds, failoverIds }) => [id, sourceId, ...destinationIds, ...failoverIds]),
  );
  const isOf = ({ key, kind, routes }: Node): boolean =>
    kind === 'group' || kind === 'route' ? routes.some(({ id }) => ids.has(id)) : sideOf(pointed) === 'routes' && ids.has(key);
  const joined = sides.flatMap((side) => columns[side]).filter(isOf);
  const ends = joined
    .filter(({ kind }) => kind === 'group' || kind === 'route')
    .flatMap(({ routes }) => routes.filter(({ id }) => ids.has(id)));
  return new Set([
    pointed,
    ...joined.map(({ key }) => key),
    ...ends.flatMap((route) => [route.sourceId, ...route.destinationIds, ...route.failoverIds]),
  ]);
}

function useRowsInView(nodes: readonly Node[], frame: RefObject<HTMLDivElement | null>, selected: string | null): VirtualItem[] {
  const virtual = useVirtualizer({
    count: nodes.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: 6,
  });
  const at = selected === null ? -1 : nodes.findIndex(({ key }) => key === selected);
  useEffect(() => {
    if (at >= 0) virtual.scrollToIndex(at, { align: 'auto' });
  }, [at, virtual]);
  return virtual.getVirtualItems();
}

interface ColumnProps {
  side: Side;
  nodes: readonly Node[];
  total: number;
  items: readonly VirtualItem[];
  frame: RefObject<HTMLDivElement | null>;
  selected: string | null;
  lit: ReadonlySet<string> | null;
  select: (key: string | null) => void;
  open: (key: string) => void;
  point: (key: string | null) => void;
  go: (step: 1 | -1) => void;
  onScroll: (top: number) => void;
}

function Column({ side, nodes, total, items, frame, selected, lit, select, open, point, go, onScroll }: ColumnProps): ReactElement {
  const id = useId();
  const at = selected === null ? -1 : nodes.findIndex(({ key }) => key === selected);
  const pressed = (event: KeyboardEvent): void => {
    const to = (index: number) => () => {
      const node = nodes[Math.min(Math.max(index, 0), nodes.length - 1)];
      if (node !== undefined) select(node.key);
    };
    const acts = new Map<string, () => void>([
      ['ArrowDown', to(at + 1)],
      ['ArrowUp', to(at - 1)],
      ['Home', to(0)],
      ['End', to(nodes.length - 1)],
      ['PageDown', to(at + 10)],
      ['PageUp', to(at - 10)],
      ['ArrowRight', () => go(1)],
      ['ArrowLeft', () => go(-1)],
      ['Enter', () => (at < 0 || selected === null ? undefined : open(selected))],
    ]);
    const act = acts.get(event.key);
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  const before = items[0]?.start ?? 0;
  const after = nodes.length * rowHeight - (items.at(-1)?.end ?? 0);
  const title = titles[side];
  const shown = new Set(nodes.flatMap(({ key, routes }) => (side === 'routes' ? routes.map(({ id: route }) => route) : [key]))).size;
  return (
    <section className={`topo-column is-${side}`} aria-label={title}>
      <h2>
        {title} <span className="dim">{shown === total ? count(total) : `${count(shown)} of ${count(total)}`}</span>
        <span className="spacer" />
        <span className="dim">{units[side]}</span>
      </h2>
      <div
        className="topo-rows"
        ref={frame}
        role="tree"
        aria-label={`${title}, worst first`}
        aria-activedescendant={at < 0 ? undefined : `${id}-${at}`}
        tabIndex={0}
        onKeyDown={pressed}
        onScroll={({ currentTarget }) => onScroll(currentTarget.scrollTop)}
        onPointerLeave={() => point(null)}
      >
        <div role="presentation" style={{ height: before }} />
        {items.map(({ index }) => {
          const node = nodes[index];
          if (node === undefined) return null;
          return (
            <Row
              key={node.key}
              id={`${id}-${index}`}
              node={node}
              position={index + 1}
              size={nodes.length}
              isSelected={index === at}
              isFar={lit !== null && !lit.has(node.key)}
              select={select}
              point={point}
            />
          );
        })}
        <div role="presentation" style={{ height: Math.max(0, after) }} />
      </div>
      {nodes.length === 0 ? <p className="muted small">None</p> : null}
    </section>
  );
}

interface RowProps {
  id: string;
  node: Node;
  position: number;
  size: number;
  isSelected: boolean;
  isFar: boolean;
  select: (key: string) => void;
  point: (key: string) => void;
}

function Row({ id, node, position, size, isSelected, isFar, select, point }: RowProps): ReactElement {
  const { key, kind, name, sub, state, perMinute, level, isOpen } = node;
  const word = targetWord(state) ?? stateWord(state);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    <div
      id={id}
      role="treeitem"
      tabIndex={-1}
      aria-level={level}
      aria-posinset={position}
      aria-setsize={size}
      aria-selected={isSelected}
      aria-expanded={kind === 'group' ? isOpen : undefined}
      className={`topo-node is-${toneOfState(state)}${level === 2 ? ' is-below' : ''}${isFar ? ' is-far' : ''}`}
      title={name}
      onClick={() => select(key)}
      onPointerEnter={() => point(key)}
    >
      {kind === 'group' ? <Icon name="down" size={12} className="dim" /> : null}
      <State state={state} word="" />
      <span className="name">{name}</span>
      {quiet.has(state) ? (
        <>
          <span className="vh">{word}</span>
          <span className="dim small">{sub}</span>
        </>
      ) : (
        <span className={`word is-${toneOfState(state)}`}>{kind === 'group' ? `${sub}, ${word.toLowerCase()}` : word}</span>
      )}
      <span className={perMinute === 0 || perMinute === null ? 'rate dim' : 'rate'}>
        {perMinute === null ? '–' : rateText(perMinute)}
        <span className="vh"> a minute</span>
      </span>
    </div>
  );
}

interface Placed {
  line: Line;
  from: number;
  to: number;
  isFar: boolean;
}

/** From the routes to an end; `isMirrored`: the routes are on the right; `isResting`: nothing is selected or pointed at. The rows contain the same data. */
function Lines({
  lines,
  isResting,
  isMirrored = false,
}: {
  lines: readonly Placed[];
  isResting: boolean;
  isMirrored?: boolean;
}): ReactElement {
  const [start, end] = isMirrored ? [gapWidth, 0] : [0, gapWidth];
  const middle = gapWidth / 2;
  // What is lit, and what is wrong, is drawn above the rest.
  const drawn = lines.toSorted((one, other) => layerOf(one) - layerOf(other));
  return (
    <svg className={isResting ? 'topo-lines is-resting' : 'topo-lines'} width={gapWidth} aria-hidden="true">
      {drawn.map(({ line: { key, state, isFailover, perMinute }, from, to, isFar }) => (
        <path
          key={key}
          className={`${strokeOf(state)}${isFar ? ' is-far' : ''}`}
          fill="none"
          strokeWidth={widthOf(perMinute)}
          strokeDasharray={dashOf(state, isFailover)}
          d={`M${start} ${from}C${middle} ${from} ${middle} ${to} ${end} ${to}`}
        />
      ))}
    </svg>
  );
}

function layerOf({ isFar, line: { state } }: Placed): number {
  return (isFar ? 0 : 2) + (quiet.has(state) || state === 'disabled' ? 0 : 1);
}

function strokeOf(state: string): string {
  const tone = toneOfState(state);
  return tone === 'ok' ? 's-s2' : `s-${tone}`;
}

function dashOf(state: string, isFailover: boolean): string | undefined {
  if (state === 'circuit_open' || state === 'half_open') return '6 4';
  return isFailover || state === 'disabled' ? '1.5 4' : undefined;
}
