import { type FormEvent, type ReactElement, useState } from 'react';
import type { ApiError } from '../api/client.ts';
import { useWrite } from '../app/use-api.ts';
import { Dialog } from '../ui/dialog.tsx';
import { bytes, count, duration } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Failure, Loading } from '../ui/notices.tsx';
import { Preformatted } from '../ui/preformatted.tsx';
import { Code, State } from '../ui/state.tsx';
import { isEndpointId } from './target-data.ts';
import { type TestDraft, TestPayloadFields, testBody, useTestPayload, usualTest } from './test-payload.tsx';

interface Outcome {
  success: boolean;
  status: number | null;
  tookMs: number | null;
  body: string | null;
  message: string | null;
}

/** Sends a test to a target, with a payload that is chosen, and shows its answer. What is chosen stays while the dialog is closed. */
export function TestSend({ id, isSmall = false }: { id: string; isSmall?: boolean }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const [draft, setDraft] = useState(usualTest);
  return (
    <>
      <button type="button" className={isSmall ? 'btn is-sm' : 'btn'} onClick={() => setOpen(true)}>
        <Icon name="send" />
        Send test…
      </button>
      <Dialog title="Send a test" isOpen={isOpen} onClose={() => setOpen(false)}>
        <TestForm id={id} draft={draft} onChange={setDraft} close={() => setOpen(false)} />
      </Dialog>
    </>
  );
}

interface TestFormProps {
  id: string;
  draft: TestDraft;
  onChange: (draft: TestDraft) => void;
  close: () => void;
}

function TestForm({ id, draft, onChange, close }: TestFormProps): ReactElement {
  const { send, outcome, error, isPending } = useTest(id);
  const payload = useTestPayload(id, draft);
  const [problem, setProblem] = useState<string | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const made = testBody(id, draft, payload);
    setProblem('problem' in made ? made.problem : null);
    if ('body' in made) send(made.body);
  };
  return (
    <form className="form" onSubmit={submit} noValidate>
      <TestPayloadFields
        id={id}
        draft={draft}
        payload={payload}
        onChange={(next) => {
          setProblem(null);
          onChange(next);
        }}
      />
      {problem === null ? null : <Failure message={problem} />}
      {payload.error === null ? null : <Failure message={payload.error} />}
      {isPending ? <Loading what="the answer of the target" /> : null}
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} />}
      {outcome === null ? null : <Answered outcome={outcome} />}
      <p className="small muted">A test is one attempt. It is not recorded, counted or tried again, and the circuit does not notice it.</p>
      <div className="btn-row is-end">
        <button type="button" className="btn is-quiet" onClick={close}>
          Close
        </button>
        <button type="submit" className="btn is-primary" disabled={isPending || payload.isLoading || payload.error !== null}>
          {isPending ? 'Sending…' : outcome === null && error === null ? 'Send test' : 'Send again'}
        </button>
      </div>
    </form>
  );
}

/** The test of a target of either kind. */
function useTest(id: string): { send: (body: string) => void; outcome: Outcome | null; error: ApiError | null; isPending: boolean } {
  const destination = useWrite('POST /destinations/{id}/test');
  const endpoint = useWrite('POST /webhook-endpoints/{id}/test');
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const { error, isPending } = isEndpointId(id) ? endpoint : destination;
  const send = (bodyText: string): void => {
    setOutcome(null);
    if (isEndpointId(id))
      endpoint.mutate(
        { path: { id }, bodyText },
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
        { path: { id }, bodyText },
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
  return { send, outcome, error, isPending };
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
