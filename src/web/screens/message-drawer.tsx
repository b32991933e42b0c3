import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { IdLink } from '../app/names.tsx';
import { useOrganization, useRead } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import { shortId } from '../ui/format.ts';
import { Failure } from '../ui/notices.tsx';
import { Attempts, ofMessage } from './attempts.tsx';
import { ExplanationText } from './explanation.tsx';
import { MessageState } from './message-state.tsx';
import { ReplayMessage } from './replay-button.tsx';

/** A message beside its list: its status with the reason, and its attempts. */
export function MessageDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const org = useOrganization();
  const { data } = useRead('GET /outbound-messages/{id}', { path: { id } }, { everyMs: 5000 });
  const message = data?.data;
  const { data: attempts, error, refetch } = useRead('GET /outbound-messages/{id}/attempts', { path: { id } }, { everyMs: 5000 });
  return (
    <Drawer
      label="Selected message"
      onClose={onClose}
      head={
        <>
          {message === undefined ? null : <MessageState status={message.status} isPill />}
          <span className="id">{shortId(id)}</span>
          <span className="spacer" />
          <Link className="btn is-sm" to="/o/$org/messages/$id" params={{ org, id }}>
            Open story
          </Link>
        </>
      }
      foot={<ReplayMessage id={id} />}
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      <section>
        <ExplanationText id={id} />
        {message === undefined ? null : (
          <dl className="kv is-tight">
            <dt>Type</dt>
            <dd>{message.eventType}</dd>
            <dt>Event</dt>
            <dd>
              <IdLink id={message.eventId} />
            </dd>
            <dt>Application</dt>
            <dd>
              <Link to="/o/$org/applications" params={{ org }} search={{ at: message.applicationId }}>
                {message.applicationName ?? shortId(message.applicationId)}
              </Link>
            </dd>
            <dt>Endpoint</dt>
            <dd>
              <Link to="/o/$org/targets/$id" params={{ org, id: message.endpointId }}>
                {message.endpointUrl ?? shortId(message.endpointId)}
              </Link>
            </dd>
          </dl>
        )}
      </section>
      {attempts === undefined ? null : (
        <section>
          <h3>Attempts</h3>
          <Attempts attempts={attempts.data.map(ofMessage).toSorted((a, b) => a.number - b.number)} />
        </section>
      )}
    </Drawer>
  );
}
