import { type ReactElement, useEffect, useRef, useState } from 'react';
import type { Input } from '../api/client.ts';
import { useWrite } from '../app/use-api.ts';
import { Confirm } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { count, quantity, quantityOf } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { Clock } from '../ui/time.tsx';

/** Ends what waits. */

export const waitingDeliveries = ['pending', 'retrying', 'circuit_open', 'processing'] as const;
export const waitingMessages = ['pending', 'failed', 'processing'] as const;

const effect =
  'It becomes a dead letter, which can be sent again. An attempt that is under way is not interrupted: if it succeeds, the receiver has it.';

/** When a message was cancelled, and by whom, among the facts of its page; nothing for one that nobody has cancelled. */
export function CancellationFacts({ made }: { made: { at: string; by: string } | undefined }): ReactElement | null {
  if (made === undefined) return null;
  return (
    <>
      <dt>Cancelled</dt>
      <dd>
        <Clock at={made.at} /> by {made.by}
      </dd>
    </>
  );
}

/** Cancels a delivery that has not ended; nothing for any other. */
export function CancelDelivery({ id, status }: { id: string; status: string | undefined }): ReactElement | null {
  const { mutate, error, isPending, reset } = useWrite('POST /deliveries/{id}/cancel');
  if (!waitingDeliveries.some((each) => each === status)) return null;
  const act = (done: () => void): void => mutate({ path: { id } }, { onSuccess: done });
  return <CancelOne noun="delivery" act={act} error={error} isPending={isPending} reset={reset} />;
}

/** Cancels a message that has not ended; nothing for any other. */
export function CancelMessage({ id, status }: { id: string; status: string | undefined }): ReactElement | null {
  const { mutate, error, isPending, reset } = useWrite('POST /outbound-messages/{id}/cancel');
  if (!waitingMessages.some((each) => each === status)) return null;
  const act = (done: () => void): void => mutate({ path: { id } }, { onSuccess: done });
  return <CancelOne noun="message" act={act} error={error} isPending={isPending} reset={reset} />;
}

interface CancelOneProps {
  noun: 'delivery' | 'message';
  act: (done: () => void) => void;
  error: { message: string; requestId: string | null } | null;
  isPending: boolean;
  reset: () => void;
}

function CancelOne({ noun, act, error, isPending, reset }: CancelOneProps): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const close = (): void => {
    setOpen(false);
    reset();
  };
  return (
    <>
      <button type="button" className="btn" onClick={() => setOpen(true)}>
        Cancel {noun}…
      </button>
      <Confirm
        title={`Cancel this ${noun}?`}
        act={`Cancel ${noun}`}
        keep="Keep it"
        isDanger
        isOpen={isOpen}
        isPending={isPending}
        error={error}
        onClose={close}
        onAct={() => act(close)}
      >
        <p>{effect}</p>
      </Confirm>
    </>
  );
}

type DeliveryFilter = NonNullable<Input<'POST /deliveries/cancel'>['body']>['filter'];
type MessageFilter = NonNullable<Input<'POST /outbound-messages/cancel'>['body']>['filter'];
interface Step {
  matched: number;
  cancelled: number;
  cancelling: number;
  skipped: number;
  nextCursor: string | null;
}
interface StepInput {
  dryRun: boolean;
  cursor: string | undefined;
}

interface CancelProps<Filter> {
  filter: Omit<Filter, 'status'>;
  /** Those that the list is narrowed to. */
  status: readonly string[] | undefined;
  /** False where the list is empty: there is no button. A dialog that is open stays. */
  isOffered?: boolean;
}

/** Cancels the deliveries of a list that have not ended. */
export function CancelDeliveries({ filter, status, isOffered = true }: CancelProps<DeliveryFilter>): ReactElement | null {
  const { mutateAsync, reset } = useWrite('POST /deliveries/cancel');
  const statuses = waitingDeliveries.filter((each) => status?.includes(each));
  if (status !== undefined && statuses.length === 0) return null;
  const whole = statuses.length === 0 ? filter : { ...filter, status: statuses };
  return (
    <CancelList
      what="deliveries"
      isOffered={isOffered}
      reset={reset}
      step={({ dryRun, cursor }) => mutateAsync({ body: { filter: whole, dryRun, ...(cursor !== undefined && { cursor }) } })}
    />
  );
}

/** The same of messages. */
export function CancelMessages({ filter, status, isOffered = true }: CancelProps<MessageFilter>): ReactElement | null {
  const { mutateAsync, reset } = useWrite('POST /outbound-messages/cancel');
  const statuses = waitingMessages.filter((each) => status?.includes(each));
  if (status !== undefined && statuses.length === 0) return null;
  const whole = statuses.length === 0 ? filter : { ...filter, status: statuses };
  const step = async ({ dryRun, cursor }: StepInput): Promise<Step> =>
    (await mutateAsync({ body: { filter: whole, dryRun, ...(cursor !== undefined && { cursor }) } })).data;
  return <CancelList what="messages" isOffered={isOffered} reset={reset} step={step} />;
}

