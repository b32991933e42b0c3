import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { useOrganization, useRead } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import { shortId } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { State } from '../ui/state.tsx';
import { Attempts, ofDelivery } from './attempts.tsx';
import { CancelDelivery } from './cancel.tsx';
import { ExplanationText } from './explanation.tsx';
import { ReplayDelivery } from './replay-button.tsx';
import { DeliveryEnds } from './story-facts.tsx';

/** A delivery beside its list: its status with the reason, and its attempts. */
export function DeliveryDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const org = useOrganization();
  const { data: delivery, error, refetch } = useRead('GET /deliveries/{id}', { path: { id } }, { everyMs: 5000 });
  return (
    <Drawer
      label="Selected delivery"
      onClose={onClose}
      head={
        <>
          {delivery === undefined ? null : <State state={delivery.status} isPill />}
          <span className="id">{shortId(id)}</span>
          <span className="spacer" />
          <Link className="btn is-sm" to="/o/$org/deliveries/$id" params={{ org, id }}>
            Open story
          </Link>
        </>
      }
      foot={
        <>
          <CancelDelivery id={id} status={delivery?.status} />
          <ReplayDelivery id={id} eventId={delivery?.eventId} />
        </>
      }
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {delivery === undefined ? (
        error === null ? (
          <Loading what="the delivery" />
        ) : null
      ) : (
        <>
          <section>
            <ExplanationText id={id} />
            <dl className="kv is-tight">
              <DeliveryEnds of={delivery} />
            </dl>
          </section>
          <section>
            <h3>Attempts</h3>
            <Attempts attempts={delivery.attemptDetails.map(ofDelivery)} />
          </section>
        </>
      )}
    </Drawer>
  );
}
