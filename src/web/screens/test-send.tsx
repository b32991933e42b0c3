import { type ReactElement, useState } from 'react';
import { useWrite } from '../app/use-api.ts';
import { Dialog } from '../ui/dialog.tsx';
import { bytes, count, duration } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Failure, Loading } from '../ui/notices.tsx';
import { Preformatted } from '../ui/preformatted.tsx';
import { Code, State } from '../ui/state.tsx';
import { isEndpointId } from './target-data.ts';

interface Outcome {
  success: boolean;
  status: number | null;
  tookMs: number | null;
  body: string | null;
  message: string | null;
}

/** Sends a test to a target, and shows its answer. */
export function TestSend({ id, isSmall = false }: { id: string; isSmall?: boolean }): ReactElement {
  const destination = useWrite('POST /destinations/{id}/test');
  const endpoint = useWrite('POST /webhook-endpoints/{id}/test');
  const [isOpen, setOpen] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const isEndpoint = isEndpointId(id);
  const error = isEndpoint ? endpoint.error : destination.error;
  const isPending = isEndpoint ? endpoint.isPending : destination.isPending;
  const send = (): void => {
    setOpen(true);
    setOutcome(null);
    if (isEndpoint)
      endpoint.mutate(
        { path: { id }, body: {} },
        {
          onSuccess: ({ data }) =>
            setOutcome({
              success: data.success,
              status: data.responseStatus,
              tookMs: data.responseTimeMs,
              body: data.responseBody,
              message: data.errorMessage,
            }),
        },
      );
    else
      destination.mutate(
        { path: { id }, body: {} },
        {
          onSuccess: (answer) =>
            setOutcome(
              'result' in answer
                ? {
                    success: true,
                    status: null,
                    tookMs: null,
                    body: null,
                    message: `${answer.result.key}, ${bytes(answer.result.size)}, ${count(answer.result.count)} rows`,
                  }
                : {
                    success: answer.success,
                    status: answer.statusCode,
                    tookMs: answer.latency,
                    body: 'responseBody' in answer ? answer.responseBody : null,
                    message: answer.message,
                  },
            ),
        },
      );
  };
  return (
    <>
      <button type="button" className={isSmall ? 'btn is-sm' : 'btn'} onClick={send}>
        <Icon name="send" />
        Send test
      </button>
      <Dialog title="Test" isOpen={isOpen} onClose={() => setOpen(false)}>
        {isPending ? <Loading what="the answer of the target" /> : null}
        {error === null ? null : <Failure message={error.message} requestId={error.requestId} />}
        {outcome === null ? null : <Answered outcome={outcome} />}
        <p className="small muted">
          A test is one attempt. It is not recorded, counted or tried again, and the circuit does not notice it.
        </p>
        <div className="btn-row is-end">
          <button type="button" className="btn is-quiet" disabled={isPending} onClick={send}>
            Send again
          </button>
          <button type="button" className="btn" onClick={() => setOpen(false)}>
            Close
          </button>
        </div>
      </Dialog>
    </>
  );
}

function Answered({ outcome: { success, status, tookMs, body, message } }: { outcome: Outcome }): ReactElement {
  return (
    <>
      <dl className="kv">
        <dt>Outcome</dt>
        <dd>
          <State state={success ? 'delivered' : 'failed'} />
        </dd>
        <dt>Response</dt>
        <dd>
          <Code status={status} /> {message}
        </dd>
        {tookMs === null ? null : (
          <>
            <dt>Took</dt>
            <dd>{duration(tookMs)}</dd>
          </>
        )}
      </dl>
      {body === null || body === '' ? null : (
        <div className="code-block">
          <Preformatted label="Response body">{body}</Preformatted>
        </div>
      )}
    </>
  );
}
