import { Link, useSearch } from '@tanstack/react-router';
import { type ReactElement, use } from 'react';
import type { Answer } from '../api/client.ts';
import { useOrganization, useRead } from '../app/use-api.ts';
import { count } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { State } from '../ui/state.tsx';
import { Clock, dayBegin, dayOf, TimeOfDay, Until, useNow, ZoneContext } from '../ui/time.tsx';
import { dayAfter, isDay, runsByDay, weekFrom } from './cron-days.ts';
import { maxPastJobs, type PastRuns, usePastRuns } from './cron-past.ts';

/** Jobs with more runs in a week are shown above the days. */
const maxPerWeek = 28;
/** So far the calendar goes back. */
const maxWeeksBack = 4;

type Schedule = Answer<'GET /cron-schedule'>;
type Job = Schedule['jobs'][number];

interface WeekSpan {
  today: string;
  days: string[];
  query: { from: string; to: string; perJob: number };
}

/** Seven days: from the one that the address names, which may be some weeks ago, or from today. */
export function useWeek(): WeekSpan {
  const { from } = useSearch({ from: '/o/$org/cron' });
  const zone = use(ZoneContext);
  const today = dayOf(new Date(useNow(60_000)), zone);
  const first = isDay(from) && from >= dayAfter(today, -7 * maxWeeksBack) ? from : today;
  return {
    today,
    days: weekFrom(first),
    query: { from: dayBegin(first, zone), to: dayBegin(dayAfter(first, 7), zone), perJob: maxPerWeek },
  };
}

/** The runs of all jobs in these days: what has run, and what will. */
export function CronCalendar({ today, days, query }: WeekSpan): ReactElement {
  const zone = use(ZoneContext);
  const [first = today] = days;
  const before = dayAfter(first, -7);
  const isAhead = dayAfter(first, 6) >= today;
  const schedule = useRead('GET /cron-schedule', { query }, { everyMs: 60_000, isEnabled: isAhead });
  const ahead = isAhead && !schedule.isPlaceholderData ? schedule.data : undefined;
  const past = usePastRuns({ from: query.from, to: query.to, perJob: query.perJob, isEnabled: first <= today });
  const error = schedule.error ?? past.error;
  const retry = (): void => {
    if (isAhead) void schedule.refetch();
    past.refetch();
  };
  const isLoading = past.isLoading || (isAhead && ahead === undefined);
  return (
    <div className="live-list calendar">
      <nav className="btn-row" aria-label="Week">
        <WeekLink from={before === today ? undefined : before} word="Earlier" isOff={before < dayAfter(today, -7 * maxWeeksBack)} />
        <WeekLink from={undefined} word="From today" isOff={first === today} />
        <WeekLink from={dayAfter(first, 7)} word="Later" />
        <span className="sub">
          {first} to {days[6]}, {zone === 'UTC' ? 'UTC' : 'your time zone'}
        </span>
      </nav>
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={retry} />}
      {isLoading && error === null ? <Loading what="the runs" /> : null}
      {isLoading || (isAhead && ahead === undefined) ? null : (
        <Week schedule={ahead ?? null} past={past} today={today} days={days} to={query.to} />
      )}
    </div>
  );
}

function WeekLink({ from, word, isOff = false }: { from: string | undefined; word: string; isOff?: boolean }): ReactElement {
  const org = useOrganization();
  if (isOff)
    return (
      <button type="button" className="btn is-sm" disabled>
        {word}
      </button>
    );
  return (
    <Link className="btn is-sm" to="/o/$org/cron" params={{ org }} search={{ view: 'calendar', from }} replace>
      {word}
    </Link>
  );
}

interface WeekProps {
  /** Null: all of these days are over. */
  schedule: Schedule | null;
  past: PastRuns;
  today: string;
  days: readonly string[];
  to: string;
}

