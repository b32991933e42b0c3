import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, use, useCallback, useMemo } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { severalOf } from '../app/list-filters.ts';
import { ListScreen } from '../app/list-screen.tsx';
import { filteredName, useNames } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { type RowOf, useCursorList, useOrganization, useRead } from '../app/use-api.ts';
import type { Mark } from '../ui/charts.tsx';
import type { FilterField } from '../ui/filters.tsx';
import { shortId } from '../ui/format.ts';
import { Empty } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { Code, State, stateWord } from '../ui/state.tsx';
import { Clock, Countdown, minuteLabel, ZoneContext } from '../ui/time.tsx';
import { DeliveryActs } from './bulk-acts.tsx';
import { CancelDeliveries } from './cancel.tsx';
import { DeliveryDrawer } from './delivery-drawer.tsx';
import { useCircuitsOf } from './target-data.ts';

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
  { name: 'status', word: 'status', isMany: true, choices: statuses.map((value) => ({ value, word: stateWord(value) })) },
  { name: 'routeId', word: 'route', isMany: true, hint: 'Its id or slug.', show: filteredName },
  { name: 'destinationId', word: 'destination', isMany: true, hint: 'Its id or slug.', show: filteredName },
  { name: 'errorType', word: 'error', isMany: true, hint: 'Such as http_error, timeout, dns, tls or network.' },
  { name: 'responseStatus', word: 'code', isMany: true, hint: 'Such as 503, or a class such as 5xx.' },
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
      { title: 'Delivery', className: 'mono p2', cell: ({ id }) => <DeliveryLink id={id} /> },
      {
        title: 'Destination',
        cell: ({ destinationId }) =>
          destinationId === null ? (
            <span className="dim">–</span>
          ) : (
            <span title={destinationId}>{names.get(destinationId) ?? shortId(destinationId)}</span>
          ),
      },
      { title: 'Last answer', className: 'grow muted p2', cell: ({ lastErrorMessage }) => lastErrorMessage },
      { title: 'Attempts', className: 'num p3', cell: ({ attempts, maxAttempts }) => `${attempts} of ${maxAttempts}` },
      { title: 'Code', className: 'num p2', cell: ({ lastResponseStatus }) => <Code status={lastResponseStatus} /> },
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

/** What was sent where, and what is its status? */
export function Deliveries(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search = useSearch({ from: '/o/$org/deliveries' });
  const { at: _at, status, errorType, responseStatus, ...others } = search;
  const filter = { ...others, errorType: errorType?.split(','), responseStatus: responseStatus?.split(',') };
  const query = { ...filter, status: status?.split(',') as Delivery['status'][] | undefined };
  const list = useCursorList('GET /deliveries', query);
  const columns = useDeliveryColumns();
  const marks = useOpenings(others);
  const open = useCallback((id: string) => void navigate({ to: '/o/$org/deliveries/$id', params: { org, id } }), [navigate, org]);
  return (
    <Page
      title="Deliveries"
      actions={
        <>
          <CancelDeliveries
            filter={severalOf(filter, 'routeId', 'destinationId')}
            status={status?.split(',')}
            isOffered={list.rows.length > 0}
          />
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
        marks={marks}
        views="deliveries"
        drawer={(id, close) => <DeliveryDrawer key={id} id={id} onClose={close} />}
        acts={(rows, clear) => <DeliveryActs rows={rows} clear={clear} />}
        empty={
          <Empty title="No delivery yet">
            <p>
              A delivery is made when a{' '}
              <Link to="/o/$org/routes" params={{ org }}>
                route
              </Link>{' '}
              takes an event.
            </p>
          </Empty>
        }
      />
    </Page>
  );
}

const noMarks: readonly Mark[] = [];

/** When the circuits opened that are open now, of the one destination or of the routes of the filter. Of past ones the series has the steps alone. */
function useOpenings({ destinationId, routeId }: { destinationId?: string | undefined; routeId?: string | undefined }): readonly Mark[] {
  const zone = use(ZoneContext);
  const names = useNames();
  const destinations = destinationId?.split(',');
  const isOfDestination = destinations?.length === 1 && routeId === undefined;
  const routes = useRead('GET /routes', { query: { destinationId, pageSize: 100 } }, { isEnabled: isOfDestination });
  const ofRoutes = routeId?.split(',').map((id) => ({ id, name: '' })) ?? [];
  const { circuits } = useCircuitsOf(isOfDestination ? (routes.data?.data ?? []) : ofRoutes);
  const open = circuits.filter(
    ({ state, destinationId: id }) => state !== 'closed' && (destinations === undefined || destinations.includes(id)),
  );
  const marks = open.flatMap(({ routeId: route, destinationId: id, openedAt }): Mark[] => {
    if (openedAt === null) return [];
    const [from, to] = [names.get(route) ?? shortId(route), names.get(id) ?? shortId(id)];
    return [
      {
        atMs: Date.parse(openedAt),
        word: `The circuit from ${from} to ${to} opened at ${minuteLabel(openedAt, zone)}, and is not closed yet.`,
      },
    ];
  });
  const key = JSON.stringify(marks);
  // The histogram is rendered again only for other marks.
  return useMemo((): readonly Mark[] => (key === '[]' ? noMarks : JSON.parse(key)), [key]);
}

function DeliveryLink({ id }: { id: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link to="/o/$org/deliveries/$id" params={{ org, id }} title={id}>
      {shortId(id)}
    </Link>
  );
}
