import { Link } from '@tanstack/react-router';
import { type ReactElement, useEffect, useRef, useState } from 'react';
import { ApiError } from '../api/client.ts';
import { maxIds } from '../app/id-list.ts';
import { IdLink } from '../app/names.tsx';
import { Refusal } from '../app/resource-acts.tsx';
import { apiErrorOf, retryRateLimited } from '../app/retry-rate-limited.ts';
import { type RowOf, useOrganization, useReadAgain, useWrite } from '../app/use-api.ts';
import { Dialog } from '../ui/dialog.tsx';
import { count, quantity, quantityOf } from '../ui/format.ts';
import { Progress } from '../ui/progress.tsx';
import { waitingDeliveries, waitingMessages } from './cancel.tsx';

/** Acts on the checked rows of a list: they are sent again, or cancelled. */

/** Maximum of one request to the API. */
const perRequest = 100;
const oneOfMany = { isStep: true };
const leftShown = 20;

/** Result for one of them. */
interface Result {
  id: string;
  /** The new one that it is sent again as. */
  newId?: string;
  /** It ends with the attempt that is under way, unless that succeeds. */
  isLater?: boolean;
  /** Why nothing was done; absent: it was. */
  why?: string;
}

interface Step {
  ids: readonly string[];
  run: (ids: readonly string[]) => Promise<Result[]>;
}

interface ActsProps<Row> {
  rows: readonly Row[];
  /** Deselects the rows. */
  clear: () => void;
}

const resentEnds: readonly string[] = ['delivered', 'failed', 'filtered', 'schema_failed', 'transform_failed', 'dlq'];
const singleEnds: readonly string[] = ['success', 'exhausted'];
const cancelResults: Record<string, string> = {
  ended: 'it had ended',
  moving: 'it is moving to another queue: cancel it again',
  not_found: 'it is not stored any more',
};

export function DeliveryActs({ rows, clear }: ActsProps<RowOf<'GET /deliveries'>>): ReactElement {
  const again = useWrite('POST /deliveries/bulk-replay', oneOfMany);
  const cancel = useWrite('POST /deliveries/bulk-cancel', oneOfMany);
  const resend = async (ids: readonly string[]): Promise<Result[]> => {
    const { deliveries } = await again.mutateAsync({ body: { ids: [...ids] } });
    const made = new Map(deliveries.map((each) => [each.originalDeliveryId, each.newDeliveryId]));
    return ids.map((id) => resentAs(id, made.get(id)));
  };
  const end = async (ids: readonly string[]): Promise<Result[]> => {
    const { deliveries } = await cancel.mutateAsync({ body: { ids: [...ids] } });
    return deliveries.map(({ deliveryId, result }) => ended(deliveryId, result));
  };
  return (
    <>
      <SendAgain what="deliveries" all={rows.length} steps={stepsOf(idsWith(rows, resentEnds), resend)} reset={again.reset} clear={clear} />
      <CancelThem
        what="deliveries"
        all={rows.length}
        steps={stepsOf(idsWith(rows, waitingDeliveries), end)}
        reset={cancel.reset}
        clear={clear}
      />
    </>
  );
}

export function MessageActs({ rows, clear }: ActsProps<RowOf<'GET /outbound-messages'>>): ReactElement {
  const again = useWrite('POST /outbound-messages/dlq/retry-bulk', oneOfMany);
  const one = useWrite('POST /outbound-messages/{id}/replay', oneOfMany);
  const cancel = useWrite('POST /outbound-messages/cancel-bulk', oneOfMany);
  const resend = async (ids: readonly string[]): Promise<Result[]> => {
    const { data } = await again.mutateAsync({ body: { messageIds: [...ids] } });
    const made = new Map(data.messages.map((each) => [each.originalMessageId, each.newMessageId]));
    return ids.map((id) => resentAs(id, made.get(id)));
  };
  // The API sends dead letters again in bulk, and other messages one by one.
  const resendOne = async ([id = '']: readonly string[]): Promise<Result[]> => {
    try {
      return [{ id, newId: (await one.mutateAsync({ path: { id } })).data.newMessageId }];
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || !refusesOne.includes(thrown.code)) throw thrown;
      return [{ id, why: thrown.message }];
    }
  };
  const end = async (ids: readonly string[]): Promise<Result[]> => {
    const { data } = await cancel.mutateAsync({ body: { messageIds: [...ids] } });
    return data.messages.map(({ messageId, result }) => ended(messageId, result));
  };
  const steps = [...stepsOf(idsWith(rows, ['dlq']), resend), ...stepsOf(idsWith(rows, singleEnds), resendOne, 1)];
  const reset = (): void => {
    again.reset();
    one.reset();
  };
  return (
    <>
      <SendAgain what="messages" all={rows.length} steps={steps} reset={reset} clear={clear} />
      <CancelThem
        what="messages"
        all={rows.length}
        steps={stepsOf(idsWith(rows, waitingMessages), end)}
        reset={cancel.reset}
        clear={clear}
      />
    </>
  );
}