function Week({ schedule, past, today, days, to }: WeekProps): ReactElement {
  const zone = use(ZoneContext);
  const jobs = schedule?.jobs ?? [];
  const often = jobs.filter(({ hasMore }) => hasMore);
  const dayIn = (at: string): string => dayOf(new Date(at), zone);
  const runs = runsByDay(
    jobs.filter(({ hasMore }) => !hasMore),
    dayIn,
  );
  const ran = Map.groupBy(
    past.runs.toSorted((one, other) => (one.at < other.at ? -1 : 1)),
    ({ at }) => dayIn(at),
  );
  const isPastKnown = past.error === null && !past.isCut && past.knownFrom === null;
  if (jobs.length + past.runs.length + past.often.length === 0 && isPastKnown)
    return (
      <Empty title="No run in these days">
        <p>
          {schedule === null
            ? 'Nothing ran, or it is longer ago than the histories of the jobs reach.'
            : 'A job that is active runs by its schedule; those that are not active have no runs.'}
        </p>
      </Empty>
    );
  const isKnown = (day: string): boolean => {
    if (day >= today) return schedule === null || dayBegin(dayAfter(day, 1), zone) <= schedule.to;
    const isReached = past.knownFrom === null || dayBegin(day, zone) >= past.knownFrom;
    return past.error === null && !past.isCut && past.often.length === 0 && isReached;
  };
  return (
    <>
      {schedule !== null && schedule.to < to ? (
        <p className="small" role="status">
          There are more runs than fit here. Every run until <Clock at={schedule.to} /> is shown.
        </p>
      ) : null}
      {past.knownFrom === null ? null : (
        <p className="small" role="status">
          The API keeps the last 100 runs of a job. Before <Clock at={past.knownFrom} /> some are missing.
        </p>
      )}
      {past.isCut ? <p className="small muted">What has run is shown of the first {maxPastJobs} jobs.</p> : null}
      {often.length + past.often.length === 0 ? null : (
        <section>
          <h2>More than {count(maxPerWeek)} times in these days</h2>
          <ul className="often">
            {past.often.map(({ job, total, failed, isAtLeast }) => (
              <li key={`past ${job.id}`}>
                <JobLink job={job} /> ran {isAtLeast ? 'at least ' : ''}
                {count(total)} times{failed === 0 ? '' : `, ${count(failed)} of them failed`}
              </li>
            ))}
            {often.map((job) => (
              <li key={job.id}>
                <JobLink job={job} /> <code>{job.cronExpression}</code> <span className="muted">{job.timezone}</span>{' '}
                {job.runs[0] === undefined ? null : <Until at={job.runs[0]} />}
              </li>
            ))}
          </ul>
        </section>
      )}
      <div className="days">
        {days.map((day) => (
          <section key={day} aria-label={day}>
            <h2>
              {weekday(day)} <span className="muted">{day.slice(5)}</span>
            </h2>
            <ol>
              {ran.get(day)?.map(({ job, at, status }) => (
                <li key={`ran ${job.id} ${at}`}>
                  <TimeOfDay at={at} /> <JobLink job={job} /> <State state={status} word={status === 'success' ? 'Succeeded' : undefined} />
                </li>
              ))}
              {runs.get(day)?.map(({ job, at }) => (
                <li key={`${job.id} ${at}`}>
                  <TimeOfDay at={at} /> <JobLink job={job} />
                </li>
              ))}
            </ol>
            {runs.has(day) || ran.has(day) || often.length > 0 || !isKnown(day) ? null : (
              <p className="small dim">{day === today ? 'no further run' : 'no run'}</p>
            )}
          </section>
        ))}
      </div>
    </>
  );
}

function JobLink({ job: { id, name } }: { job: Pick<Job, 'id' | 'name'> }): ReactElement {
  const org = useOrganization();
  const search = useSearch({ from: '/o/$org/cron' });
  return (
    <Link className="name" to="/o/$org/cron" params={{ org }} search={{ ...search, at: id }} replace>
      {name}
    </Link>
  );
}

const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

function weekday(day: string): string {
  return weekdays[new Date(day).getUTCDay()] ?? '';
}
