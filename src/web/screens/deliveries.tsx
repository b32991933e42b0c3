import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useCallback, useMemo } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { ListScreen } from '../app/list-screen.tsx';
import { useNames } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { type RowOf, useCursorList, useOrganization } from '../app/use-api.ts';
import type { FilterField } from '../ui/filters.tsx';
import { shortId } from '../ui/format.ts';
import { Empty } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { Code, State, stateWord } from '../ui/state.tsx';
import { Clock, Countdown } from '../ui/time.tsx';
import { CancelDeliveries } from './cancel.tsx';
import { DeliveryDrawer } from './delivery-drawer.tsx';

type Delivery = RowOf<'GET /deliveries'>;

const statuses = [
  'pending',
  'processing',
  'retrying',
  'circuit_open',
  'delivered',
  'failed',
  'filtered',
  'schema_failed',
  'transform_failed',
  'dlq',
];
export const deliveryFields: readonly FilterField[] = [
  { name: 'status', word: 'status', choices: statuses.map((value) => ({ value, word: stateWord(value) })) },
  { name: 'routeId', word: 'route', hint: 'Its id or slug.' },
  { name: 'destinationId', word: 'destination', hint: 'Its id or slug.' },
  { name: 'errorType', word: 'error', hint: 'Such as http_error, timeout, dns, tls or network.' },
  { name: 'responseStatus', word: 'code', hint: 'Such as 503, or a class such as 5xx.' },
  { name: 'where', word: 'where', hint: 'A CEL expression, such as event.data.total > 100.' },
  { name: 'from', word: 'from', hint: 'A day or a time, such as 2026-01-31T12:00:00Z.' },
  { name: 'to', word: 'to', hint: 'A day or a time.' },
  { name: 'failedFrom', word: 'failed from', hint: 'A day or a time.' },
  { name: 'failedTo', word: 'failed to', hint: 'A day or a time.' },
];

export function useDeliveryColumns(): readonly Column<Delivery>[] {
  const names = useNames();
  return useMemo(
    () => [
      { title: 'Created', className: 'mono', cell: ({ createdAt }) => <Clock at={createdAt} /> },
      { title: 'State', cell: ({ status }) => <State state={status} /> },
      { title: 'Delivery', className: 'mono', cell: ({ id }) => <DeliveryLink id={id} /> },
      {
        title: 'Destination',
        cell: ({ destinationId }) =>
          destinationId === null ? (
            <span className="dim">–</span>
          ) : (
            <span title={destinationId}>{names.get(destinationId) ?? shortId(destinationId)}</span>
          ),
      },
      { title: 'Last answer', className: 'grow muted', cell: ({ lastErrorMessage }) => lastErrorMessage },
      { title: 'Attempts', className: 'num p2', cell: ({ attempts, maxAttempts }) => `${attempts} of ${maxAttempts}` },
      { title: 'Code', className: 'num', cell: ({ lastResponseStatus }) => <Code status={lastResponseStatus} /> },
      {
        title: 'Next',
        className: 'num p3',
        cell: ({ nextAttemptAt }) => (nextAttemptAt === null ? <span className="dim">–</span> : <Countdown at={nextAttemptAt} />),
      },
    ],
    [names],
  );
}

const keyOf = ({ id }: Delivery): string => id;

/** What was sent where, and how does it stand? */
export function Deliveries(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search = useSearch({ from: '/o/$org/deliveries' });
  const { at: _at, status, errorType, responseStatus, ...others } = search;
  const filter = { ...others, errorType: errorType?.split(','), responseStatus: responseStatus?.split(',') };
  const query = { ...filter, status: status?.split(',') as Delivery['status'][] | undefined };
  const list = useCursorList('GET /deliveries', query);
  const columns = useDeliveryColumns();
  const open = useCallback((id: string) => void navigate({ to: '/o/$org/deliveries/$id', params: { org, id } }), [navigate, org]);
  return (
    <Page
      title="Deliveries"
      actions={
        <>
          {list.rows.length === 0 ? null : <CancelDeliveries filter={filter} status={status?.split(',')} />}
          <AsCode name="GET /deliveries" input={{ query }} />
        </>
      }
      isFull
    >
      <ListScreen
        what="deliveries"
        list={list}
        columns={columns}
        keyOf={keyOf}
        fields={deliveryFields}
        search={search}
        open={open}
        counts="deliveries"
        views="deliveries"
        drawer={(id, close) => <DeliveryDrawer key={id} id={id} onClose={close} />}
        empty={
          <Empty title="No delivery yet">
            <p>A delivery is made when a route takes an event. The routes screen shows which routes there are.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function DeliveryLink({ id }: { id: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link to="/o/$org/deliveries/$id" params={{ org, id }} title={id}>
      {shortId(id)}
    </Link>
  );
}
