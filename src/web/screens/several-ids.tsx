import { type UseQueryOptions, useQueries } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { type Answer, type ApiError, call } from '../api/client.ts';
import { idsIn, mostIds } from '../app/ids.ts';
import { WithLinks } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { useOrganization } from '../app/use-api.ts';
import { count } from '../ui/format.ts';
import { Empty } from '../ui/notices.tsx';
import { State } from '../ui/state.tsx';

type Explanation = Answer<'GET /explain/{id}'>;

/** What became of each of these ids? */
export function SeveralIds(): ReactElement {
  const organization = useOrganization();
  const all = idsIn(useSearch({ from: '/o/$org/ids' }).ids ?? '');
  const ids = all.slice(0, mostIds);
  const answers = useQueries({
    queries: ids.map(
      (id): UseQueryOptions<Explanation, ApiError> => ({
        queryKey: [organization, 'GET /explain/{id}', { path: { id } }],
        queryFn: ({ signal }) => call('GET /explain/{id}', { path: { id } }, { organization, signal }),
        retry: (failures, error) => error.isPassing && failures < 3,
      }),
    ),
  });
  const read = answers.filter(({ isPending }) => !isPending).length;
  return (
    <Page title={`${count(ids.length)} ids`} sub={all.length > ids.length ? `The first ${mostIds} of ${count(all.length)}.` : undefined}>
      <p className="small muted" role="status">
        {read < ids.length ? `${count(read)} of ${count(ids.length)} read` : 'All are read.'}
      </p>
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
              {ids.map((id, index) => (
                <IdRow key={id} id={id} answer={answers[index]?.data} error={answers[index]?.error ?? null} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Page>
  );
}

interface IdRowProps {
  id: string;
  answer: Explanation | undefined;
  error: ApiError | null;
}

function IdRow({ id, answer, error }: IdRowProps): ReactElement {
  const org = useOrganization();
  return (
    <tr>
      <td className="two">
        <Link className="id" to="/o/$org/id/$id" params={{ org, id }}>
          {id}
        </Link>
        {answer === undefined ? null : <span className="sub">{answer.kind}</span>}
      </td>
      <td>{answer === undefined ? null : <State state={answer.state.toLowerCase()} />}</td>
      <td className="wrap">
        {answer !== undefined ? <WithLinks text={answer.summary} /> : error !== null ? <span className="c-bad">{error.message}</span> : '…'}
      </td>
    </tr>
  );
}