/** Refusals that are about the one message. */
const refusesOne = ['RESOURCE_NOT_FOUND', 'CONFLICT', 'PAYLOAD_NOT_FOUND'];

function idsWith(rows: readonly { id: string; status: string }[], statuses: readonly string[]): string[] {
  return rows.filter(({ status }) => statuses.includes(status)).map(({ id }) => id);
}

function stepsOf(ids: readonly string[], run: Step['run'], size = perRequest): Step[] {
  return Array.from({ length: Math.ceil(ids.length / size) }, (_none, n) => ({ ids: ids.slice(n * size, (n + 1) * size), run }));
}

function resentAs(id: string, newId: string | undefined): Result {
  if (newId !== undefined) return { id, newId };
  return { id, why: 'it is under way again, is not stored any more, or its payload is gone' };
}

function ended(id: string, result: string): Result {
  const why = cancelResults[result];
  return why === undefined ? { id, isLater: result === 'cancelling' } : { id, why };
}

interface ActProps {
  what: 'deliveries' | 'messages';
  /** How many rows are checked. */
  all: number;
  /** Steps for those that it can be done with. */
  steps: readonly Step[];
  reset: () => void;
  clear: () => void;
}

function SendAgain({ what, ...rest }: ActProps): ReactElement | null {
  const noun = what === 'deliveries' ? 'delivery' : 'message';
  return (
    <BulkAct
      what={what}
      {...rest}
      word="Send again…"
      title={`Send ${what} again?`}
      act={(number) => `Send ${quantityOf(number, what)} again`}
      left="under way"
      doneWords={(number) => `${quantity(number, `${noun} is`, `${what} are`)} sent again.`}
    >
      <p>
        Each is sent with the same payload, as a {noun} of its own. The receiver gets it even if it has it already. Each counts as a message
        of the month.
      </p>
    </BulkAct>
  );
}

function CancelThem({ what, ...rest }: ActProps): ReactElement | null {
  const noun = what === 'deliveries' ? 'delivery' : 'message';
  return (
    <BulkAct
      what={what}
      {...rest}
      isDanger
      word="Cancel…"
      title={`Cancel ${what}?`}
      act={(number) => `Cancel ${quantityOf(number, what)}`}
      left="ended"
      doneWords={(number) => `${quantity(number, `${noun} is`, `${what} are`)} cancelled.`}
    >
      <p>
        Each becomes a dead letter, which can be sent again. An attempt that is under way is not interrupted: if it succeeds, the receiver
        has it.
      </p>
    </BulkAct>
  );
}

interface BulkActProps extends ActProps {
  word: string;
  title: string;
  act: (number: number) => string;
  /** What those are that it cannot be done with. */
  left: string;
  doneWords: (number: number) => string;
  isDanger?: boolean;
  /** The effect. */
  children: ReactElement;
}

/** A button, the question that names the effect, and the report; nothing where it can be done with none of the rows. */
function BulkAct({ what, all, steps, reset, clear, word, isDanger = false, title, children, ...words }: BulkActProps): ReactElement | null {
  // The rows change while they are worked on: the act keeps those that it began with.
  const [begun, setBegun] = useState<{ steps: readonly Step[]; all: number } | null>(null);
  const [isUnderWay, setUnderWay] = useState(false);
  const close = (): void => {
    setBegun(null);
    setUnderWay(false);
    reset();
    // Finished work is not repeated by the next press.
    if (isUnderWay) clear();
  };
  if (begun === null && steps.length === 0) return null;
  return (
    <>
      <button type="button" className={isDanger ? 'btn is-sm is-danger' : 'btn is-sm'} onClick={() => setBegun({ steps, all })}>
        {word}
      </button>
      <Dialog title={title} isOpen={begun !== null} onClose={close}>
        {begun === null ? null : (
          <Walk {...begun} {...words} isDanger={isDanger} effect={children} close={close} onStart={() => setUnderWay(true)} />
        )}
      </Dialog>
    </>
  );
}

