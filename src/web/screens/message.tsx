import { Link, useParams } from '@tanstack/react-router';
import { Fragment, type ReactElement } from 'react';
import { urlOf } from '../api/client.ts';
import { IdLink } from '../app/names.tsx';
import { useOrganization, useRead } from '../app/use-api.ts';
import { shortId } from '../ui/format.ts';
import { Panel } from '../ui/panel.tsx';
import { shellQuoted } from '../ui/shell-text.ts';
import { ofMessage } from './attempts.tsx';
import { CancelMessage } from './cancel.tsx';
import { MessageState } from './message-state.tsx';
import { OutcomePage } from './outcome-page.tsx';
import { ReplayMessage } from './replay-button.tsx';
import { RetrySchedule } from './retry-schedule.tsx';
import { ProgressFacts } from './story-facts.tsx';

/** Ends of messages that the closed list of `dlqReason` does not have. */
const endsInLastError: ReadonlySet<string | null> = new Set(['cancelled', 'expired', 'disabled', 'gone']);

/** What became of this message to a customer's endpoint? */
export function MessagePage(): ReactElement {
  const org = useOrganization();
  const { id } = useParams({ from: '/o/$org/messages/$id' });
  const { data, error } = useRead('GET /outbound-messages/{id}', { path: { id } }, { everyMs: 2000 });
  const { data: attempts } = useRead('GET /outbound-messages/{id}/attempts', { path: { id } }, { everyMs: 2000 });
  const message = data?.data;
  const event = `${location.origin}${urlOf('/webhook-events/{id}', { path: { id: message?.eventId ?? '' } }, org)}`;
  const payloadCommand = `curl ${shellQuoted(event)} -H "x-api-key: $KEY" | jq -c .data.payload > payload`;
  const url = message?.endpointUrl ?? null;
  const endpointId = message?.endpointId ?? '';
  const endpoint = useRead('GET /webhook-endpoints/{id}', { path: { id: endpointId } }, { isEnabled: message?.waitingFor === 'retry' }).data
    ?.data;
  const delaysMs = endpoint?.retryDelays?.map((seconds) => seconds * 1000) ?? null;
  return (
    <OutcomePage
      id={id}
      title={message?.eventType ?? 'Message'}
      crumb={
        <Link to="/o/$org/messages" params={{ org }}>
          Messages
        </Link>
      }
      attempts={attempts?.data.map(ofMessage).toSorted((a, b) => a.number - b.number)}
      sentTo={url === null ? null : { method: 'POST', url, payloadCommand }}
      error={error}
      actions={
        <Fragment key={id}>
          <CancelMessage id={id} status={message?.status} />
          <ReplayMessage id={id} />
        </Fragment>
      }
      facts={
        message === undefined ? null : (
          <>
            <RetrySchedule
              waiting={{
                ...message,
                nextAttemptAt: message.waitingFor === 'retry' && endpoint !== undefined ? message.nextAttemptAt : null,
              }}
              delaysMs={delaysMs}
            />
            <Panel title="Message">
              <div className="panel-body">
                <dl className="kv">
                  <dt>State</dt>
                  <dd>
                    <MessageState status={message.status} />
                  </dd>
                  <dt>Type</dt>
                  <dd>{message.eventType}</dd>
                  <dt>Application</dt>
                  <dd>
                    <Link to="/o/$org/applications" params={{ org }} search={{ at: message.applicationId }}>
                      {message.applicationName ?? message.applicationId}
                    </Link>
                  </dd>
                  <dt>Endpoint</dt>
                  <dd>
                    <Link to="/o/$org/targets/$id" params={{ org, id: message.endpointId }}>
                      {message.endpointUrl ?? shortId(message.endpointId)}
                    </Link>
                  </dd>
                  <dt>Event</dt>
                  <dd>
                    <IdLink id={message.eventId} />
                  </dd>
                  <ProgressFacts of={message} />
                  {message.dlqReason === null ? null : (
                    <>
                      <dt>Reason</dt>
                      <dd>
                        <code>{endsInLastError.has(message.lastErrorType) ? message.lastErrorType : message.dlqReason}</code>
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
