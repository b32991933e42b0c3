import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import { useRead } from '../app/use-api.ts';
import { quantity } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { Ago } from '../ui/time.tsx';

type Failed = Answer<'GET /sources/{id}/signature-failures'>['data'][number];

const everyMs = 5000;

/** Why does the source refuse what its sender sends? */
export function FailedSignatures({ sourceId }: { sourceId: string }): ReactElement {
  const { data: failures, error, refetch } = useRead('GET /sources/{id}/signature-failures', { path: { id: sourceId } }, { everyMs });
  return (
    <section aria-label="Failed signatures">
      <header>
        <h2>Failed signatures</h2>
        {failures === undefined || failures.since === null ? null : (
          <span className="hint">
            {quantity(failures.requests, 'request')}, the first <Ago at={failures.since} />
          </span>
        )}
      </header>
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {failures === undefined && error === null ? <Loading what="failed signatures" /> : null}
      {failures?.data.length === 0 ? (
        <p className="small muted">None in the last 24 hours. A request that fails shows up here within seconds, with the reason.</p>
      ) : null}
      {failures === undefined || failures.data.length === 0 ? null : (
        <ul className="failed-signatures">
          {failures.data.map((failure) => (
            <FailedSignature key={`${failure.reason} ${failure.header} ${failure.refused} ${failure.address}`} failure={failure} />
          ))}
        </ul>
      )}
    </section>
  );
}

function FailedSignature({ failure }: { failure: Failed }): ReactElement {
  const { message, advice, refused, address, userAgent, requests, lastAt } = failure;
  return (
    <li>
      <p>
        <strong>{message}</strong> {advice}
      </p>
      <p className="small muted">
        {quantity(requests, 'request')} {refused ? 'refused' : 'accepted as unverified'}, the last one <Ago at={lastAt} />, from {address}
        {userAgent === null ? '' : ` (${userAgent})`}
      </p>
    </li>
  );
}
