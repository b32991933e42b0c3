import { Link } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, use, useId, useState } from 'react';
import type { Answer } from '../api/client.ts';
import { useCandidates } from '../app/candidates.tsx';
import { IdLink } from '../app/names.tsx';
import { Refusal } from '../app/resource-acts.tsx';
import { useOrganization, useRead, useWrite } from '../app/use-api.ts';
import { Dialog } from '../ui/dialog.tsx';
import { count, quantity } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Failure } from '../ui/notices.tsx';
import { Clock, ZoneContext } from '../ui/time.tsx';
import { CancelMessages } from './cancel.tsx';
import { DeliveryTimeFields } from './delivery-time-fields.tsx';
import { type EventDraft, eventToSend } from './event-to-send.ts';
import { Choice, options } from './lab-choices.tsx';
import { deliveredNow } from './send-time.ts';

type SentEvent = Answer<'POST /send-event'>['data'];

const endpointsShown = 5;

/** Sends an event to the endpoints of customers, at once or later. What is typed stays while the dialog is closed. */
export function SendEvent({
  applicationId = '',
  eventTypeId = '',
  isSmall = false,
}: {
  /** Initial values of the form. */
  applicationId?: string;
  eventTypeId?: string;
  isSmall?: boolean;
}): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const [draft, setDraft] = useState<EventDraft>({ applicationId, eventTypeId, payload: null, when: deliveredNow, expiry: '' });
  const [sent, setSent] = useState<SentEvent | null>(null);
  // It outlives the form: what is sent again after an answer that was lost is the same event.
  const send = useWrite('POST /send-event');
  const close = (): void => {
    setOpen(false);
    setSent(null);
  };
  return (
    <>
      <button type="button" className={isSmall ? 'btn is-sm' : 'btn'} onClick={() => setOpen(true)}>
        <Icon name="send" />
        Send event…
      </button>
      <Dialog title={sent === null ? 'Send an event' : 'The event is stored'} isOpen={isOpen} needsAct={send.isPending} onClose={close}>
        {sent === null ? (
          <SendForm send={send} draft={draft} onChange={setDraft} onSent={setSent} close={close} />
        ) : (
          <Sent sent={sent} again={() => setSent(null)} close={close} />
        )}
      </Dialog>
    </>
  );
}

interface SendFormProps {
  send: ReturnType<typeof useWrite<'POST /send-event'>>;
  draft: EventDraft;
  onChange: (draft: EventDraft) => void;
  onSent: (sent: SentEvent) => void;
  close: () => void;
}

