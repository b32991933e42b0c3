import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useCallback } from 'react';
import { basePath } from '../api/base.ts';
import { AsCode } from '../app/as-code.tsx';
import { severalOf } from '../app/list-filters.ts';
import { ListScreen } from '../app/list-screen.tsx';
import { filteredName } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { type RowOf, useCursorList, useOrganization } from '../app/use-api.ts';
import type { FilterField } from '../ui/filters.tsx';
import { bytes, count, shortId } from '../ui/format.ts';
import { Empty } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { State, stateWord } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';
import { EventDrawer } from './event-drawer.tsx';
import { PlanReplay } from './plan-replay.tsx';

type Event = RowOf<'GET /events'>;

/** The filter of a replay takes so many ids. */
const maxReplayed = 100;

const statuses = ['pending', 'delivered', 'partial', 'failed', 'filtered', 'no_routes'];
const fields: readonly FilterField[] = [
  { name: 'status', word: 'status', isMany: true, choices: statuses.map((value) => ({ value, word: stateWord(value) })) },
  { name: 'sourceId', word: 'source', isMany: true, hint: 'Its id or slug.', show: filteredName },
  { name: 'where', word: 'where', hint: 'A CEL expression, such as event.data.total > 100.' },
  { name: 'from', word: 'from', hint: 'A day or a time, such as 2026-01-31T12:00:00Z.' },
  { name: 'to', word: 'to', hint: 'A day or a time.' },
];
const columns: readonly Column<Event>[] = [
  { title: 'Received', className: 'mono', cell: ({ receivedAt }) => <Clock at={receivedAt} /> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Source', className: 'grow', cell: ({ sourceName }) => sourceName },
  { title: 'Event', className: 'mono p2', cell: ({ id }) => <EventLink id={id} /> },
  { title: 'Content type', className: 'p3 muted', cell: ({ contentType }) => contentType },
  { title: 'Size', className: 'num p2 muted', cell: ({ size }) => bytes(size) },
  { title: 'Deliveries', className: 'num p2', cell: ({ deliveryCount }) => count(deliveryCount) },
];
const keyOf = ({ id }: Event): string => id;
/** Actions on events that reached no route. */
const replayActs = (rows: readonly Event[]): ReactElement =>
  rows.length > maxReplayed ? (
    <span>A replay takes up to {maxReplayed} of them.</span>
  ) : (
    <PlanReplay what="events" filter={{ id: rows.map(keyOf) }} />
  );

/** What came in, and what became of it? */
export function Events(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search = useSearch({ from: '/o/$org/events' });
  const { at: _at, ...filters } = search;
  const query = { ...filters, status: filters.status === undefined ? undefined : (filters.status.split(',') as Event['status'][]) };
  const list = useCursorList('GET /events', query);
  const isUnreached = filters.status?.split(',').every((status: string) => status === 'no_routes' || status === 'filtered') === true;
  const open = useCallback((id: string) => void navigate({ to: '/o/$org/events/$id', params: { org, id } }), [navigate, org]);
  return (
    <Page
      title="Events"
      actions={
        <>
          {isUnreached ? <PlanReplay what="events" filter={severalOf(query, 'sourceId')} isOffered={list.rows.length > 0} /> : null}
          <AsCode name="GET /events" input={{ query }} />
        </>
      }
      isFull
    >
      <ListScreen
        what="events"
        list={list}
        columns={columns}
        keyOf={keyOf}
        fields={fields}
        search={search}
        open={open}
        counts="events"
        views="events"
        drawer={(id, close) => <EventDrawer key={id} id={id} onClose={close} />}
        acts={isUnreached ? replayActs : undefined}
        empty={
          <Empty title="No event yet" command={`curl -d '{"hello":"world"}' ${location.origin}${basePath}/ingest/${org}/SOURCE`}>
            <p>
              An event arrives when a sender calls the address of a{' '}
              <Link to="/o/$org/sources" params={{ org }}>
                source
              </Link>
              .
            </p>
          </Empty>
        }
      />
    </Page>
  );
}

function EventLink({ id }: { id: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link to="/o/$org/events/$id" params={{ org, id }} title={id}>
      {shortId(id)}
    </Link>
  );
}
