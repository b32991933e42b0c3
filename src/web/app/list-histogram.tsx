import { memo, type ReactElement, use, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { Answer, ApiError } from '../api/client.ts';
import { Brush, type Chosen } from '../ui/brush.tsx';
import { type Area, Bars, Legend, type Mark } from '../ui/charts.tsx';
import type { FilterField, FilterValues } from '../ui/filters.tsx';
import { count } from '../ui/format.ts';
import { minuteLabel, useNow, ZoneContext } from '../ui/time.tsx';
import { type CountedSpan, countedSpan } from './counted-span.ts';
import { type CountedList, type Counts, countsOf } from './list-counts.ts';
import { useRead } from './use-api.ts';

type Series = Answer<'GET /analytics/series'>;
type Point = Series['points'][number];

export interface ListHistogramProps {
  of: CountedList;
  fields: readonly FilterField[];
  filters: FilterValues;
  /** Moments in which something opened that is open still. */
  marks?: readonly Mark[] | undefined;
  /** Sets filters of the list. */
  onRange: (range: FilterValues) => void;
}

const everyMs = 30_000;
const quickRanges = [
  { word: '15 min', ms: 900_000 },
  { word: '1 h', ms: 3_600_000 },
  { word: '24 h', ms: 86_400_000 },
  { word: '7 d', ms: 604_800_000 },
];
const timeOf = ({ at }: Point): string => at;

/** How many there were over the time of the filters; dragging over it chooses a time. The pages of the list do not render it again. */
export const ListHistogram = memo(function ListHistogram({ of, fields, filters, marks = [], onRange }: ListHistogramProps): ReactElement {
  const counts = countsOf[of];
  const now = useNow(everyMs);
  const [fromName, toName] = counts.times;
  const [from, to] = [filters[fromName], filters[toName]];
  const span = useMemo(() => countedSpan(from, to, now), [from, to, now]);
  // A series is of one.
  const scope = counts.scopes.find((name) => filters[name] !== undefined && !filters[name].includes(','));
  const { series, error, isFormer } = useSeries(counts, span, scope === undefined ? {} : { [scope]: filters[scope] });
  const [draft, setDraft] = useState<Chosen | null>(null);
  const steps = series === undefined ? null : stepsOf(series);
  const spanKey = `${steps?.beginMs} ${steps?.stepMs}`;
  const [draftOf, setDraftOf] = useState(spanKey);
  // Steps of another range are other times.
  if (draftOf !== spanKey) {
    setDraftOf(spanKey);
    setDraft(null);
  }
  const zone = use(ZoneContext);
  const timeText = (ms: number): string => minuteLabel(new Date(ms).toISOString(), zone);
  const apply = ({ begin, end }: Chosen): void => {
    if (steps === null) return;
    const at = (step: number): string => new Date(steps.beginMs + step * steps.stepMs).toISOString().replace('.000', '');
    setDraft(null);
    onRange({ [fromName]: at(begin), [toName]: at(end) });
  };
  return (
    <section className="histogram" aria-label="Counts over time">
      <div className="row">
        <span className="segments" role="group" aria-label="Show the last">
          {quickRanges.map(({ word, ms }) => (
            <button
              key={word}
              type="button"
              onClick={() => onRange({ [fromName]: new Date(Date.now() - ms).toISOString().replace(/\.\d+/, ''), [toName]: undefined })}
            >
              {word}
            </button>
          ))}
        </span>
        {from === undefined && to === undefined ? null : (
          <button type="button" className="btn is-sm" onClick={() => onRange({ [fromName]: undefined, [toName]: undefined })}>
            Clear the range
          </button>
        )}
        <span role="status" className="small">
          {draft === null || steps === null
            ? null
            : `${timeText(steps.beginMs + draft.begin * steps.stepMs)} to ${timeText(steps.beginMs + draft.end * steps.stepMs)}`}
        </span>
        {draft === null ? null : (
          <button type="button" className="btn is-sm is-primary" onClick={() => apply(draft)}>
            Use this range
          </button>
        )}
        <span className="spacer" />
        <Legend entries={counts.layers} />
      </div>
      {span === null ? (
        <p className="muted small">There are no counts of this range: they are kept for 32 days, and there are none of times to come.</p>
      ) : null}
      {error === null || series !== undefined ? null : <p className="muted small">The counts cannot be read: {error.message}</p>}
      {span === null || series === undefined || steps === null ? (
        <div className="histogram-space" />
      ) : (
        <HistogramChart
          counts={counts}
          series={series}
          span={span}
          steps={steps}
          timeText={timeText}
          marks={marks}
          draft={draft}
          onDraft={setDraft}
          onApply={apply}
        >
          {isFormer ? 'Counts of the chosen filters are being read.' : limitsOfCounts(counts, fields, filters, scope)}
        </HistogramChart>
      )}
    </section>
  );
});

/** The series that the list's counts come from. */
function useSeries(
  { isOfWebhooks }: Counts,
  span: CountedSpan | null,
  scope: Record<string, string | undefined>,
): { series: Series | undefined; error: ApiError | null; isFormer: boolean } {
  const range =
    span === null ? {} : { from: new Date(span.beginMs).toISOString(), to: new Date(span.endMs).toISOString(), step: span.step };
  const input = { query: { ...range, ...scope } };
  const traffic = useRead('GET /analytics/series', input, { everyMs, isEnabled: span !== null && !isOfWebhooks });
  const webhooks = useRead('GET /webhooks/analytics/series', input, { everyMs, isEnabled: span !== null && isOfWebhooks });
  return isOfWebhooks
    ? { series: webhooks.data?.data, error: webhooks.error, isFormer: webhooks.isPlaceholderData }
    : { series: traffic.data, error: traffic.error, isFormer: traffic.isPlaceholderData };
}

interface Steps {
  beginMs: number;
  stepMs: number;
}

/** Steps of the series itself: the one of the range before is shown until the next one is there. Null: it has no steps. */
function stepsOf({ points, from, to }: Series): Steps | null {
  const beginMs = Date.parse(from);
  return points.length === 0 ? null : { beginMs, stepMs: (Date.parse(to) - beginMs) / points.length };
}

/** Which filters the counts apply, and which they ignore. */
function limitsOfCounts(counts: Counts, fields: readonly FilterField[], filters: FilterValues, scope: string | undefined): string {
  const wordOf = (name: string): string => fields.find((field) => field.name === name)?.word ?? name;
  const unknown = fields
    .map(({ name }) => name)
    .filter((name) => filters[name] !== undefined && name !== scope && !counts.times.includes(name));
  const follows = scope === undefined ? '' : ` The counts are those of the ${wordOf(scope)} in the filters.`;
  const not =
    unknown.length === 0 ? '' : ` The counts ignore the filter${unknown.length === 1 ? '' : 's'} ${unknown.map(wordOf).join(', ')}.`;
  return `${counts.counted}${follows}${not}`;
}

interface HistogramChartProps {
  counts: Counts;
  series: Series;
  span: CountedSpan;
  steps: Steps;
  timeText: (ms: number) => string;
  marks: readonly Mark[];
  draft: Chosen | null;
  onDraft: (draft: Chosen | null) => void;
  onApply: (chosen: Chosen) => void;
  children: string;
}

function HistogramChart({
  counts,
  series: { points, total, from, to },
  span,
  steps: { beginMs, stepMs },
  timeText,
  marks,
  draft,
  onDraft,
  onApply,
  children,
}: HistogramChartProps): ReactElement {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const box = frame.current;
    if (box === null) return;
    const measured = (): void => setWidth(box.clientWidth);
    measured();
    const observer = new ResizeObserver(measured);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  const area: Area = { width, height: 104, left: 40, right: width - 28, top: 8, bottom: 84 };
  const shown = marks.filter(({ atMs }) => atMs >= beginMs && atMs < beginMs + points.length * stepMs);
  const sentence = `${counts.sentence(total)} from ${timeText(Date.parse(from))} to ${timeText(Date.parse(to))}.`;
  return (
    <>
      <div className="histogram-space" ref={frame}>
        {width === 0 ? null : (
          <>
            <Bars
              label={[sentence, ...shown.map(({ word }) => word)].join(' ')}
              points={points}
              timeOf={timeOf}
              layers={counts.layers}
              marks={[...new Set(shown.map(({ atMs }) => (atMs - beginMs) / (points.length * stepMs)))]}
              area={area}
            />
            <Brush
              area={area}
              steps={points.length}
              chosen={draft}
              stepText={(step) => timeText(beginMs + step * stepMs)}
              onChange={onDraft}
              onApply={onApply}
            />
          </>
        )}
      </div>
      <p className="small">
        {sentence} <span className="muted">{children}</span>
        {shown.map(({ atMs, word }) => (
          <span key={`${atMs} ${word}`} className="c-open">
            {' '}
            {word}
          </span>
        ))}
        {span.isCut ? <span className="muted"> Counts are kept for 32 days: the list may have older ones.</span> : null}
      </p>
      <details className="small">
        <summary>As a table</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: without a focus the keyboard could not scroll it */}
        <section className="histogram-table" aria-label="Counts" tabIndex={0}>
          <table className="table">
            <caption className="vh">Counts per {span.stepWord}</caption>
            <thead>
              <tr>
                <th scope="col">From</th>
                {counts.layers.map(({ word }) => (
                  <th key={word} scope="col" className="num">
                    {word}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {points.map((point) => (
                <tr key={point.at}>
                  <th scope="row">{timeText(Date.parse(point.at))}</th>
                  {counts.layers.map(({ word, value }) => (
                    <td key={word} className="num">
                      {count(value(point))}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      </details>
    </>
  );
}
