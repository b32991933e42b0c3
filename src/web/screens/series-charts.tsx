import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import type { Range } from '../app/range.ts';
import { type Area, Bars, Durations, type Layer, Legend } from '../ui/charts.tsx';
import { count, duration, quantity } from '../ui/format.ts';
import { Panel } from '../ui/panel.tsx';

type Series = Answer<'GET /analytics/series'>;
type Point = Series['points'][number];

const timeOf = ({ at }: Point): string => at;
const layers = [
  { word: 'Delivered', fill: 'f-s2', value: ({ delivered }: Point): number => delivered ?? 0 },
  { word: 'Tried again', fill: 'f-warn', value: ({ retried }: Point): number => retried ?? 0 },
  { word: 'Failed', fill: 'f-bad', value: ({ failed }: Point): number => failed ?? 0 },
];
const lines = [
  { word: 'p50', stroke: 's-s1', fill: 'f-s1', value: ({ p50Latency }: Point): number | null => p50Latency },
  { word: 'p95', stroke: 's-s2', fill: 'f-s2', value: ({ p95Latency }: Point): number | null => p95Latency },
  { word: 'p99', stroke: 's-s3', fill: 'f-s3', value: ({ p99Latency }: Point): number | null => p99Latency },
];

/** Below the attempts, with the same steps above each other. */
const strip: Area = { width: 470, height: 64, left: 44, right: 466, top: 8, bottom: 44 };

interface SeriesChartsProps {
  series: Series;
  range: Range;
  /** The same steps of messages to webhook endpoints, whose circuits are shown beside those of `series`. */
  ofEndpoints?: Series | undefined;
}

/** Attempts, the circuits that opened, and the latency of attempts over the range. */
export function SeriesCharts({ series, range, ofEndpoints }: SeriesChartsProps): ReactElement {
  const { points, total } = series;
  const said = `${count(total.delivered ?? 0)} delivered, ${count(total.retried ?? 0)} tried again, ${count(total.failed ?? 0)} failed`;
  const p95 = total.p95Latency === null ? 'nothing was measured' : `95 % within ${duration(total.p95Latency)}`;
  return (
    <div className="cols-2 is-top">
      <Panel title="Attempts" hint={`per ${range.stepWord}`} end={<Legend entries={layers} />} isRegion>
        <Bars
          label={`Attempts of the ${range.said}: ${said}.`}
          points={points}
          timeOf={timeOf}
          layers={layers}
          nothing="Nothing was attempted."
        />
        <Openings series={series} range={range} ofEndpoints={ofEndpoints} />
      </Panel>
      <Panel title="Latency" hint="of attempts, log scale" end={<Legend entries={lines} />} isRegion>
        <Durations label={`Latency of attempts of the ${range.said}: ${p95}.`} points={points} timeOf={timeOf} lines={lines} />
      </Panel>
    </div>
  );
}

/** How many circuits opened in each step; nothing where none did. */
function Openings({ series: { points, total }, range, ofEndpoints }: SeriesChartsProps): ReactElement | null {
  const opened = (total.circuitsOpened ?? 0) + (ofEndpoints?.total.circuitsOpened ?? 0);
  if (opened === 0) return null;
  const own: Layer<Point> = { word: 'Circuits opened', fill: 'f-open', value: ({ circuitsOpened }) => circuitsOpened ?? 0 };
  const byStep = new Map(ofEndpoints?.points.map(({ at, circuitsOpened }) => [at, circuitsOpened ?? 0]));
  const shown =
    ofEndpoints === undefined
      ? [own]
      : [
          { ...own, word: 'To destinations' },
          { word: 'To endpoints', fill: 'f-s3', value: ({ at }: Point): number => byStep.get(at) ?? 0 },
        ];
  return (
    <section aria-labelledby="openings-chart">
      <header className="panel-head">
        <h3 id="openings-chart">Circuits opened</h3>
        <span className="hint">per {range.stepWord}</span>
        <span className="spacer" />
        <Legend entries={shown} />
      </header>
      <Bars
        label={`${quantity(opened, 'circuit')} opened in the ${range.said}.`}
        points={points}
        timeOf={timeOf}
        layers={shown}
        area={strip}
      />
    </section>
  );
}
