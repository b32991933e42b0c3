import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { useOrganization, useWrite } from '../app/use-api.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { Failure } from '../ui/notices.tsx';

/** Sends a delivery again, and opens the new one. */
export function ReplayDelivery({ id }: { id: string }): ReactElement {
  const { mutateAsync, error, isPending, reset } = useWrite('POST /deliveries/{id}/replay');
  return (
    <SendAgain
      text="The same payload goes to the destination of the route as it is today, as a delivery of its own. The receiver gets it even if it has it already. It counts as a message of the month."
      isBusy={isPending}
      error={error?.message ?? null}
      reset={reset}
      send={async () => (await mutateAsync({ path: { id } })).newDeliveryId}
      to="deliveries"
    />
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
      send={async () => (await mutateAsync({ path: { id } })).data.newMessageId}
      to="messages"
    />
  );
}

interface SendAgainProps {
  text: string;
  isBusy: boolean;
  error: string | null;
  reset: () => void;
  send: () => Promise<string>;
  to: 'deliveries' | 'messages';
}

function SendAgain({ text, isBusy, error, reset, send, to }: SendAgainProps): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const [isOpen, setOpen] = useState(false);
  const close = (): void => {
    setOpen(false);
    reset();
  };
  const sendAndOpen = async (): Promise<void> => {
    const id = await send().catch(() => null);
    if (id === null) return;
    close();
    await navigate({ to: to === 'deliveries' ? '/o/$org/deliveries/$id' : '/o/$org/messages/$id', params: { org, id } });
  };
  return (
    <>
      <button type="button" className="btn" onClick={() => setOpen(true)}>
        <Icon name="replay" />
        Send again…
      </button>
      <Dialog title="Send it again?" isOpen={isOpen} onClose={close}>
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