function SendForm({ send, draft, onChange, onSent, close }: SendFormProps): ReactElement {
  const id = useId();
  const zone = use(ZoneContext);
  const { eventTypeId, applicationId } = draft;
  const types = useCandidates('event-types', eventTypeId === '' ? [] : [eventTypeId]);
  const applications = useCandidates('webhook-applications', applicationId === '' ? [] : [applicationId]);
  const type = useRead('GET /event-types/{id}', { path: { id: eventTypeId } }, { isEnabled: eventTypeId !== '' });
  const [problem, setProblem] = useState<string | null>(null);
  const payload = draft.payload ?? type.data?.data.examplePayload ?? '{}';
  const change = (next: Partial<EventDraft>): void => {
    setProblem(null);
    onChange({ ...draft, ...next });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const made = eventToSend({ draft, eventType: type.data?.data.name, payload, zone });
    setProblem('problem' in made ? made.problem : null);
    if ('body' in made) send.mutate({ bodyText: made.body }, { onSuccess: ({ data }) => onSent(data) });
  };
  return (
    <form className="form" onSubmit={submit} noValidate>
      <div className="fields">
        <Choice label="Event type" candidates={types} value={eventTypeId} onChange={(next) => change({ eventTypeId: next })}>
          <option value="">Choose…</option>
          {options(types.named, eventTypeId === '' ? undefined : eventTypeId, (each) => each.id)}
        </Choice>
        <Choice label="Application" candidates={applications} value={applicationId} onChange={(next) => change({ applicationId: next })}>
          <option value="">All applications</option>
          {options(applications.named, applicationId === '' ? undefined : applicationId, (each) => each.id)}
        </Choice>
      </div>
      <div className="field">
        <label htmlFor={`${id}-payload`}>Payload</label>
        <textarea
          className="input is-mono"
          id={`${id}-payload`}
          rows={7}
          spellCheck={false}
          value={payload}
          onChange={({ target }) => change({ payload: target.value })}
        />
        <span className="help">JSON. Endpoints get it as it is typed.</span>
      </div>
      <DeliveryTimeFields value={draft.when} onChange={(when) => change({ when })} />
      <div className="field">
        <label htmlFor={`${id}-expiry`}>Give up after seconds</label>
        <input
          className="input"
          id={`${id}-expiry`}
          type="text"
          inputMode="numeric"
          autoComplete="off"
          placeholder="As set at the event type and the endpoints"
          value={draft.expiry}
          onChange={({ target }) => change({ expiry: target.value })}
        />
      </div>
      {problem === null ? null : <Failure message={problem} />}
      {type.error === null ? null : <Failure message={type.error.message} retry={() => void type.refetch()} />}
      <Refusal error={send.error} />
      <Complaints details={send.error?.details ?? {}} />
      <div className="btn-row is-end">
        <button type="button" className="btn is-quiet" disabled={send.isPending} onClick={close}>
          Close
        </button>
        <button type="submit" className="btn is-primary" disabled={send.isPending || type.isLoading}>
          {send.isPending ? 'Sending…' : draft.when.kind === 'now' ? 'Send event' : 'Schedule event'}
        </button>
      </div>
    </form>
  );
}

/** Errors of the API for each field. */
function Complaints({ details }: { details: Readonly<Record<string, readonly string[]>> }): ReactElement | null {
  const all = Object.entries(details).flatMap(([field, texts]) => texts.map((text) => `${field} ${text}`));
  if (all.length === 0) return null;
  return (
    <ul className="small">
      {all.map((each) => (
        <li key={each}>{each}</li>
      ))}
    </ul>
  );
}

/** What became of it, and a way to take it back. */
function Sent({ sent, again, close }: { sent: SentEvent; again: () => void; close: () => void }): ReactElement {
  const org = useOrganization();
  const { eventId, messagesQueued, endpoints } = sent;
  const { data } = useRead('GET /webhook-events/{id}', { path: { id: eventId } });
  const deliverAt = data?.data.deliverAt ?? null;
  const shown = endpoints.slice(0, endpointsShown);
  return (
    <>
      <p role="status">
        {messagesQueued === 0
          ? 'No subscription matches it, so nothing is sent. Its page shows why.'
          : `${quantity(messagesQueued, 'message')} ${messagesQueued === 1 ? 'is' : 'are'} queued.`}
      </p>
      <dl className="kv">
        <dt>Event</dt>
        <dd>
          <IdLink id={eventId} />
        </dd>
        {deliverAt === null ? null : (
          <>
            <dt>Scheduled for</dt>
            <dd>
              <Clock at={deliverAt} />
            </dd>
          </>
        )}
        {shown.map(({ id, url }) => (
          <div key={id}>
            <dt>Endpoint</dt>
            <dd>
              <Link to="/o/$org/targets/$id" params={{ org, id }}>
                {url}
              </Link>
            </dd>
          </div>
        ))}
      </dl>
      {messagesQueued > shown.length ? <p className="small muted">And {count(messagesQueued - shown.length)} more.</p> : null}
      <div className="btn-row is-end">
        {messagesQueued === 0 ? null : <CancelMessages filter={{ eventId }} status={undefined} />}
        <button type="button" className="btn" onClick={again}>
          Send another
        </button>
        <button type="button" className="btn is-primary" onClick={close}>
          Close
        </button>
      </div>
    </>
  );
}
