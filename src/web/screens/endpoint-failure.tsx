import type { ReactElement } from 'react';
import { useRead } from '../app/use-api.ts';
import { Code } from '../ui/state.tsx';

/** An attempt that failed at a time began within this time before it. */
const longestAttemptMs = 120_000;

/** Why the last attempt to an endpoint failed, by its messages; nothing once they are gone. `at`: when it failed. */
export function EndpointFailure({ id, at }: { id: string; at: string }): ReactElement | null {
  const failedFrom = new Date(Date.parse(at) - longestAttemptMs).toISOString();
  const { data } = useRead('GET /outbound-messages', { query: { endpointId: id, failedFrom, limit: 10 } });
  const failed = data?.data.find(({ lastErrorMessage }) => lastErrorMessage !== null);
  if (failed === undefined) return null;
  return (
    <>
      {failed.lastResponseStatus === null ? null : (
        <>
          <Code status={failed.lastResponseStatus} />{' '}
        </>
      )}
      {failed.lastErrorMessage}
    </>
  );
}
