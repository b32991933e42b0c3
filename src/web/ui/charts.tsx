import { type ReactElement, type ReactNode, use } from 'react';
import { count, duration } from './format.ts';
import { timeLabel, ZoneContext } from './time.tsx';

export interface Layer<Point> {
  word: string;
  /** Class of its fill, such as `f-bad`. */
  fill: string;
  value: (point: Point) => number;
}

export interface Line<Point> {
  word: string;
  /** Class of its stroke, such as `s-s1`. */
  stroke: string;
  /** Null: nothing was measured. */
  value: (point: Point) => number | null;
}

/** Where a chart draws, in the units of its view box. */
export interface Area {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface ChartProps<Point> {
  /** What it shows, for those who do not see it. */
  label: string;
  /** Oldest first, at even distances. */
  points: readonly Point[];
  timeOf: (point: Point) => string;
}

const size: Area = { width: 470, height: 168, left: 44, right: 466, top: 16, bottom: 148 };
const unitsPerLabel = 105;

/** Something that happened at a moment. */
export interface Mark {
  atMs: number;
  /** What happened, with its time. */
  word: string;
}

interface BarsProps<Point> extends ChartProps<Point> {
  layers: readonly Layer<Point>[];
  /** From 0, the left end, to 1. The sentence beside the chart names them. */
  marks?: readonly number[];
  area?: Area;
  /** Shown where all bars are empty. */
  nothing?: string;
}

/** Stacked bars over time; the first layer is at the bottom. */
export function Bars<Point>({ label, points, timeOf, layers, marks = [], area = size, nothing }: BarsProps<Point>): ReactElement {
  const sums = points.map((point) => layers.reduce((sum, { value }) => sum + value(point), 0));
  const steps = evenSteps(Math.max(1, ...sums));
  const top = steps.at(-1) ?? 1;
  const slot = (area.right - area.left) / Math.max(1, points.length);
  const yOf = (value: number): number => area.bottom - (value / top) * (area.bottom - area.top);
  // A low chart shows the ends of its scale alone.
  const rules = area.height < size.height ? [0, top] : steps;
  return (
    <Frame
      label={label}
      points={points}
      timeOf={timeOf}
      rules={rules.map((step) => ({ y: yOf(step), word: shortCount(step) }))}
      area={area}
      nothing={sums.some((sum) => sum > 0) ? undefined : nothing}
    >
      {layers.map(({ word, fill }, layer) => (
        <path
          key={word}
          className={fill}
          d={points
            .map((point, index) => {
              const below = layers.slice(0, layer).reduce((sum, { value }) => sum + value(point), 0);
              const height = yOf(below) - yOf(below + (layers[layer]?.value(point) ?? 0));
              return height === 0
                ? ''
                : `M${round(area.left + index * slot + slot * 0.1)} ${round(yOf(below))}v${round(-height)}h${round(slot * 0.8)}v${round(height)}z`;
            })
            .join('')}
        />
      ))}
      {marks.map((share) => {
        const d = `M${round(area.left + share * (area.right - area.left))} ${area.top - 6}V${area.bottom}`;
        return (
          <g key={share} fill="none">
            <path className="s-ground" strokeWidth="4" d={d} />
            <path className="s-open" strokeWidth="2" strokeDasharray="4 3" d={d} />
          </g>
        );
      })}
    </Frame>
  );
}

/** Lengths of time, in milliseconds, as lines on a logarithmic scale. */
export function Durations<Point>({ label, points, timeOf, lines }: ChartProps<Point> & { lines: readonly Line<Point>[] }): ReactElement {
  const values = lines.flatMap(({ value }) => points.map(value)).filter((value) => value !== null);
  const low = values.length === 0 ? 0 : Math.floor(Math.log10(Math.max(1, Math.min(...values))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(10, ...values))));
  const yOf = (value: number): number =>
    size.bottom - ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * (size.bottom - size.top);
  const slot = (size.right - size.left) / Math.max(1, points.length);
  const rules = Array.from({ length: high - low + 1 }, (_none, step) => 10 ** (low + step));
  return (
    <Frame
      label={label}
      points={points}
      timeOf={timeOf}
      rules={rules.map((rule) => ({ y: yOf(rule), word: duration(rule) }))}
      nothing={values.length === 0 ? 'Nothing was measured.' : undefined}
    >
      {lines.map(({ word, stroke, value }) => {
        const places = points.map((point, index) => {
          const found = value(point);
          return found === null ? null : `${round(size.left + (index + 0.5) * slot)} ${round(yOf(found))}`;
        });
        const hasNone = (index: number): boolean => (places[index] ?? null) === null;
        const path = places.map((place, index) => (place === null ? '' : `${hasNone(index - 1) ? 'M' : 'L'}${place}`)).join('');
        // A line of no length is seen by its round ends alone.
        const alone = places.map((place, index) => (place !== null && hasNone(index - 1) && hasNone(index + 1) ? `M${place}h0.01` : ''));
        return (
          <g key={word} className={stroke} fill="none" strokeLinecap="round" strokeLinejoin="round">
            <path strokeWidth="1.75" d={path} />
            <path strokeWidth="5" d={alone.join('')} />
          </g>
        );
      })}
    </Frame>
  );
}

export function Legend({ entries }: { entries: readonly { word: string; fill: string }[] }): ReactElement {
  return (
    <span className="legend">
      {entries.map(({ word, fill }) => (
        <span key={word}>
          <svg width="10" height="10" aria-hidden="true">
            <rect width="10" height="10" rx="2" className={fill} />
          </svg>
          {word}
        </span>
      ))}
    </span>
  );
}

interface FrameProps<Point> extends ChartProps<Point> {
  rules: readonly { y: number; word: string }[];
  area?: Area;
  nothing: string | undefined;
  children: ReactNode;
}

function Frame<Point>({ label, points, timeOf, rules, area = size, nothing, children }: FrameProps<Point>): ReactElement {
  const zone = use(ZoneContext);
  const first = points[0];
  const last = points.at(-1);
  const span = first === undefined || last === undefined ? 0 : Date.parse(timeOf(last)) - Date.parse(timeOf(first));
  const slot = (area.right - area.left) / Math.max(1, points.length);
  const every = Math.max(1, Math.ceil(points.length / Math.max(1, Math.floor(area.width / unitsPerLabel))));
  return (
    <div className="chart">
      <svg viewBox={`0 0 ${area.width} ${area.height}`} role="img" aria-label={label}>
        {rules.map(({ y, word }) => (
          <g key={y}>
            <path className="grid" d={`M${area.left} ${round(y)}H${area.right}`} />
            <text x={area.left - 6} y={round(y) + 4} textAnchor="end">
              {word}
            </text>
          </g>
        ))}
        {children}
        {nothing === undefined ? null : (
          <text x={(area.left + area.right) / 2} y={(area.top + area.bottom) / 2 + 4} textAnchor="middle">
            {nothing}
          </text>
        )}
        {points.map((point, index) =>
          index % every === 0 ? (
            <text key={timeOf(point)} x={round(area.left + index * slot)} y={area.height - 4}>
              {timeLabel(timeOf(point), zone, span)}
            </text>
          ) : null,
        )}
      </svg>
    </div>
  );
}

/** Up to five round numbers from 0 on, the last one at or above `max`. */
function evenSteps(max: number): number[] {
  const rough = max / 4;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((found) => found * 4 >= max) ?? power * 10;
  return Array.from({ length: Math.ceil(max / step) + 1 }, (_none, index) => index * step);
}

function shortCount(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000}M`;
  return value >= 10_000 ? `${value / 1000}k` : count(value);
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