interface WalkProps extends Pick<BulkActProps, 'act' | 'left' | 'doneWords'> {
  steps: readonly Step[];
  all: number;
  isDanger: boolean;
  effect: ReactElement;
  close: () => void;
  onStart: () => void;
}

/** Runs the steps; closing the dialog ends it after the step that is under way. After a failure it resumes with the step that failed, which is the same request. */
function Walk({ steps, all, act, left, doneWords, isDanger, effect, close, onStart }: WalkProps): ReactElement {
  const [at, setAt] = useState<'asked' | 'working' | 'done'>('asked');
  const [results, setResults] = useState<readonly Result[]>([]);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const readAgain = useReadAgain();
  const next = useRef(0);
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);
  const total = steps.reduce((sum, { ids }) => sum + ids.length, 0);
  const start = async (): Promise<void> => {
    controller.current = new AbortController();
    const { signal } = controller.current;
    setAt('working');
    onStart();
    setFailure(null);
    try {
      for (let step = steps[next.current]; step !== undefined; step = steps[next.current]) {
        const { ids, run } = step;
        const made = await retryRateLimited(() => run(ids), signal);
        signal.throwIfAborted();
        next.current += 1;
        setResults((before) => [...before, ...made]);
      }
      setAt('done');
    } catch (thrown) {
      if (!signal.aborted) setFailure(apiErrorOf(thrown));
    } finally {
      readAgain();
    }
  };
  const done = results.filter(({ why, isLater }) => why === undefined && isLater !== true);
  const later = results.filter(({ isLater }) => isLater === true);
  const notDone = results.filter(({ why }) => why !== undefined);
  return (
    <>
      {at === 'asked' ? effect : null}
      {at === 'asked' && all > total ? (
        <p className="muted">{`${quantity(all - total, 'selected one is', 'selected ones are')} left alone: ${left}.`}</p>
      ) : null}
      {at === 'asked' ? null : (
        <>
          <Progress
            label={doneWords(done.length)}
            total={total}
            parts={[
              { fill: 'f-ok', value: done.length },
              { fill: 'f-run', value: later.length },
              { fill: 'f-idle', value: notDone.length },
            ]}
          />
          <p role="status">
            {doneWords(done.length)}
            {later.length === 0 ? '' : ` ${quantity(later.length, 'ends', 'end')} with the attempt that is under way, unless it succeeds.`}
            {notDone.length === 0 ? '' : ` ${quantity(notDone.length, 'is', 'are')} left alone.`}
            {at === 'done' || failure !== null ? '' : ` ${count(total - results.length)} to go.`}
          </p>
        </>
      )}
      <LeftAlone results={notDone} />
      <Refusal error={failure} isKept />
      <div className="btn-row is-end">
        {at === 'done' ? <NewOnes ids={done.flatMap(({ newId }) => newId ?? [])} /> : null}
        <button type="button" className={at === 'done' ? 'btn is-primary' : 'btn is-quiet'} onClick={close}>
          {at === 'asked' ? 'Keep them as they are' : at === 'done' ? 'Close' : 'Stop'}
        </button>
        {at === 'asked' || (at === 'working' && failure !== null) ? (
          <button type="button" className={isDanger ? 'btn is-danger' : 'btn is-primary'} onClick={() => void start()}>
            {at === 'asked' ? act(total) : 'Continue'}
          </button>
        ) : null}
      </div>
    </>
  );
}

function LeftAlone({ results }: { results: readonly Result[] }): ReactElement | null {
  if (results.length === 0) return null;
  return (
    <dl className="kv is-tight" aria-label="Left alone">
      {results.slice(0, leftShown).map(({ id, why }) => (
        <div key={id}>
          <dt>
            <IdLink id={id} />
          </dt>
          <dd>{why}</dd>
        </div>
      ))}
      {results.length > leftShown ? (
        <div>
          <dt>And</dt>
          <dd>{count(results.length - leftShown)} more</dd>
        </div>
      ) : null}
    </dl>
  );
}

/** A link to what became of them. */
function NewOnes({ ids }: { ids: readonly string[] }): ReactElement | null {
  const org = useOrganization();
  if (ids.length === 0) return null;
  return (
    <Link className="btn" to="/o/$org/ids" params={{ org }} search={{ ids: ids.slice(0, maxIds).join(',') }}>
      {ids.length > maxIds ? `Show the first ${maxIds} new ones` : ids.length === 1 ? 'Show the new one' : 'Show the new ones'}
    </Link>
  );
}
