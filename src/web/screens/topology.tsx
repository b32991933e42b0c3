import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useCallback, useDeferredValue, useMemo, useState } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { Page } from '../app/page.tsx';
import { NewLink } from '../app/resource-form/form-links.tsx';
import { useOrganization } from '../app/use-api.ts';
import { useSelectionKeys } from '../app/use-selection.ts';
import { maxRead } from '../app/whole-list.ts';
import { count } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { Segments } from '../ui/segments.tsx';
import { State } from '../ui/state.tsx';
import { TopologyAnswer } from './topology-answer.tsx';
import { type Topology as Read, useTopology } from './topology-data.ts';
import { belongsTo, columnsOf, type Node, narrowed, routesAt, selectedIn, sideOf } from './topology-graph.ts';
import { TopologyMap } from './topology-map.tsx';

const groupings = [
  { value: 'pair', word: 'Pair' },
  { value: 'source', word: 'Source' },
  { value: 'destination', word: 'Destination' },
  { value: 'each', word: 'Each' },
] as const;
const keyOf = ({ key }: Node): string => key;

/** Who is wired to whom? */
export function Topology(): ReactElement {
  const { at = null } = useSearch({ from: '/o/$org/topology' });
  const topology = useTopology(at);
  const { wiring, isLoading, error, refresh, cut } = topology;
  const isRead = !isLoading && wiring.sources.length + wiring.routes.length + wiring.destinations.length > 0;
  return (
    <Page
      title="Topology"
      sub={cut.length === 0 ? undefined : `The first ${count(maxRead)} ${cut.join(' and ')} are shown; there are more.`}
      actions={
        <>
          <AsCode name="GET /analytics/routes" input={{ query: { range: '1h' } }} />
          <NewLink family="routes" noun="route" />
        </>
      }
      isFull
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={refresh} />}
      {isLoading ? <Loading what="the wiring" /> : null}
      {isRead ? <Wired topology={topology} /> : isLoading || error !== null ? null : <Unwired />}
    </Page>
  );
}

function Wired({ topology: { wiring } }: { topology: Read }): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const { at = null, search = '', wrong, routes } = useSearch({ from: '/o/$org/topology' });
  const text = useDeferredValue(search);
  const grouping = groupings.find(({ value }) => value === routes)?.value ?? 'pair';
  const shown = useMemo(() => narrowed(wiring, { text, onlyWrong: wrong === 'true' }), [wiring, text, wrong]);
  const selected = selectedIn(shown, at, grouping);
  const columns = useMemo(() => columnsOf(shown, selected, grouping), [shown, selected, grouping]);
  const set = useCallback(
    (change: Record<string, string | undefined>) =>
      void navigate({ to: '.', search: ((before: object) => ({ ...before, ...change })) as never, replace: true }),
    [navigate],
  );
  const select = useCallback((key: string | null) => set({ at: key ?? undefined }), [set]);
  const open = useCallback(
    (key: string) => {
      const side = sideOf(key);
      const first = routesAt(shown, key)?.[0];
      if (side === 'destinations') void navigate({ to: '/o/$org/targets/$id', params: { org, id: key } });
      else if (side === 'sources') void navigate({ to: '/o/$org/sources', params: { org }, search: { at: key } });
      else if (first?.id === key) void navigate({ to: '/o/$org/routes', params: { org }, search: { at: key } });
      else if (first !== undefined) select(first.id);
    },
    [shown, navigate, org, select],
  );
  const side = selected === null ? 'sources' : sideOf(selected);
  useSelectionKeys({ rows: columns[side], keyOf, selected, select, open });
  const isEmpty = columns.sources.length + columns.routes.length + columns.destinations.length === 0;
  return (
    <>
      <search className="filters" aria-label="Filters">
        <NameSearch value={search} onChange={(value) => set({ search: value === '' ? undefined : value })} />
        <label className="check small">
          <input
            type="checkbox"
            checked={wrong === 'true'}
            onChange={({ target }) => set({ wrong: target.checked ? 'true' : undefined })}
          />
          Only what is wrong
        </label>
        <span className="row small">
          Routes by
          <Segments
            label="Routes by"
            choices={groupings}
            value={grouping}
            onChange={(value) =>
              set({
                routes: value === 'pair' ? undefined : value,
                at: at !== null && belongsTo(at, value) ? at : undefined,
              })
            }
          />
        </span>
        <span className="spacer" />
        <span className="small muted">rates of the last hour</span>
      </search>
      <div className="topo-page">
        {wiring.routes.length === 0 ? (
          <NoRoutes />
        ) : (
          <TopologyAnswer
            wiring={shown}
            isPart={shown !== wiring}
            selected={selected}
            isGone={at !== null && selected === null}
            clear={() => select(null)}
          />
        )}
        {isEmpty ? (
          <Empty title={wrong === 'true' && search === '' ? 'Nothing is wrong' : 'Nothing matches'}>
            <button type="button" className="btn" onClick={() => set({ search: undefined, wrong: undefined })}>
              Drop all filters
            </button>
          </Empty>
        ) : (
          <TopologyMap
            columns={columns}
            totals={{ sources: wiring.sources.length, routes: wiring.routes.length, destinations: wiring.destinations.length }}
            selected={selected}
            select={select}
            open={open}
          />
        )}
        <ul className="legend" aria-label="Legend">
          <li>
            <State state="healthy" word="delivers" />
          </li>
          <li>
            <State state="degraded" word="part of it fails" />
          </li>
          <li>
            <State state="failed" word="all of it fails" />
          </li>
          <li>
            <State state="circuit_open" word="circuit open: events wait (dashed)" />
          </li>
          <li>
            <State state="idle" word="nothing sent" />
          </li>
          <li className="wide-only">
            <kbd>J</kbd> <kbd>K</kbd> <kbd>←</kbd> <kbd>→</kbd>
          </li>
        </ul>
      </div>
    </>
  );
}

/** The address follows later: while the reader is in the field, it holds its own text. */
function NameSearch({ value, onChange }: { value: string; onChange: (value: string) => void }): ReactElement {
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <input
      className="input is-sm"
      type="search"
      aria-label="Search the names"
      placeholder="Search the names"
      value={typed ?? value}
      onChange={({ target }) => {
        setTyped(target.value);
        onChange(target.value);
      }}
      onBlur={() => setTyped(null)}
    />
  );
}

function NoRoutes(): ReactElement {
  const org = useOrganization();
  return (
    <Empty
      title="No route yet"
      command={createCommand(org, '/routes', '{"name": "orders", "sourceId": "shop", "destinationIds": ["billing"]}')}
    >
      <p>Without a route, events of a source are kept and go nowhere. A route leads them to destinations.</p>
    </Empty>
  );
}

function Unwired(): ReactElement {
  const org = useOrganization();
  return (
    <>
      <NoRoutes />
      <div className="blank">
        <p>
          A route needs a source and a destination. Neither is there yet: begin with a{' '}
          <Link to="/o/$org/sources" params={{ org }}>
            source
          </Link>
          .
        </p>
      </div>
    </>
  );
}
