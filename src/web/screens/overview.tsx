import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useMemo } from 'react';
import type { Answer, ApiError } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { Page } from '../app/page.tsx';
import { beginOf, type Range, rangeOf, ranges } from '../app/range.ts';
import { useOrganization, useRead } from '../app/use-api.ts';
import { AnswerLine } from '../ui/answer.tsx';
import { count, duration, percent, quantity } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { Panel } from '../ui/panel.tsx';
import { Segments } from '../ui/segments.tsx';
import { Ago, useNow } from '../ui/time.tsx';
import { FirstRun } from './first-run.tsx';
import { FailingCronJobs, type FailingJobs, useFailingJobs } from './overview-cron.tsx';
import { Figures, waitingIn } from './overview-figures.tsx';
import { RunningReplays } from './replay-parts.tsx';
import { SeriesCharts } from './series-charts.tsx';
import { needsAttention, type Target, type TargetList, useTargets } from './target-data.ts';
import { UnhealthyTargets } from './trouble.tsx';

type DeadLetters = { deliveries: number; messages: number };

const everyMs = 10_000;
const installationEveryMs = 60_000;
const words = ['None', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine'];

/** Is anything wrong, since when, whose fault? */
export function Overview(): ReactElement {
  const range = rangeOf(useSearch({ from: '/o/$org/overview' }).range);
  const navigate = useNavigate();
  const dashboard = useRead('GET /analytics/dashboard', { query: { range: range.value } }, { everyMs });
  const now = useNow(60_000);
  const series = useMemo(() => ({ query: { from: beginOf(range, now), step: range.step } }), [range, now]);
  const read = useRead('GET /analytics/series', series, { everyMs });
  const ofEndpoints = useRead('GET /webhooks/analytics/series', series, { everyMs });
  const deliveries = useRead('GET /deliveries/dead-letter-stats', {}, { everyMs });
  const messages = useRead('GET /outbound-messages/dlq/stats', {}, { everyMs });
  const sources = useRead('GET /sources', { query: { pageSize: 100 } }, { everyMs });
  const targets = useTargets(range);
  const cron = useFailingJobs();
  // Not everybody may see it.
  const { data: installation } = useRead('GET /installation', {}, { everyMs: installationEveryMs });
  const dead =
    deliveries.data === undefined || messages.data === undefined
      ? null
      : { deliveries: deliveries.data.total, messages: messages.data.data.total };
  const failed =
    dashboard.error ??
    read.error ??
    ofEndpoints.error ??
    deliveries.error ??
    messages.error ??
    sources.error ??
    targets.error ??
    cron.error;
  const hasNoEvent =
    sources.data?.data.every(({ lastEventAt }) => lastEventAt === null) === true && dashboard.data?.overview.total_events === 0;
  // Who sends to customers alone has no events of sources.
  const isFirstRun = hasNoEvent && !targets.isLoading && targets.rows.every(({ kind }) => kind !== 'endpoint') && cron.jobs.length === 0;
  if (isFirstRun) return <FirstRun sources={sources.data?.data ?? []} range={range.value} />;
  const retry = (): void => {
    void dashboard.refetch();
    void read.refetch();
    void ofEndpoints.refetch();
    targets.refresh();
    cron.refetch();
  };
  return (
    <Page
      title="Overview"
      actions={
        <>
          <Segments
            label="Time range"
            choices={ranges}
            value={range.value}
            onChange={(value) => void navigate({ to: '.', search: { range: value } as never, replace: true })}
          />
          <AsCode name="GET /analytics/dashboard" input={{ query: { range: range.value } }} />
        </>
      }
    >
      {failed === null ? null : <Unanswered error={failed} readAt={dashboard.dataUpdatedAt} retry={retry} />}
      {dashboard.data === undefined || targets.isLoading ? failed === null ? <Loading what="figures of this organization" /> : null : null}
      {targets.isLoading || dead === null || read.data === undefined ? null : (
        <Verdict
          targets={targets}
          dead={dead}
          series={read.data}
          waiting={waitingIn(read.data, ofEndpoints.data?.data)?.backlog ?? 0}
          cron={cron}
          hasWorkers={installation === undefined || hasWorkers(installation)}
          hasFailed={failed !== null}
        />
      )}
      <UnhealthyTargets targets={targets} range={range} />
      <FailingCronJobs jobs={cron.jobs} />
      {dashboard.data === undefined || read.data === undefined ? null : (
        <>
          <Figures
            dashboard={dashboard.data}
            circuitsOpened={(read.data.total.circuitsOpened ?? 0) + (ofEndpoints.data?.data.total.circuitsOpened ?? 0)}
            targets={targets}
            dead={dead}
            waiting={waitingIn(read.data, ofEndpoints.data?.data)}
            installation={installation}
            range={range}
          />
          <SeriesCharts series={read.data} range={range} ofEndpoints={ofEndpoints.data?.data} />
        </>
      )}
      <RunningReplays />
      {dashboard.data === undefined ? null : <Sources sources={dashboard.data.sources} range={range} />}
    </Page>
  );
}

/** A failed refresh keeps the earlier data, and shows its age. */
function Unanswered({ error, readAt, retry }: { error: ApiError; readAt: number; retry: () => void }): ReactElement {
  return (
    <>
      <Failure message={error.message} requestId={error.requestId} retry={retry} />
      {readAt === 0 ? null : (
        <p className="small muted">
          The data below was read <Ago at={new Date(readAt).toISOString()} />. Deliveries continue where workers reach Redis.
        </p>
      )}
    </>
  );
}

interface VerdictProps {
  targets: TargetList;
  dead: DeadLetters;
  series: Answer<'GET /analytics/series'>;
  /** Deliveries, and messages to endpoints. */
  waiting: number;
  cron: FailingJobs;
  hasWorkers: boolean;
  hasFailed: boolean;
}

function Verdict({ targets, dead, series, waiting, cron, hasWorkers: isServed, hasFailed }: VerdictProps): ReactElement | null {
  const org = useOrganization();
  const sick = targets.rows.filter(({ state }) => needsAttention(state));
  const given = dead.deliveries + dead.messages;
  const recover =
    given === 0 ? undefined : (
      <Link
        className={`btn${sick.length > 0 ? '' : ' is-primary'}`}
        to="/o/$org/dead-letters"
        params={{ org }}
        search={dead.deliveries === 0 ? { kind: 'messages' } : {}}
      >
        Recover {quantity(given, 'dead letter')}
      </Link>
    );
  if (!isServed)
    return (
      <AnswerLine
        tone="bad"
        question="Is anything wrong?"
        act={
          <Link className="btn is-primary" to="/o/$org/installation" params={{ org }}>
            Installation
          </Link>
        }
      >
        <p>No worker is alive: nothing is delivered until one starts.</p>
        <p>The fault is in this installation. Events are accepted, and wait.</p>
      </AnswerLine>
    );
  if (sick.length > 0) {
    const since = failingSince(series.points);
    return (
      <AnswerLine tone="bad" question="Is anything wrong?" act={recover}>
        <p>
          {words[sick.length] ?? count(sick.length)} of {count(targets.rows.length)} {targets.hasMore ? 'or more ' : ''}
          {targets.rows.length === 1 ? 'target' : 'targets'} {sick.length === 1 ? 'is' : 'are'} failing.
          {since === null ? null : (
            <>
              {' '}
              Attempts began to fail within the last <Age of={since} />.
            </>
          )}
        </p>
        <p>{faultSentence(sick)}</p>
      </AnswerLine>
    );
  }
  if (hasFailed) return null;
  if (given > 0)
    return (
      <AnswerLine tone="warn" question="Is anything wrong?" act={recover}>
        <p>
          {targets.hasMore ? `Each of the ${count(targets.rows.length)} targets that were read takes` : 'Every target takes'} what it is
          sent. {quantity(given, 'dead letter waits', 'dead letters wait')} for a decision.
        </p>
        <p>Nothing is lost: a replay sends {given === 1 ? 'it' : 'them'} again.</p>
      </AnswerLine>
    );
  if (cron.jobs.length > 0)
    return (
      <AnswerLine tone="warn" question="Is anything wrong?">
        <p>
          The last run of {quantity(cron.jobs.length, 'cron job')} failed. {targets.rows.length === 0 ? '' : 'No target fails.'}
        </p>
        <p>Each runs again by its schedule.</p>
      </AnswerLine>
    );
  if (cron.isLoading) return null;
  return (
    <AnswerLine tone="ok" question="Is anything wrong?">
      <p>Nothing is wrong.</p>
      <p>
        {targets.hasMore ? `None of the ${count(targets.rows.length)} targets that were read fails` : 'No target fails'}, no circuit is open
        and there is no dead letter. {waiting === 0 ? 'Nothing waits.' : `${quantity(waiting, 'message is', 'messages are')} on the way.`}
      </p>
    </AnswerLine>
  );
}

/** At most how long ago it was, in minutes: the series has the begin of a step. */
function Age({ of }: { of: string }): ReactElement {
  const minutes = Math.max(1, Math.ceil((useNow(10_000) - Date.parse(of)) / 60_000));
  return <span className="nowrap">{duration(minutes * 60_000)}</span>;
}

function hasWorkers({ workers }: Answer<'GET /installation'>): boolean {
  return workers === null || workers.data.some(({ isAlive }) => isAlive);
}

/** The begin of the step since when each step with attempts has some that fail; null: the last one has none. */
function failingSince(points: Answer<'GET /analytics/series'>['points']): string | null {
  const tried = points.filter(({ attempts }) => (attempts ?? 0) > 0);
  const lastClean = tried.findLastIndex(({ failed, retried }) => (failed ?? 0) + (retried ?? 0) === 0);
  return tried[lastClean + 1]?.at ?? null;
}

/** Whose fault it is, from the responses of the failing targets. */
function faultSentence(sick: readonly Target[]): string {
  const answered = sick.filter(({ failure }) => failure?.responseStatus !== null && failure?.responseStatus !== undefined).length;
  if (answered === sick.length)
    return sick.length === 1
      ? 'The fault is not in Posthorn: the receiver answers with an error. Messages wait and are tried again.'
      : 'None of the causes is in Posthorn: the receivers answer with errors. Messages wait and are tried again.';
  if (answered === 0)
    return 'The last attempts of each show whether the receiver or the network failed. Messages wait and are tried again.';
  return `${words[answered] ?? count(answered)} ${answered === 1 ? 'answers' : 'answer'} with errors; the last attempts of the others show why they failed. Messages wait and are tried again.`;
}

function Sources({ sources, range }: { sources: Answer<'GET /analytics/dashboard'>['sources']; range: Range }): ReactElement | null {
  const org = useOrganization();
  const total = sources.reduce((sum, { event_count }) => sum + event_count, 0);
  if (sources.length === 0) return null;
  return (
    <Panel
      title="Events by source"
      hint={range.said}
      end={
        <Link className="small" to="/o/$org/sources" params={{ org }}>
          All sources
        </Link>
      }
      isRegion
    >
      <div className="table-wrap">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Source</th>
              <th scope="col" className="num">
                Events
              </th>
              <th scope="col" className="num p2">
                Share
              </th>
            </tr>
          </thead>
          <tbody>
            {sources
              .toSorted((one, other) => other.event_count - one.event_count)
              .slice(0, 10)
              .map(({ id, name, slug, event_count }) => (
                <tr key={id}>
                  <td className="grow">
                    <Link className="name" to="/o/$org/events" params={{ org }} search={{ sourceId: slug }}>
                      {name}
                    </Link>
                  </td>
                  <td className={event_count === 0 ? 'num dim' : 'num'}>{count(event_count)}</td>
                  <td className="num p2 dim">{total === 0 ? '–' : percent(event_count / total)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
