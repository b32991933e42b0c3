import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { Answer, Input } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { DeleteAct } from '../app/delete-act.tsx';
import { ListScreen } from '../app/list-screen.tsx';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { Page } from '../app/page.tsx';
import { Refusal, SwitchButton, switchWrite } from '../app/resource-acts.tsx';
import { EditLink, NewLink } from '../app/resource-form/form-links.tsx';
import { useOrganization, usePages, useRead, useWrite } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import type { FilterField, FilterValues } from '../ui/filters.tsx';
import { duration } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { Segments } from '../ui/segments.tsx';
import { Code, State } from '../ui/state.tsx';
import { Ago, Clock, Countdown, Minute } from '../ui/time.tsx';
import { CronCalendar, useWeek } from './cron-calendar.tsx';
import { utc } from './cron-days.ts';

type Job = Answer<'GET /cron'>['cronJobs'][number];

const fields: readonly FilterField[] = [
  { name: 'search', word: 'name', hint: 'Part of its name or slug.' },
  {
    name: 'isActive',
    word: 'enabled',
    choices: [
      { value: 'true', word: 'Yes' },
      { value: 'false', word: 'No' },
    ],
  },
];
const columns: readonly Column<Job>[] = [
  { title: 'Job', className: 'grow', cell: ({ name }) => name },
  { title: 'State', cell: ({ isActive }) => <State state={isActive ? 'ready' : 'disabled'} /> },
  { title: 'Schedule', className: 'mono p2', cell: ({ cronExpression }) => cronExpression },
  { title: 'Time zone', className: 'p3 muted', cell: ({ timezone }) => timezone },
  {
    title: 'Last run',
    className: 'p2',
    cell: ({ lastRunAt, lastRunStatus }) =>
      lastRunAt === null ? (
        <span className="dim">never</span>
      ) : (
        <>
          <Ago at={utc(lastRunAt)} /> {lastRunStatus === 'failed' ? <State state="failed" word="Failed" /> : null}
        </>
      ),
  },
  {
    title: 'Next run in',
    className: 'num',
    cell: ({ nextRunAt, isActive }) =>
      nextRunAt === null || !isActive ? <span className="dim">–</span> : <Countdown at={utc(nextRunAt)} />,
  },
];
const views = [
  { value: 'list', word: 'List' },
  { value: 'calendar', word: 'Calendar' },
] as const;
const keyOf = ({ id }: Job): string => id;
const rowsOf = ({ cronJobs }: Answer<'GET /cron'>): Job[] => cronJobs;

/** Which calls run by the clock, when next, and did they succeed? */
export function CronJobs(): ReactElement {
  const search = useSearch({ from: '/o/$org/cron' });
  const navigate = useNavigate();
  const week = useWeek();
  const isCalendar = search.view === 'calendar';
  return (
    <Page
      title="Cron jobs"
      actions={
        <>
          <Segments
            label="View"
            choices={views}
            value={isCalendar ? 'calendar' : 'list'}
            onChange={(view) =>
              void navigate({
                to: '.',
                search: (before: FilterValues) => ({ ...before, view: view === 'list' ? undefined : view }),
                replace: true,
              })
            }
          />
          {isCalendar ? (
            <AsCode name="GET /cron-schedule" input={{ query: week.query }} />
          ) : (
            <AsCode name="GET /cron" input={{ query: listQuery(search) }} />
          )}
          <NewLink family="cron" noun="cron job" />
        </>
      }
      isFull
    >
      {isCalendar ? <Calendar /> : <JobList />}
    </Page>
  );
}

function listQuery({ search, isActive }: FilterValues): Input<'GET /cron'>['query'] {
  return { search, isActive: isActive === undefined ? undefined : isActive === 'true' };
}

function JobList(): ReactElement {
  const org = useOrganization();
  const { view: _, from: __, ...search } = useSearch({ from: '/o/$org/cron' });
  const query = listQuery(search);
  return (
    <ListScreen
      what="cron jobs"
      list={usePages('GET /cron', query, rowsOf)}
      columns={columns}
      keyOf={keyOf}
      fields={fields}
      search={search}
      drawer={(id, close) => <JobDrawer key={id} id={id} onClose={close} />}
      empty={
        <Empty
          title="No cron job yet"
          command={createCommand(
            org,
            '/cron',
            '{"name": "nightly report", "cronExpression": "30 2 * * *", "url": "https://reports.example/run"}',
          )}
        >
          <p>A cron job calls an address by a schedule.</p>
        </Empty>
      }
    />
  );
}

function Calendar(): ReactElement {
  const { at } = useSearch({ from: '/o/$org/cron' });
  const navigate = useNavigate();
  return (
    <div className="split">
      <CronCalendar {...useWeek()} />
      {at === undefined ? null : (
        <JobDrawer
          key={at}
          id={at}
          onClose={() => void navigate({ to: '.', search: (before: FilterValues) => ({ ...before, at: undefined }), replace: true })}
        />
      )}
    </div>
  );
}

function JobDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const input = { path: { id } };
  const { data, error, refetch } = useRead('GET /cron/{id}', input, { everyMs: 10_000 });
  const change = useWrite('PATCH /cron/{id}');
  const run = useWrite('POST /cron/{id}/trigger');
  if (data === undefined)
    return (
      <Drawer label="Selected cron job" head={<span className="spacer" />} onClose={onClose}>
        {error === null ? <Loading what="the cron job" /> : <Failure message={error.message} retry={() => void refetch()} />}
      </Drawer>
    );
  const { name, isActive, cronExpression, timezone, method, url, nextRunAt, updatedAt } = data.cronJob;
  const answer = run.data?.execution;
  return (
    <Drawer
      label="Selected cron job"
      onClose={onClose}
      head={
        <>
          <State state={isActive ? 'ready' : 'disabled'} isPill />
          <strong>{name}</strong>
          <span className="spacer" />
        </>
      }
      foot={
        <>
          <AsCode name="GET /cron/{id}" input={input} />
          <ManifestLink id={id} />
          <EditLink family="cron" id={id} />
          <SwitchButton
            isOn={isActive}
            write={switchWrite({ name, isOn: isActive, change, inputOf: (isOn) => ({ ...input, body: { isActive: isOn } }) })}
          />
          <DeleteAct family="cron" id={id} noun="cron job" name={name} updatedAt={updatedAt} onDeleted={onClose}>
            <p>
              {url} is no longer called at {cronExpression}. The history of its runs goes, too.
            </p>
          </DeleteAct>
          <button type="button" className="btn is-primary" disabled={run.isPending} onClick={() => run.mutate({ ...input, body: {} })}>
            {run.isPending ? 'Running…' : 'Run now'}
          </button>
        </>
      }
    >
      <Refusal error={change.error ?? run.error} />
      {answer === undefined ? null : (
        <section aria-live="polite">
          <header>
            <h2>This run</h2>
          </header>
          <p className="row">
            <State state={answer.status} word={answer.status === 'success' ? 'Succeeded' : undefined} />{' '}
            <Code status={answer.responseStatus} /> {duration(answer.latencyMs)}
          </p>
          {answer.error === undefined ? null : <p className="small">{answer.error}</p>}
        </section>
      )}
      <section>
        <dl className="kv is-tight">
          <dt>Schedule</dt>
          <dd>
            <code>{cronExpression}</code> {timezone}
          </dd>
          <dt>Next run in</dt>
          <dd>{nextRunAt === null || !isActive ? <span className="dim">–</span> : <Countdown at={utc(nextRunAt)} />}</dd>
          <dt>Calls</dt>
          <dd>
            <code>
              {method} {url}
            </code>
          </dd>
          <dt>Id</dt>
          <dd className="id">{id}</dd>
        </dl>
      </section>
      {isActive ? <NextRuns id={id} /> : null}
      <History id={id} />
    </Drawer>
  );
}

function NextRuns({ id }: { id: string }): ReactElement {
  const { data, error } = useRead('GET /cron-schedule', { query: { cronJobId: id } }, { everyMs: 60_000 });
  return (
    <section>
      <header>
        <h2>Next runs</h2>
      </header>
      {error === null ? null : <Failure message={error.message} />}
      {data === undefined && error === null ? <Loading what="the next runs" /> : null}
      {data?.jobs.length === 0 ? <p className="small muted">It will not run.</p> : null}
      <ol className="runs">
        {data?.jobs[0]?.runs.map((at) => (
          <li key={at}>
            <Minute at={at} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function History({ id }: { id: string }): ReactElement {
  const { data, error } = useRead('GET /cron/{id}/executions', { path: { id }, query: { limit: 20 } }, { everyMs: 10_000 });
  return (
    <section>
      <header>
        <h2>Last runs</h2>
      </header>
      {error === null ? null : <Failure message={error.message} />}
      {data === undefined && error === null ? <Loading what="the runs" /> : null}
      {data?.executions.length === 0 ? <p className="small muted">It has not run yet.</p> : null}
      <dl className="kv is-tight">
        {data?.executions.map((run) => (
          <Run key={run.id} run={run} />
        ))}
      </dl>
    </section>
  );
}

function Run({ run }: { run: Answer<'GET /cron/{id}/executions'>['executions'][number] }): ReactElement {
  return (
    <>
      <dt>
        <Clock at={utc(run.started_at)} />
      </dt>
      <dd>
        <State state={run.status} word={run.status === 'success' ? 'Succeeded' : undefined} /> <Code status={run.response_status} />{' '}
        {run.latency_ms === null ? '' : duration(run.latency_ms)} <span className="sub">{run.error_message}</span>
      </dd>
    </>
  );
}
