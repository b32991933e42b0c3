import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { IdLink } from '../app/names.tsx';
import { useOrganization, useRead } from '../app/use-api.ts';
import { shortId } from '../ui/format.ts';
import { State } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';
import { ofDelivery } from './attempts.tsx';
import { CancelDelivery, CancellationFacts } from './cancel.tsx';
import { ReplayDelivery } from './replay-button.tsx';
import { StoryPage } from './story-page.tsx';

/** What became of this delivery? */
export function DeliveryStory(): ReactElement {
  const org = useOrganization();
  const { id } = useParams({ from: '/o/$org/deliveries/$id' });
  const { data: delivery, error } = useRead('GET /deliveries/{id}', { path: { id } }, { everyMs: 2000 });
  return (
    <StoryPage
      id={id}
      title="Delivery"
      crumb={
        <Link to="/o/$org/deliveries" params={{ org }}>
          Deliveries
        </Link>
      }
      attempts={delivery?.attemptDetails.map(ofDelivery)}
      error={error}
      actions={
        <>
          <CancelDelivery id={id} status={delivery?.status} />
          <ReplayDelivery id={id} />
        </>
      }
      facts={
        delivery === undefined ? null : (
          <section className="panel">
            <header className="panel-head">
              <h2>Delivery</h2>
            </header>
            <div className="panel-body">
              <dl className="kv">
                <dt>State</dt>
                <dd>
                  <State state={delivery.status} />
                </dd>
                <dt>Event</dt>
                <dd>
                  <Link className="id" to="/o/$org/events/$id" params={{ org, id: delivery.eventId }}>
                    {shortId(delivery.eventId)}
                  </Link>
                </dd>
                <dt>Route</dt>
                <dd>
                  <IdLink id={delivery.routeId} />
                </dd>
                {delivery.destinationId === null ? null : (
                  <>
                    <dt>Destination</dt>
                    <dd>
                      <IdLink id={delivery.destinationId} />
                    </dd>
                  </>
                )}
                <dt>Attempts</dt>
                <dd>
                  {delivery.attempts} of {delivery.maxAttempts}
                </dd>
                <dt>Created</dt>
                <dd>
                  <Clock at={delivery.createdAt} />
                </dd>
                {delivery.expiresAt === null ? null : (
                  <>
                    <dt>Expires</dt>
                    <dd>
                      <Clock at={delivery.expiresAt} />
                    </dd>
                  </>
                )}
                <CancellationFacts made={delivery.cancellation} />
                {delivery.deadLetterReason === null ? null : (
                  <>
                    <dt>Reason</dt>
                    <dd>
                      <code>{delivery.deadLetterReason}</code>
                    </dd>
                  </>
                )}
                {delivery.replayedFrom === null ? null : (
                  <>
                    <dt>Sent again from</dt>
                    <dd>
                      <IdLink id={delivery.replayedFrom} />
                    </dd>
                  </>
                )}
              </dl>
            </div>
          </section>
        )
      }
    />
  );
}
