import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import type { Input } from '../api/client.ts';
import { useOrganization, useRead, useWrite } from '../app/use-api.ts';
import { Dialog } from '../ui/dialog.tsx';
import { bytes, duration, quantity, quantityOf } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Failure, Loading } from '../ui/notices.tsx';
import { Ago } from '../ui/time.tsx';
import { newReplayName } from './replay-parts.tsx';

type Body = NonNullable<Input<'POST /replays'>['body']>;

export interface PlanReplayProps {
  /** Events: those that reached no route. */
  what: 'deliveries' | 'messages' | 'events';
  filter: NonNullable<Body['filter']>;
  /** False where the list is empty: there is no button. A dialog that is open stays. */
  isOffered?: boolean;
}

const usualRate = 50;
const usualStop = 20;

/** Counts what the filter selects, shows the plan, and starts it. */
export function PlanReplay({ what, filter, isOffered = true }: PlanReplayProps): ReactElement | null {
  const [plan, setPlan] = useState<string | null>(null);
  const create = useWrite('POST /replays');
  const countFirst = (): void => {
    create.mutate({ body: { what, filter, dryRun: true, ratePerSecond: usualRate } }, { onSuccess: ({ id }) => setPlan(id) });
  };
  if (!isOffered && plan === null && !create.isPending && create.error === null) return null;
  return (
    <>
      <button type="button" className="btn is-primary" disabled={create.isPending} onClick={countFirst}>
        <Icon name="replay" />
        {create.isPending ? 'Counting…' : 'Replay…'}
      </button>
      <Dialog title="Nothing was counted" isOpen={create.error !== null && plan === null} onClose={create.reset}>
        {create.error === null ? null : <Failure message={create.error.message} requestId={create.error.requestId} />}
      </Dialog>
      <Dialog title={`Replay ${what}`} isOpen={plan !== null} onClose={() => setPlan(null)}>
        {plan === null ? null : <Plan id={plan} what={what} filter={filter} close={() => setPlan(null)} />}
      </Dialog>
    </>
  );
}

function Plan({ id, what, filter, close }: Omit<PlanReplayProps, 'isOffered'> & { id: string; close: () => void }): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const [rate, setRate] = useState(usualRate);
  const [stop, setStop] = useState(usualStop);
  const { data: dryRun, error } = useRead('GET /replays/{id}', { path: { id } }, { everyMs: 500 });
  const create = useWrite('POST /replays');
  // A second press, after an answer that was lost, names the same replay: it does not run twice.
  const [name] = useState(newReplayName);
  if (error !== null) return <Failure message={error.message} requestId={error.requestId} />;
  if (dryRun === undefined || dryRun.phase === 'Planning') return <Loading what="what the filter selects" />;
  if (dryRun.failure !== null) return <Failure message={dryRun.failure.message} />;
  const { plan } = dryRun;
  if (plan === null || plan.candidates === 0)
    return <p>{what === 'events' ? 'No route of today takes any of them.' : 'Nothing matches the filter any more.'}</p>;
  // An event is sent to each destination of the routes that take it.
  const noun = what === 'events' ? 'deliveries' : what;
  const start = (): void => {
    create.mutate(
      { body: { name, what, filter, ratePerSecond: rate, stopAfterFailurePercent: stop } },
      {
        onSuccess: (replay) => {
          close();
          void navigate({ to: '/o/$org/replays/$id', params: { org, id: replay.id } });
        },
      },
    );
  };
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        start();
      }}
    >
      <p>
        {plan.isEstimate ? 'At least ' : ''}
        <strong>{quantityOf(plan.candidates, noun)}</strong> to {quantity(plan.targets, 'target')}, {bytes(plan.bytes)}
        {plan.oldest === null ? null : (
          <>
            , the oldest <Ago at={plan.oldest} />
          </>
        )}
        . It takes about {duration((plan.candidates / rate) * 1000)}.
      </p>
      <p className="muted">
        The oldest go first. {what === 'events' ? 'Current routes evaluate each again.' : 'Each is sent once, as a message of its own.'} It
        can be suspended and cancelled while it runs.
      </p>
      <div className="field">
        <label htmlFor="rate">Messages a second</label>
        <input
          className="input"
          id="rate"
          type="number"
          min="1"
          max="10000"
          value={rate}
          onChange={({ target }) => setRate(target.valueAsNumber || 1)}
        />
      </div>
      <div className="field">
        <label htmlFor="stop">Stop above this share of failures, in per cent</label>
        <input
          className="input"
          id="stop"
          type="number"
          min="1"
          max="100"
          value={stop}
          onChange={({ target }) => setStop(target.valueAsNumber || 1)}
        />
      </div>
      {create.error === null ? null : <Failure message={create.error.message} requestId={create.error.requestId} />}
      <div className="btn-row is-end">
        <button type="button" className="btn is-quiet" onClick={close}>
          Cancel
        </button>
        <button type="submit" className="btn is-primary" disabled={create.isPending}>
          {create.isPending ? 'Starting…' : `Replay ${quantityOf(plan.candidates, noun)}`}
        </button>
      </div>
    </form>
  );
}
