import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { EventPayload } from '../app/event-payload.tsx';
import { IdLink } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { useOrganization, useRead } from '../app/use-api.ts';
import { bytes, count, quantity, shortId } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { Panel } from '../ui/panel.tsx';
import { State } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';
import { Advice, ExplanationLine, Steps } from './explanation.tsx';

type Event = Answer<'GET /events/{id}'>;
type Unreached = Event['unreached']['routes'][number];

const reasonWords: Record<Unreached['reason'], string> = {
  condition_false: 'a condition is false',
  no_condition_met: 'no condition is met',
  filter_error: 'the filter failed',
  filtered: 'the filter excluded it',
  schema_failed: 'the payload does not match the schema',
  transform_filtered: 'the transform held it back',
  transform_failed: 'the transform failed',
  route_disabled: 'the route is disabled',
  destination_disabled: 'the destination is disabled',
  destination_suspended: 'the destination is suspended',
  destination_missing: 'the destination is missing',
  transform_missing: 'the transform is missing',
};

/** What became of this event? */
export function EventPage(): ReactElement {
  const org = useOrganization();
  const { id } = useParams({ from: '/o/$org/events/$id' });
  const { data: event, error: unread, refetch } = useRead('GET /events/{id}', { path: { id } }, { everyMs: 2000 });
  const { data: explanation, error: unexplained } = useRead('GET /explain/{id}', { path: { id } }, { everyMs: 2000 });
  // The explanation has details of what is missing.
  const error = unread === null ? null : (unexplained ?? unread);
  return (
    <Page
      title={event === undefined ? `Event ${shortId(id)}` : `${event.sourceName} ${shortId(id)}`}
      crumbs={
        <>
          <Link to="/o/$org/events" params={{ org }}>
            Events
          </Link>
          <span>/</span>
          <span className="mono">{id}</span>
        </>
      }
      actions={<AsCode name="GET /events/{id}" input={{ path: { id } }} />}
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {event === undefined && error === null ? <Loading what="the event" /> : null}
      {explanation === undefined ? null : <ExplanationLine explanation={explanation} question="What became of this event?" />}
      {event === undefined ? null : (
        <div className="cols-side">
          <div className="stack">
            {explanation === undefined ? null : <Steps story={explanation.story} />}
            <Deliveries event={event} />
            <WhyNot event={event} />
          </div>
          <aside className="side-facts" aria-label="Facts">
            <Panel title="Payload" hint={`${bytes(event.size)}, ${event.contentType}`}>
              <div className="panel-body">
                <EventPayload key={id} event={event} />
              </div>
            </Panel>
            <Facts event={event} />
            {explanation === undefined ? null : <Advice advice={explanation.advice} />}
          </aside>
        </div>
      )}
    </Page>
  );
}

function Deliveries({ event: { deliveries, deliveryCount } }: { event: Event }): ReactElement {
  const org = useOrganization();
  const sent = deliveries.filter(({ status }) => status !== 'filtered');
  return (
    <section className="stack">
      <h2>
        Deliveries <span className="muted">{count(sent.length)}</span>
      </h2>
      {sent.length === 0 ? (
        <p className="muted">No route took the event.</p>
      ) : (
        <ul className="routes">
          {sent.map(({ id, routeId, status, lastErrorMessage, attempts, maxAttempts, replayedFrom }) => (
            <li key={id}>
              <Link className="id" to="/o/$org/deliveries/$id" params={{ org, id }}>
                {shortId(id)}
              </Link>
              <span className="why">
                <IdLink id={routeId} /> {lastErrorMessage ?? `${attempts} of ${maxAttempts} attempts`}
                {replayedFrom === null ? null : (
                  <span className="sub">
                    , sent again from <IdLink id={replayedFrom} />
                  </span>
                )}
              </span>
              <State state={status} />
            </li>
          ))}
        </ul>
      )}
      {deliveryCount > deliveries.length ? (
        <p className="muted">
          {count(deliveries.length)} of {count(deliveryCount)} are shown.
        </p>
      ) : null}
    </section>
  );
}

/** Each route that got nothing, with the condition and the value. */
function WhyNot({ event: { unreached } }: { event: Event }): ReactElement | null {
  if (unreached.total === 0) return null;
  return (
    <section className="stack">
      <h2>
        Why not elsewhere <span className="muted">{count(unreached.total)}</span>
      </h2>
      <ul className="routes">
        {unreached.routes.map((route) => (
          <li key={route.routeId}>
            <IdLink id={route.routeId} />
            <span className="why">
              {route.reason === 'condition_false' && route.conditions.length > 0 ? null : reasonWords[route.reason]}
              {route.conditions.map((condition, index) => (
                <span key={condition.index}>
                  {index > 0 ? '; ' : route.reason === 'condition_false' ? '' : ': '}
                  <Condition condition={condition} />
                </span>
              ))}
              {route.error === null ? null : <code>{route.error}</code>}
              {route.changedSince ? <span className="sub"> The route has changed since.</span> : null}
            </span>
            <State state="filtered" word="Held back" />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Condition({ condition: { field, operator, expected, actual } }: { condition: Unreached['conditions'][number] }): ReactElement {
  return (
    <>
      <code>
        {field} {operator} {JSON.stringify(expected)}
      </code>{' '}
      is false: <code>{actual === undefined ? 'missing' : JSON.stringify(actual)}</code>
    </>
  );
}

function Facts({ event }: { event: Event }): ReactElement {
  return (
    <Panel title="Event">
      <div className="panel-body">
        <dl className="kv">
          <dt>Source</dt>
          <dd>
            <IdLink id={event.sourceId} />
          </dd>
          <dt>State</dt>
          <dd>
            <State state={event.status} />
          </dd>
          <dt>Received</dt>
          <dd>
            <Clock at={event.receivedAt} />
          </dd>
          <dt>Method</dt>
          <dd>{event.method}</dd>
          <dt>Signature</dt>
          <dd>{event.signatureValid === null ? 'not checked' : event.signatureValid ? 'valid' : 'invalid'}</dd>
          {event.deliverAt === null ? null : (
            <>
              <dt>Scheduled for</dt>
              <dd>
                <Clock at={event.deliverAt} />
              </dd>
            </>
          )}
          {event.duplicateOf === null ? null : (
            <>
              <dt>Duplicate of</dt>
              <dd>
                <IdLink id={event.duplicateOf} />
              </dd>
            </>
          )}
        </dl>
        <details>
          <summary>{quantity(Object.keys(event.headers).length, 'header')}</summary>
          <dl className="kv is-tight mono">
            {Object.entries(event.headers).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </details>
      </div>
    </Panel>
  );
}
