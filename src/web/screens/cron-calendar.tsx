import { Link, useSearch } from '@tanstack/react-router';
import { type ReactElement, use } from 'react';
import type { Answer } from '../api/client.ts';
import { useOrganization, useRead } from '../app/use-api.ts';
import { count } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { Clock, dayBegin, dayOf, TimeOfDay, Until, useNow, ZoneContext } from '../ui/time.tsx';
import { dayAfter, isDay, runsByDay, weekFrom } from './cron-days.ts';

/** Jobs with more runs in a week stand above the days. */
const mostPerWeek = 28;

type Schedule = Answer<'GET /cron-schedule'>;
type Job = Schedule['jobs'][number];

interface WeekSpan {
  today: string;
  days: string[];
  query: { from: string; to: string; perJob: number };
}

/** Seven days: from the one that the address names, or from today. */
export function useWeek(): WeekSpan {
  const { from } = useSearch({ from: '/o/$org/cron' });
  const zone = use(ZoneContext);
  const today = dayOf(new Date(useNow(60_000)), zone);
  const first = isDay(from) && from > today ? from : today;
  return {
    today,
    days: weekFrom(first),
    query: { from: dayBegin(first, zone), to: dayBegin(dayAfter(first, 7), zone), perJob: mostPerWeek },
  };
}

/** The runs of all jobs in these days. */
export function CronCalendar({ today, days, query }: WeekSpan): ReactElement {
  const zone = use(ZoneContext);
  const [first = today] = days;
  const before = dayAfter(first, -7);
  const { data: answer, error, isPlaceholderData, refetch } = useRead('GET /cron-schedule', { query }, { everyMs: 60_000 });
  const data = isPlaceholderData ? undefined : answer;
  return (
    <div className="live-list calendar">
      <nav className="btn-row" aria-label="Week">
        <WeekLink from={before > today ? before : undefined} word="Earlier" isOff={first === today} />
        <WeekLink from={undefined} word="From today" isOff={first === today} />
        <WeekLink from={dayAfter(first, 7)} word="Later" />
        <span className="sub">
          {first} to {days[6]}, {zone === 'UTC' ? 'UTC' : 'your time zone'}
        </span>
      </nav>
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {data === undefined && error === null ? <Loading what="the runs" /> : null}
      {data === undefined ? null : <Week schedule={data} days={days} to={query.to} />}
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

function Week({ schedule, days, to }: { schedule: Schedule; days: readonly string[]; to: string }): ReactElement {
  const zone = use(ZoneContext);
  const often = schedule.jobs.filter(({ hasMore }) => hasMore);
  const runs = runsByDay(
    schedule.jobs.filter(({ hasMore }) => !hasMore),
    (at) => dayOf(new Date(at), zone),
  );
  if (schedule.jobs.length === 0)
    return (
      <Empty title="No run in these days">
        <p>Jobs that are not active have none.</p>
      </Empty>
    );
  return (
    <>
      {schedule.to < to ? (
        <p className="small" role="status">
          There are more runs than fit here. Every run until <Clock at={schedule.to} /> is shown.
        </p>
      ) : null}
      {often.length === 0 ? null : (
        <section>
          <h2>More than {count(mostPerWeek)} times in these days</h2>
          <ul className="often">
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
          <section key={day}>
            <h2>
              {weekday(day)} <span className="muted">{day.slice(5)}</span>
            </h2>
            <ol>
              {runs.get(day)?.map(({ job, at }) => (
                <li key={`${job.id} ${at}`}>
                  <TimeOfDay at={at} /> <JobLink job={job} />
                </li>
              ))}
            </ol>
            {runs.has(day) || often.length > 0 || dayBegin(dayAfter(day, 1), zone) > schedule.to ? null : (
              <p className="small dim">{day === dayOf(new Date(schedule.from), zone) ? 'no further run' : 'no run'}</p>
            )}
          </section>
        ))}
      </div>
    </>
  );
}

function JobLink({ job: { id, name } }: { job: Job }): ReactElement {
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
