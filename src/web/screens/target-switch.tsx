import type { ReactElement } from 'react';
import { ConfirmedAct, disabledChange, Refusal, SwitchButton, switchWrite, type WriteState } from '../app/resource-acts.tsx';
import { useWrite } from '../app/use-api.ts';
import { Dialog } from '../ui/dialog.tsx';

/** Disables a destination, whose messages wait then, or enables it. */
export function DestinationSwitch({ id, name, enabled }: { id: string; name: string; enabled: boolean }): ReactElement {
  const change = useWrite('PATCH /destinations/{id}');
  const write = switchWrite({ name, isOn: enabled, change, inputOf: (isOn) => ({ path: { id }, body: { enabled: isOn } }) });
  return <SwitchWithRefusal noun="destination" isOn={enabled} write={write} onRead={change.reset} />;
}

interface EndpointSwitchProps {
  endpoint: { id: string; url: string; isDisabled: boolean; disabledReason: string | null };
}

/** Enables an endpoint, or disables it after a question, because new events make no message for it then. */
export function EndpointSwitch({ endpoint: { id, url, isDisabled, disabledReason } }: EndpointSwitchProps): ReactElement {
  const change = useWrite('PATCH /webhook-endpoints/{id}');
  const inputOf = (isOn: boolean) => ({ path: { id }, body: disabledChange(isOn, disabledReason) });
  const write = switchWrite({ name: url, isOn: !isDisabled, change, inputOf });
  if (isDisabled) return <SwitchWithRefusal noun="endpoint" isOn={false} write={write} onRead={change.reset} />;
  return (
    <ConfirmedAct word="Disable endpoint" question="Disable this endpoint?" write={write}>
      <p>New events make no message for it. Messages that are queued wait for 7 days, and are dead letters after that.</p>
    </ConfirmedAct>
  );
}

interface SwitchWithRefusalProps {
  noun: string;
  isOn: boolean;
  write: WriteState;
  onRead: () => void;
}

/** For layouts without space for a refusal. */
function SwitchWithRefusal({ noun, isOn, write, onRead }: SwitchWithRefusalProps): ReactElement {
  return (
    <>
      <SwitchButton isOn={isOn} write={write} />
      <Dialog title={`The ${noun} was not changed`} isOpen={write.error !== null} onClose={onRead}>
        <Refusal error={write.error} />
      </Dialog>
    </>
  );
}
