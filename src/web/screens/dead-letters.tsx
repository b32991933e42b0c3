import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useCallback, useMemo } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { severalOf } from '../app/list-filters.ts';
import { ListScreen } from '../app/list-screen.tsx';
import { IdLink } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { useCursorList, useOrganization, useRead } from '../app/use-api.ts';
import { count } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Empty } from '../ui/notices.tsx';
import { DeliveryActs, MessageActs } from './bulk-acts.tsx';
import { deliveryFields, useDeliveryColumns } from './deliveries.tsx';
import { DeliveryDrawer } from './delivery-drawer.tsx';
import { MessageDrawer } from './message-drawer.tsx';
import { messageColumns, messageFields } from './messages.tsx';
import { PlanReplay } from './plan-replay.tsx';

const fieldsOfDeliveries = deliveryFields.filter(({ name }) => name !== 'status');
const fieldsOfMessages = messageFields.filter(({ name }) => name !== 'status');
const keyOf = ({ id }: { id: string }): string => id;
const reasonWords: Record<string, string> = {
  max_retries_exceeded: 'their attempts failed',
  circuit_breaker_exhausted: 'their circuit stayed open for too long',
  queue_limit_exceeded: 'the queue of their destination was full',
  route_deleted: 'their route was deleted',
  destination_not_found: 'their destination no longer exists',
  endpoint_not_found: 'their endpoint no longer exists',
  expired: 'they expired',
  payload_not_found: 'their payload was no longer stored',
  secret_decryption_failed: 'a secret that they need could not be decrypted',
  cancelled: 'they were cancelled',
};

/** What do I have to recover? */
export function DeadLetters(): ReactElement {
  const { kind = 'deliveries' } = useSearch({ from: '/o/$org/dead-letters' });
  return kind === 'messages' ? <OfMessages /> : <OfDeliveries />;
}

/** Filters and the selected row, which both lists have. */
function useListSearch() {
  const search = useSearch({ from: '/o/$org/dead-letters' });
  return useMemo(() => {
    const { kind: _kind, ...others } = search;
    return others;
  }, [search]);
}

function OfDeliveries(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search = useListSearch();
  const {
    at: _at,
    status: _status,
    errorType,
    responseStatus,
    applicationId: _app,
    endpointId: _endpoint,
    eventType: _type,
    ...others
  } = search;
  const filter = { ...others, errorType: errorType?.split(','), responseStatus: responseStatus?.split(',') };
  const query = { ...filter, status: ['dlq' as const] };
  const list = useCursorList('GET /deliveries', query);
  const columns = useDeliveryColumns();
  const { data: stats } = useRead('GET /deliveries/dead-letter-stats', {}, { everyMs: 5000 });
  const open = useCallback((id: string) => void navigate({ to: '/o/$org/deliveries/$id', params: { org, id } }), [navigate, org]);
  return (
    <Page
      title="Dead letters"
      actions={
        <>
          <Kinds />
          <PlanReplay what="deliveries" filter={severalOf(query, 'routeId', 'destinationId')} isOffered={list.rows.length > 0} />
          <AsCode name="GET /deliveries" input={{ query }} />
        </>
      }
      isFull
    >
      <ListScreen
        what="dead letters"
        list={list}
        columns={columns}
        keyOf={keyOf}
        fields={fieldsOfDeliveries}
        search={search}
        open={open}
        counts="dead deliveries"
        views="dead-letters"
        drawer={(id, close) => <DeliveryDrawer key={id} id={id} onClose={close} />}
        acts={(rows, clear) => <DeliveryActs rows={rows} clear={clear} />}
        head={
          stats === undefined || stats.total === 0 ? null : (
            <Answer total={stats.total} byReason={stats.byReason} targets={stats.topFailingDestinations.slice(0, 3)} />
          )
        }
        empty={
          <Empty title="No dead letter">
            <p>What cannot be delivered after all attempts is kept here, and can be sent again.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function OfMessages(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search = useListSearch();
  const { at: _at, status: _status, errorType, responseStatus, routeId: _route, destinationId: _destination, ...others } = search;
  const query = { ...others, errorType: errorType?.split(','), responseStatus: responseStatus?.split(','), status: ['dlq' as const] };
  const list = useCursorList('GET /outbound-messages', query);
  const open = useCallback((id: string) => void navigate({ to: '/o/$org/messages/$id', params: { org, id } }), [navigate, org]);
  return (
    <Page
      title="Dead letters"
      actions={
        <>
          <Kinds />
          <PlanReplay
            what="messages"
            filter={severalOf(query, 'eventType', 'applicationId', 'endpointId')}
            isOffered={list.rows.length > 0}
          />
          <AsCode name="GET /outbound-messages" input={{ query }} />
        </>
      }
      isFull
    >
      <ListScreen
        what="dead letters"
        list={list}
        columns={messageColumns}
        keyOf={keyOf}
        fields={fieldsOfMessages}
        search={search}
        open={open}
        counts="dead messages"
        views="dead-letters"
        drawer={(id, close) => <MessageDrawer key={id} id={id} onClose={close} />}
        acts={(rows, clear) => <MessageActs rows={rows} clear={clear} />}
        empty={
          <Empty title="No dead letter">
            <p>What customers do not take after all attempts is kept here, and can be sent again.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function Kinds(): ReactElement {
  const org = useOrganization();
  const { kind = 'deliveries' } = useSearch({ from: '/o/$org/dead-letters' });
  const navigate = useNavigate();
  return (
    <span className="segments" role="group" aria-label="What to list">
      {(['deliveries', 'messages'] as const).map((each) => (
        <button
          key={each}
          type="button"
          aria-pressed={kind === each}
          onClick={() => void navigate({ to: '/o/$org/dead-letters', params: { org }, search: { kind: each } })}
        >
          {each === 'deliveries' ? 'Deliveries' : 'Messages'}
        </button>
      ))}
    </span>
  );
}

interface AnswerProps {
  total: number;
  byReason: Record<string, number>;
  targets: readonly { destinationId: string; count: number }[];
}

function Answer({ total, byReason, targets }: AnswerProps): ReactElement {
  const org = useOrganization();
  return (
    <section className="answer is-bad" aria-label="What do I have to recover?">
      <Icon name="dead" size={20} />
      <div>
        <p>
          {count(total)} {total === 1 ? 'delivery is a dead letter' : 'deliveries are dead letters'}
          {targets.length === 0 ? null : targets[0]?.count === total ? (total === 1 ? ', to ' : ', all of them to ') : ', most of them to '}
          {targets.map(({ destinationId, count: each }, index) => (
            <span key={destinationId}>
              {index === 0 ? '' : ', '}
              <IdLink id={destinationId} /> (
              <Link to="/o/$org/dead-letters" params={{ org }} search={{ destinationId }}>
                {count(each)}
              </Link>
              )
            </span>
          ))}
          .
        </p>
        <p>
          {Object.entries(byReason)
            .map(([reason, each]) => `${each === total ? 'Given up' : count(each)} because ${reasonWords[reason] ?? reason}`)
            .join('; ')}
          .
        </p>
      </div>
    </section>
  );
}
