import { type KeyboardEvent, type PointerEvent, type ReactElement, useRef } from 'react';
import type { Area } from './charts.tsx';

/** Steps of a chart: from `begin` up to `end`, which is not part of it. */
export interface Chosen {
  begin: number;
  end: number;
}

export interface BrushProps {
  area: Area;
  /** How many steps the chart has. */
  steps: number;
  /** Null: all of them. */
  chosen: Chosen | null;
  /** When a step begins, in words. */
  stepText: (step: number) => string;
  onChange: (chosen: Chosen | null) => void;
  onApply: (chosen: Chosen) => void;
}

type Edge = 'begin' | 'end';

interface Drag {
  /** A new range begins where it is dragged from. */
  edge: Edge | 'new';
  fromX: number;
  anchor: number;
  chosen: Chosen | null;
}

const edges = ['begin', 'end'] as const;
const edgeWidth = 24;
const dragsFromPx = 4;

/** Chooses a range of a chart, which it lies on: by dragging, or with the keys of its two edges. */
export function Brush({ area, steps, chosen, stepText, onChange, onApply }: BrushProps): ReactElement {
  const drag = useRef<Drag | null>(null);
  const { begin, end } = chosen ?? { begin: 0, end: steps };
  const slot = (area.right - area.left) / Math.max(1, steps);
  const xOf = (step: number): number => area.left + step * slot;
  const stepAt = (event: PointerEvent<SVGSVGElement>): number => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    return (((event.clientX - left) / width) * area.width - area.left) / slot;
  };
  const pressed = (event: PointerEvent<SVGSVGElement>): void => {
    if (event.button !== 0 || !event.isPrimary) return;
    const on = event.target instanceof Element ? event.target.closest('[data-edge]')?.getAttribute('data-edge') : null;
    const edge = edges.find((each) => each === on) ?? 'new';
    event.currentTarget.setPointerCapture(event.pointerId);
    drag.current = { edge, fromX: event.clientX, anchor: within(Math.floor(stepAt(event)), 0, steps - 1), chosen: null };
  };
  const moved = (event: PointerEvent<SVGSVGElement>): void => {
    const at = drag.current;
    if (at === null || (at.chosen === null && Math.abs(event.clientX - at.fromX) < dragsFromPx)) return;
    const step = stepAt(event);
    const over = within(Math.floor(step), 0, steps - 1);
    if (at.edge === 'begin') at.chosen = { begin: within(Math.round(step), 0, end - 1), end };
    else if (at.edge === 'end') at.chosen = { begin, end: within(Math.round(step), begin + 1, steps) };
    else at.chosen = { begin: Math.min(at.anchor, over), end: Math.max(at.anchor, over) + 1 };
    onChange(at.chosen);
  };
  const released = (): void => {
    const at = drag.current;
    drag.current = null;
    if (at?.chosen !== null && at?.chosen !== undefined) onApply(at.chosen);
  };
  const keyed = (edge: Edge) => (event: KeyboardEvent) => {
    const next = afterKey(event, edge, { begin, end }, steps);
    if (event.key === 'Enter') {
      if (chosen !== null) onApply(chosen);
    } else if (event.key === 'Escape' && chosen !== null) {
      drag.current = null;
      onChange(null);
    } else if (next !== null) onChange(next);
    else return;
    event.preventDefault();
  };
  return (
    <svg
      className="brush-area"
      viewBox={`0 0 ${area.width} ${area.height}`}
      role="group"
      aria-label="Range of time. Arrow keys move an edge, with Shift the range; Enter applies it, Escape drops it."
      onPointerDown={pressed}
      onPointerMove={moved}
      onPointerUp={released}
      onPointerCancel={() => {
        drag.current = null;
        onChange(null);
      }}
    >
      <rect className="brush-ground" x={area.left} y={area.top} width={area.right - area.left} height={area.bottom - area.top} />
      {chosen === null ? null : (
        <rect className="brush-chosen" x={xOf(begin)} y={area.top} width={(end - begin) * slot} height={area.bottom - area.top} />
      )}
      {edges.map((edge) => {
        const step = edge === 'begin' ? begin : end;
        const x = xOf(step);
        return (
          <g
            key={edge}
            className="brush-edge"
            data-edge={edge}
            role="slider"
            tabIndex={0}
            aria-label={edge === 'begin' ? 'Begin of the range' : 'End of the range'}
            aria-orientation="horizontal"
            aria-valuemin={edge === 'begin' ? 0 : begin + 1}
            aria-valuemax={edge === 'begin' ? end - 1 : steps}
            aria-valuenow={step}
            aria-valuetext={stepText(step)}
            onKeyDown={keyed(edge)}
          >
            <rect x={edge === 'begin' ? x - edgeWidth : x} y={area.top} width={edgeWidth} height={area.bottom - area.top} />
            <path className="s-accent" d={`M${x} ${area.top}V${area.bottom}`} />
            <path
              className="brush-grip"
              d={`M${x} ${(area.top + area.bottom) / 2 - 8}h${edge === 'begin' ? -5 : 5}v16h${edge === 'begin' ? 5 : -5}z`}
            />
          </g>
        );
      })}
    </svg>
  );
}

/** Null: the key does nothing here. */
function afterKey({ key, shiftKey }: KeyboardEvent, edge: Edge, { begin, end }: Chosen, steps: number): Chosen | null {
  const far = Math.max(1, Math.round(steps / 10));
  const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: far, PageDown: -far, Home: -steps, End: steps }[key];
  if (by === undefined) return null;
  if (shiftKey) {
    const moved = within(begin + by, 0, steps - (end - begin));
    return { begin: moved, end: moved + end - begin };
  }
  return edge === 'begin' ? { begin: within(begin + by, 0, end - 1), end } : { begin, end: within(end + by, begin + 1, steps) };
}

function within(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}
