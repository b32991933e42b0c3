import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { rangeOf } from '../app/range.ts';
import { useCursorList, useOrganization } from '../app/use-api.ts';
import { count, quantity } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { FailureWords } from './endpoint-failure.tsx';

const causesShown = 6;
const { said } = rangeOf('24h');

interface Failed {
  lastErrorType: string | null;
  lastResponseStatus: number | null;
  lastErrorMessage: string | null;
}

/** Why attempts at a destination have failed in the last day, the most frequent cause first. */
export function DeliveryCauses({ destinationId, from }: { destinationId: string; from: string }): ReactElement {
  const org = useOrganization();
  const list = useCursorList('GET /deliveries', { destinationId: [destinationId], failedFrom: from });
  return (
    <Causes
      rows={list.rows}
      list={list}
      show={({ lastErrorType, lastResponseStatus }) => (
        <Link
          to="/o/$org/deliveries"
          params={{ org }}
          search={{ destinationId, failedFrom: from, ...causeSearch(lastErrorType, lastResponseStatus) }}
        >
          Show
        </Link>
      )}
    />
  );
}

/** The same of a webhook endpoint. */
export function MessageCauses({ endpointId, from }: { endpointId: string; from: string }): ReactElement {
  const org = useOrganization();
  const list = useCursorList('GET /outbound-messages', { endpointId: [endpointId], failedFrom: from });
  return (
    <Causes
      rows={list.rows}
      list={list}
      show={({ lastErrorType, lastResponseStatus }) => (
        <Link to="/o/$org/messages" params={{ org }} search={{ endpointId, ...causeSearch(lastErrorType, lastResponseStatus) }}>
          Show
        </Link>
      )}
    />
  );
}

interface CausesProps {
  rows: readonly Failed[];
  list: { error: { message: string; requestId: string | null } | null; isLoading: boolean; hasMore: boolean };
  show: (failed: Failed) => ReactElement;
}

function Causes({ rows, list, show }: CausesProps): ReactElement {
  const groups = new Map<string, { first: Failed; number: number }>();
  for (const row of rows) {
    if (row.lastErrorMessage === null) continue;
    const key = `${row.lastErrorType} ${row.lastResponseStatus} ${row.lastErrorMessage}`;
    const group = groups.get(key);
    groups.set(key, { first: group?.first ?? row, number: (group?.number ?? 0) + 1 });
  }
  const sorted = [...groups].toSorted(([, one], [, other]) => other.number - one.number).slice(0, causesShown);
  return (
    <section aria-label="Failures by cause">
      <header>
        <h3>Failures by cause</h3>
        <span className="hint">{list.hasMore ? `of the newest ${quantity(rows.length, 'message')}` : said}</span>
      </header>
      {list.error === null ? null : <Failure message={list.error.message} requestId={list.error.requestId} />}
      {list.isLoading ? <Loading what="failures" /> : null}
      {!list.isLoading && list.error === null && sorted.length === 0 ? <p className="muted small">No attempt has failed.</p> : null}
      {sorted.length === 0 ? null : (
        <table className="causes">
          <thead className="vh">
            <tr>
              <th scope="col">Messages</th>
              <th scope="col">Cause</th>
              <th scope="col">Link</th>
            </tr>
          </thead>
          <tbody>
            {sorted.map(([key, { first, number }]) => (
              <tr key={key}>
                <td className="num">{count(number)}</td>
                <td>
                  {first.lastResponseStatus === null ? <span className="code is-bad">{first.lastErrorType} </span> : null}
                  <FailureWords status={first.lastResponseStatus} message={first.lastErrorMessage} />
                </td>
                <td className="end">{show(first)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function causeSearch(errorType: string | null, status: number | null): { errorType?: string; responseStatus?: string } {
  if (status !== null) return { responseStatus: String(status) };
  return errorType === null ? {} : { errorType };
}
