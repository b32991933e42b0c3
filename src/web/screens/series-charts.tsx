import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import type { Range } from '../app/range.ts';
import { Bars, Durations, Legend } from '../ui/charts.tsx';
import { count, duration } from '../ui/format.ts';

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

/** Attempts and their latency over the range. */
export function SeriesCharts({ series: { points, total }, range }: { series: Series; range: Range }): ReactElement {
  const said = `${count(total.delivered ?? 0)} delivered, ${count(total.retried ?? 0)} tried again, ${count(total.failed ?? 0)} failed`;
  const p95 = total.p95Latency === null ? 'nothing was measured' : `95 % within ${duration(total.p95Latency)}`;
  return (
    <div className="cols-2">
      <section className="panel" aria-labelledby="attempts-chart">
        <header className="panel-head">
          <h2 id="attempts-chart">Attempts</h2>
          <span className="hint">per {range.stepWord}</span>
          <span className="spacer" />
          <Legend entries={layers} />
        </header>
        <Bars label={`Attempts of the ${range.said}: ${said}.`} points={points} timeOf={timeOf} layers={layers} />
      </section>
      <section className="panel" aria-labelledby="latency-chart">
        <header className="panel-head">
          <h2 id="latency-chart">Latency</h2>
          <span className="hint">of attempts, log scale</span>
          <span className="spacer" />
          <Legend entries={lines} />
        </header>
        <Durations label={`Latency of attempts of the ${range.said}: ${p95}.`} points={points} timeOf={timeOf} lines={lines} />
      </section>
    </div>
  );
}
