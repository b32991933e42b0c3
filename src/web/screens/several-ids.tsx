import { Link, useSearch } from '@tanstack/react-router';
import { type ReactElement, useCallback, useEffect, useState } from 'react';
import { type Answer, ApiError, call } from '../api/client.ts';
import { idsIn, maxIds } from '../app/id-list.ts';
import { WithLinks } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { apiErrorOf, retryRateLimited } from '../app/retry-rate-limited.ts';
import { useOrganization } from '../app/use-api.ts';
import { forEachAtOnce } from '../ui/at-once.ts';
import { count, quantity } from '../ui/format.ts';
import { Empty, Failure } from '../ui/notices.tsx';
import { State } from '../ui/state.tsx';

type Explanation = Answer<'GET /explain/{id}'>;

const atOnce = 4;

/** What became of each of these ids? */
export function SeveralIds(): ReactElement {
  const organization = useOrganization();
  const { ids = '' } = useSearch({ from: '/o/$org/ids' });
  return <Ids key={`${organization} ${ids}`} all={idsIn(ids)} />;
}

function Ids({ all }: { all: readonly string[] }): ReactElement {
  const [ids] = useState(() => all.slice(0, maxIds));
  const { answers, retry } = useExplanations(ids);
  const failures = [...answers.values()].filter((answer) => answer instanceof ApiError && answer.isPassing);
  const [failure] = failures;
  const title = quantity(ids.length, 'id');
  return (
    <Page title={title} sub={all.length > ids.length ? `The first ${maxIds} of ${count(all.length)}.` : undefined}>
      <p className="small muted" role="status">
        {progressWords(ids.length, answers.size, failures.length)}
      </p>
      {answers.size === ids.length && failure instanceof ApiError ? (
        <Failure message={failure.message} requestId={failure.requestId} retry={retry} />
      ) : null}
      {ids.length === 0 ? (
        <Empty title="No ids">
          <p>Press Ctrl K and paste ids with blanks, commas or line breaks between them.</p>
        </Empty>
      ) : (
        <div className="table-wrap">
          <table className="table is-stack" aria-label="Ids">
            <thead>
              <tr>
                <th scope="col">Id</th>
                <th scope="col">State</th>
                <th scope="col">What became of it</th>
              </tr>
            </thead>
            <tbody>
              {ids.map((id) => (
                <IdRow key={id} id={id} answer={answers.get(id)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Page>
  );
}

/** Such as `12 of 50 read`, and at the end `48 read, 2 failed`. */
function progressWords(total: number, answered: number, failed: number): string {
  if (answered < total) return `${count(answered)} of ${count(total)} read`;
  return failed === 0 ? 'All are read.' : `${count(total - failed)} read, ${count(failed)} failed`;
}

/** Reads the state of each id, once. `retry`: reads those again that failed. */
function useExplanations(ids: readonly string[]): { answers: ReadonlyMap<string, Explanation | ApiError>; retry: () => void } {
  const organization = useOrganization();
  const [answers, setAnswers] = useState<ReadonlyMap<string, Explanation | ApiError>>(new Map());
  const [asked, setAsked] = useState(ids);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const ask = async (id: string): Promise<void> => {
      const explain = () => call('GET /explain/{id}', { path: { id } }, { organization, signal });
      const answer = await retryRateLimited(explain, signal).catch(apiErrorOf);
      signal.throwIfAborted();
      setAnswers((before) => new Map(before).set(id, answer));
    };
    // It rejects once the page is left.
    forEachAtOnce(asked, ask, { atOnce, signal }).catch(() => undefined);
    return () => controller.abort();
  }, [organization, asked]);
  const retry = useCallback(() => {
    const failed = [...answers].filter(([, answer]) => answer instanceof ApiError && answer.isPassing).map(([id]) => id);
    setAnswers(new Map([...answers].filter(([id]) => !failed.includes(id))));
    setAsked(failed);
  }, [answers]);
  return { answers, retry };
}

function IdRow({ id, answer }: { id: string; answer: Explanation | ApiError | undefined }): ReactElement {
  const org = useOrganization();
  const explanation = answer === undefined || answer instanceof ApiError ? null : answer;
  return (
    <tr>
      <td className="two">
        <Link className="id" to="/o/$org/id/$id" params={{ org, id }}>
          {id}
        </Link>
        {explanation === null ? null : <span className="sub">{explanation.kind}</span>}
      </td>
      <td>{explanation === null ? null : <State state={explanation.state.toLowerCase()} />}</td>
      <td className="wrap">
        {explanation !== null ? (
          <WithLinks text={explanation.summary} />
        ) : answer instanceof ApiError ? (
          <span className="c-bad">{answer.message}</span>
        ) : (
          '…'
        )}
      </td>
    </tr>
  );
}
