import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useEffect, useRef, useState } from 'react';
import { useCandidates } from '../app/candidates.tsx';
import { useOrganization, useWrite } from '../app/use-api.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { Failure } from '../ui/notices.tsx';
import { Choice, options } from './lab-choices.tsx';
import { type Resent, useSendElsewhere } from './send-elsewhere.ts';

/** Sends a delivery again, to its destination or to another one, and opens the new one. `eventId`: of its event; undefined: not read yet. */
export function ReplayDelivery({ id, eventId }: { id: string; eventId: string | undefined }): ReactElement {
  const own = useWrite('POST /deliveries/{id}/replay');
  const other = useSendElsewhere(id);
  const [to, setTo] = useState('');
  const elsewhere = to === '' || eventId === undefined ? null : { to, eventId };
  const reset = (): void => {
    own.reset();
    other.reset();
    setTo('');
  };
  return (
    <SendAgain
      text={
        elsewhere === null
          ? 'The same payload goes to the destination of the route as it is today, as a delivery of its own. The receiver gets it even if it has it already. It counts as a message of the month.'
          : 'The same payload goes to the chosen destination alone, as a delivery of the same route. The receiver gets it even if it has it already. It counts as a message of the month. This makes a replay of one delivery.'
      }
      isBusy={own.isPending || other.isPending}
      error={elsewhere === null ? (own.error?.message ?? null) : other.error}
      reset={reset}
      send={async () =>
        elsewhere === null ? { deliveryId: (await own.mutateAsync({ path: { id } })).newDeliveryId } : await other.send(elsewhere)
      }
    >
      {eventId === undefined ? undefined : <DestinationChoice value={to} onChange={setTo} />}
    </SendAgain>
  );
}

function DestinationChoice({ value, onChange }: { value: string; onChange: (id: string) => void }): ReactElement {
  const destinations = useCandidates('destinations', value === '' ? [] : [value]);
  return (
    <Choice label="Destination" candidates={destinations} value={value} onChange={onChange}>
      <option value="">That of its route</option>
      {options(destinations.named, value === '' ? undefined : value, (each) => each.id)}
    </Choice>
  );
}

/** Sends a message again, and opens the new one. */
export function ReplayMessage({ id }: { id: string }): ReactElement {
  const { mutateAsync, error, isPending, reset } = useWrite('POST /outbound-messages/{id}/replay');
  return (
    <SendAgain
      text="The same payload goes to the endpoint as it is today, as a message of its own. The receiver gets it even if it has it already. It counts as a message of the month."
      isBusy={isPending}
      error={error?.message ?? null}
      reset={reset}
      send={async () => ({ messageId: (await mutateAsync({ path: { id } })).data.newMessageId })}
    />
  );
}

interface SendAgainProps {
  text: string;
  isBusy: boolean;
  error: string | null;
  reset: () => void;
  send: () => Promise<Resent>;
  /** What can be chosen. */
  children?: ReactElement;
}

function SendAgain({ text, isBusy, error, reset, send, children }: SendAgainProps): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const [isOpen, setOpen] = useState(false);
  const opening = useRef(0);
  useEffect(
    () => () => {
      opening.current += 1;
    },
    [],
  );
  const close = (): void => {
    opening.current += 1;
    setOpen(false);
    reset();
  };
  const sendAndOpen = async (): Promise<void> => {
    const { current } = opening;
    const sent = await send().catch(() => null);
    // Who has closed the dialog stays where they are.
    if (sent === null || opening.current !== current) return;
    close();
    if ('deliveryId' in sent) await navigate({ to: '/o/$org/deliveries/$id', params: { org, id: sent.deliveryId } });
    else if ('messageId' in sent) await navigate({ to: '/o/$org/messages/$id', params: { org, id: sent.messageId } });
    else await navigate({ to: '/o/$org/replays/$id', params: { org, id: sent.replayId } });
  };
  return (
    <>
      <button type="button" className="btn" onClick={() => setOpen(true)}>
        <Icon name="replay" />
        Send again…
      </button>
      <Dialog title="Send it again?" isOpen={isOpen} onClose={close}>
        {children}
        <p>{text}</p>
        {error === null ? null : <Failure message={error} />}
        <div className="btn-row is-end">
          <button type="button" className="btn is-quiet" onClick={close}>
            Cancel
          </button>
          <button type="button" className="btn is-primary" disabled={isBusy} onClick={() => void sendAndOpen()}>
            {isBusy ? 'Sending…' : 'Send again'}
          </button>
        </div>
      </Dialog>
    </>
  );
}