interface CancelListProps {
  what: 'deliveries' | 'messages';
  isOffered: boolean;
  step: (input: StepInput) => Promise<Step>;
  reset: () => void;
}

function CancelList({ what, isOffered, step, reset }: CancelListProps): ReactElement | null {
  const [isOpen, setOpen] = useState(false);
  const close = (): void => {
    setOpen(false);
    reset();
  };
  if (!isOffered && !isOpen) return null;
  return (
    <>
      <button type="button" className="btn" onClick={() => setOpen(true)}>
        Cancel waiting…
      </button>
      <Dialog title={`Cancel ${what} that wait`} isOpen={isOpen} onClose={close}>
        {isOpen ? <CancelWalk what={what} step={step} close={close} /> : null}
      </Dialog>
    </>
  );
}

/** `cursor`: of the next step. */
type Walk = { at: 'counting' | 'counted' | 'cancelling' | 'done'; sum: Omit<Step, 'nextCursor'>; cursor: string | undefined };
const none = { matched: 0, cancelled: 0, cancelling: 0, skipped: 0 };
const beginning = { sum: none, cursor: undefined };

/** Counts first, then cancels, step by step; closing the dialog ends it after the step that is under way. After a failure it resumes with the step that failed. */
function CancelWalk({ what, step, close }: Omit<CancelListProps, 'isOffered' | 'reset'> & { close: () => void }): ReactElement {
  const [{ at, sum, cursor: next }, setWalk] = useState<Walk>({ at: 'counting', ...beginning });
  const [failure, setFailure] = useState<string | null>(null);
  const isGone = useRef(false);
  const walk = async (dryRun: boolean, from: Pick<Walk, 'sum' | 'cursor'>): Promise<void> => {
    setFailure(null);
    let { sum: soFar, cursor } = from;
    try {
      do {
        const { nextCursor, ...done } = await step({ dryRun, cursor });
        if (isGone.current) return;
        soFar = {
          matched: soFar.matched + done.matched,
          cancelled: soFar.cancelled + done.cancelled,
          cancelling: soFar.cancelling + done.cancelling,
          skipped: soFar.skipped + done.skipped,
        };
        cursor = nextCursor ?? undefined;
        const isOver = cursor === undefined;
        setWalk({ at: dryRun ? (isOver ? 'counted' : 'counting') : isOver ? 'done' : 'cancelling', sum: soFar, cursor });
      } while (cursor !== undefined);
    } catch (error) {
      if (!isGone.current) setFailure(error instanceof Error ? error.message : String(error));
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: counts once, when the dialog opens
  useEffect(() => {
    isGone.current = false;
    void walk(true, beginning);
    return () => {
      isGone.current = true;
    };
  }, []);
  const cancel = (): void => {
    setWalk({ at: 'cancelling', ...beginning });
    void walk(false, beginning);
  };
  const text = {
    counting: `${count(sum.matched)} so far.`,
    counted:
      sum.matched === 0
        ? 'Nothing that waits matches the filters of the list.'
        : `${quantityOf(sum.matched, what)} ${sum.matched === 1 ? 'matches' : 'match'} the filters of the list.`,
    cancelling: `${quantity(sum.cancelled, 'is', 'are')} cancelled so far.`,
    done: `${quantity(sum.cancelled, 'is', 'are')} cancelled. ${quantity(sum.cancelling, 'ends', 'end')} with the attempt that is under way, ${quantity(sum.skipped, 'is', 'are')} left alone: ended before, gone, or on the way to another shard.`,
  };
  return (
    <>
      {at === 'counting' && failure === null ? <Loading what={what} /> : null}
      <p role="status">{text[at]}</p>
      {at === 'counted' && sum.matched > 0 ? (
        <p className="muted">
          Each becomes a dead letter, which can be sent again. An attempt that is under way is not interrupted. What is made from now on is
          left alone.
        </p>
      ) : null}
      {failure === null ? null : (
        <Failure message={failure} {...(at === 'counting' && { retry: () => void walk(true, { sum, cursor: next }) })} />
      )}
      <div className="btn-row is-end">
        <button type="button" className="btn is-quiet" onClick={close}>
          {at === 'done' ? 'Close' : at === 'cancelling' ? 'Stop' : 'Keep them'}
        </button>
        {at === 'counted' && sum.matched > 0 ? (
          <button type="button" className="btn is-danger" onClick={cancel}>
            Cancel {quantityOf(sum.matched, what)}
          </button>
        ) : null}
        {at === 'cancelling' && failure !== null ? (
          <button type="button" className="btn is-danger" onClick={() => void walk(false, { sum, cursor: next })}>
            Continue
          </button>
        ) : null}
      </div>
    </>
  );
}
