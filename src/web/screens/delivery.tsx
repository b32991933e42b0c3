import { Link, useParams } from '@tanstack/react-router';
import { Fragment, type ReactElement } from 'react';
import { urlOf } from '../api/client.ts';
import { IdLink } from '../app/names.tsx';
import { useOrganization, useRead } from '../app/use-api.ts';
import { Panel } from '../ui/panel.tsx';
import { shellQuoted } from '../ui/shell-text.ts';
import { State } from '../ui/state.tsx';
import { ofDelivery } from './attempts.tsx';
import { CancelDelivery } from './cancel.tsx';
import { OutcomePage } from './outcome-page.tsx';
import { ReplayDelivery } from './replay-button.tsx';
import { RetrySchedule } from './retry-schedule.tsx';
import { delaysOf } from './retry-times.ts';
import { DeliveryEnds, ProgressFacts } from './story-facts.tsx';

/** What became of this delivery? */
export function DeliveryPage(): ReactElement {
  const org = useOrganization();
  const { id } = useParams({ from: '/o/$org/deliveries/$id' });
  const { data: delivery, error } = useRead('GET /deliveries/{id}', { path: { id } }, { everyMs: 2000 });
  const destinationId = delivery?.destinationId ?? null;
  const target = useRead('GET /destinations/{id}', { path: { id: destinationId ?? '' } }, { isEnabled: destinationId !== null }).data;
  const payload = `${location.origin}${urlOf('/events/{id}/payload', { path: { id: delivery?.eventId ?? '' } }, org)}`;
  const payloadCommand = `curl ${shellQuoted(payload)} -H "x-api-key: $KEY" -o payload`;
  return (
    <OutcomePage
      id={id}
      title="Delivery"
      crumb={
        <Link to="/o/$org/deliveries" params={{ org }}>
          Deliveries
        </Link>
      }
      attempts={delivery?.attemptDetails.map(ofDelivery)}
      sentTo={target?.type === 'http' && target.method !== undefined ? { method: target.method, url: target.url, payloadCommand } : null}
      error={error}
      actions={
        <Fragment key={id}>
          <CancelDelivery id={id} status={delivery?.status} />
          <ReplayDelivery id={id} eventId={delivery?.eventId} />
        </Fragment>
      }
      facts={
        delivery === undefined ? null : (
          <>
            <RetrySchedule
              waiting={{
                ...delivery,
                nextAttemptAt: delivery.waitingFor === 'retry' && target !== undefined ? delivery.nextAttemptAt : null,
              }}
              delaysMs={target === undefined ? null : delaysOf(target.retryPolicy)}
            />
            <Panel title="Delivery">
              <div className="panel-body">
                <dl className="kv">
                  <dt>State</dt>
                  <dd>
                    <State state={delivery.status} />
                  </dd>
                  <DeliveryEnds of={delivery} />
                  <ProgressFacts of={delivery} />
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
            </Panel>
          </>
        )
      }
    />
  );
}
