import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import { useRead } from '../app/use-api.ts';
import { Code } from '../ui/state.tsx';

/** An attempt that failed at a time began within this time before it. */
const maxAttemptMs = 120_000;
/** Most failures take no longer: failures so shortly before are read first. */
const briefMs = 2000;

/** Why the last attempt to an endpoint failed, by its messages; nothing once they are gone. `at`: when it failed. */
export function EndpointFailure({ id, at }: { id: string; at: string }): ReactElement | null {
  const since = (ms: number) => ({
    query: { endpointId: [id], failedFrom: new Date(Date.parse(at) - ms).toISOString(), failedTo: at, limit: 10 },
  });
  const brief = useRead('GET /outbound-messages', since(briefMs));
  const last = failedIn(brief.data);
  const long = useRead('GET /outbound-messages', since(maxAttemptMs), { isEnabled: brief.data !== undefined && last === undefined });
  const failed = last ?? failedIn(long.data);
  if (failed === undefined) return null;
  return <FailureWords status={failed.lastResponseStatus} message={failed.lastErrorMessage} />;
}

/** A failure, with the code of its answer once. */
export function FailureWords({ status, message }: { status: number | null; message: string | null }): ReactElement {
  if (status === null) return <>{message}</>;
  const code = <Code status={status} />;
  return message === `the receiver answered ${status}` ? (
    <>answered {code}</>
  ) : (
    <>
      {code} {message}
    </>
  );
}

function failedIn(answer: Answer<'GET /outbound-messages'> | undefined) {
  return answer?.data.find(({ lastErrorMessage }) => lastErrorMessage !== null);
}
