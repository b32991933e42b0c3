import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import { EventPayload } from '../app/event-payload.tsx';
import { IdLink } from '../app/names.tsx';
import { useOrganization, useRead } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import { bytes, shortId } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { State } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';

type Event = Answer<'GET /events/{id}'>;

/** An event beside its list: its status, and its payload. */
export function EventDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const org = useOrganization();
  const { data: event, error, refetch } = useRead('GET /events/{id}', { path: { id } });
  return (
    <Drawer
      label="Selected event"
      onClose={onClose}
      head={
        <>
          {event === undefined ? null : <State state={event.status} isPill />}
          <span className="id">{shortId(id)}</span>
          <span className="spacer" />
          <Link className="btn is-sm" to="/o/$org/events/$id" params={{ org, id }}>
            Open story
          </Link>
        </>
      }
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {event === undefined ? (
        error === null ? (
          <Loading what="the event" />
        ) : null
      ) : (
        <>
          <section>
            <dl className="kv is-tight">
              <dt>Source</dt>
              <dd>{event.sourceName}</dd>
              <dt>Received</dt>
              <dd>
                <Clock at={event.receivedAt} />
              </dd>
              <dt>Deliveries</dt>
              <dd>{event.deliveryCount}</dd>
              {event.deliveries.slice(0, 5).map((delivery) => (
                <DeliveryLine key={delivery.id} delivery={delivery} />
              ))}
            </dl>
          </section>
          <section>
            <header>
              <h2>Payload</h2>
              <span className="hint">
                {bytes(event.size)}, {event.contentType}
              </span>
            </header>
            <EventPayload key={id} event={event} />
          </section>
        </>
      )}
    </Drawer>
  );
}

function DeliveryLine({ delivery: { id, routeId, status, lastErrorMessage } }: { delivery: Event['deliveries'][number] }): ReactElement {
  const org = useOrganization();
  return (
    <>
      <dt>
        <Link className="id" to="/o/$org/deliveries/$id" params={{ org, id }} title={id}>
          {shortId(id)}
        </Link>
      </dt>
      <dd>
        <State state={status} /> <IdLink id={routeId} /> <span className="sub">{lastErrorMessage}</span>
      </dd>
    </>
  );
}
