import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useCallback } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { ListScreen } from '../app/list-screen.tsx';
import { Page } from '../app/page.tsx';
import { rangeOf } from '../app/range.ts';
import { NewLink } from '../app/resource-form/form-links.tsx';
import { useOrganization } from '../app/use-api.ts';
import type { FilterField } from '../ui/filters.tsx';
import { count, duration, percent } from '../ui/format.ts';
import { Empty } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { Code, State } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import { needsAttention, type Target, targetWord, useTargets } from './target-data.ts';
import { TargetDrawer } from './target-facts.tsx';

const states = [
  { value: 'circuit_open', word: 'Circuit open' },
  { value: 'half_open', word: 'Half open' },
  { value: 'failed', word: 'Failing' },
  { value: 'degraded', word: 'Degraded' },
  { value: 'disabled', word: 'Disabled' },
  { value: 'healthy', word: 'Healthy' },
  { value: 'idle', word: 'Nothing sent' },
];
const fields: readonly FilterField[] = [
  { name: 'name', word: 'name', hint: 'A part of the name or address.' },
  {
    name: 'kind',
    word: 'kind',
    choices: [
      { value: 'destination', word: 'Destination' },
      { value: 'endpoint', word: 'Webhook endpoint' },
    ],
  },
  { name: 'state', word: 'state', choices: states },
];
const columns: readonly Column<Target>[] = [
  { title: 'Target', className: 'grow', cell: (target) => <TargetLink target={target} /> },
  { title: 'State', cell: ({ state }) => <State state={state} word={targetWord(state)} /> },
  { title: 'Kind', className: 'p2 muted', cell: ({ sub }) => sub },
  { title: 'Delivered', className: 'num p2', cell: ({ share }) => (share === null ? <span className="dim">–</span> : percent(share)) },
  { title: 'Ended', className: 'num p3', cell: ({ total }) => count(total) },
  { title: 'p95', className: 'num p3 muted', cell: ({ p95Ms }) => (p95Ms === null ? <span className="dim">–</span> : duration(p95Ms)) },
  { title: 'Last failure', className: 'p3', cell: ({ failure }) => <LastFailure failure={failure} /> },
];
const keyOf = ({ id }: Target): string => id;
const day = rangeOf('24h');

/** Which target is sick, and how does it heal? */
export function Targets(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search = useSearch({ from: '/o/$org/targets' });
  const targets = useTargets(day, search.name);
  const rows = targets.rows.filter(
    ({ kind, state }) => (search.kind === undefined || search.kind === kind) && (search.state === undefined || search.state === state),
  );
  const open = useCallback((id: string) => void navigate({ to: '/o/$org/targets/$id', params: { org, id } }), [navigate, org]);
  return (
    <Page
      title="Targets"
      sub={
        targets.isLoading ? undefined : (
          <>
            {summary(targets.rows)}
            {targets.hasMore ? ' Not all are listed; a filter by name finds other destinations.' : ''}
          </>
        )
      }
      actions={
        <>
          <AsCode name="GET /analytics/destinations/health" input={{ query: { range: '24h' } }} />
          <NewLink family="destinations" noun="destination" />
        </>
      }
      isFull
    >
      <ListScreen
        what="targets"
        list={{ ...targets, rows }}
        columns={columns}
        keyOf={keyOf}
        fields={fields}
        search={search}
        open={open}
        drawer={(id, close) => <TargetDrawer key={id} id={id} onClose={close} />}
        empty={
          <Empty
            title="No target yet"
            command={createCommand(org, '/destinations', '{"name": "billing", "url": "https://billing.example/hooks"}')}
          >
            <p>A target takes what Posthorn sends: a destination of your own, or a webhook endpoint of a customer.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function TargetLink({ target: { id, name } }: { target: Target }): ReactElement {
  const org = useOrganization();
  return (
    <Link className="name" to="/o/$org/targets/$id" params={{ org, id }}>
      {name}
    </Link>
  );
}

function LastFailure({ failure }: { failure: Target['failure'] }): ReactElement {
  if (failure === null) return <span className="dim">–</span>;
  return (
    <>
      {failure.responseStatus === null ? null : (
        <>
          <Code status={failure.responseStatus} />{' '}
        </>
      )}
      <span className="muted">
        <Ago at={failure.at} />
      </span>
    </>
  );
}

/** Such as `1 circuit open, 2 targets fail or are degraded, 4 are well.` */
function summary(rows: readonly Target[]): string {
  const of = (...wanted: string[]): number => rows.filter(({ state }) => wanted.includes(state)).length;
  const sick = rows.filter(({ state }) => needsAttention(state)).length;
  if (rows.length === 0) return '';
  if (sick + of('disabled') === 0)
    return rows.length === 1 ? 'The target takes what it is sent.' : `All ${count(rows.length)} targets take what they are sent.`;
  const parts = [
    [of('circuit_open', 'half_open'), 'with an open circuit'],
    [of('failed'), 'failing'],
    [of('degraded'), 'degraded'],
    [of('disabled'), 'disabled'],
    [of('healthy'), 'healthy'],
    [of('idle'), 'without traffic'],
  ] as const;
  return `${parts
    .filter(([number]) => number > 0)
    .map(([number, word]) => `${count(number)} ${word}`)
    .join(', ')}. In the last 24 hours.`;
}
