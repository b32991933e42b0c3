import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, type ReactNode, useMemo } from 'react';
import type { ApiError } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { useKeys } from '../app/keys.ts';
import { Page } from '../app/page.tsx';
import { useRead } from '../app/use-api.ts';
import { shortId } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { AttemptComparison } from './attempt-comparison.tsx';
import type { SentTo } from './attempt-curl.ts';
import { type Attempt, AttemptDetail, AttemptStrip, Waterfall } from './attempts.tsx';
import { Advice, ExplanationLine, Steps } from './explanation.tsx';

export interface OutcomePageProps {
  id: string;
  title: string;
  crumb: ReactNode;
  attempts: readonly Attempt[] | undefined;
  /** Null: its target cannot be read, or gets no requests. */
  sentTo: SentTo | null;
  error: ApiError | null;
  actions: ReactNode;
  facts: ReactNode;
}

/** What became of a delivery or message: the answer, its story, its attempts, and two of them compared. */
export function OutcomePage({ id, title, crumb, attempts, sentTo, error, actions, facts }: OutcomePageProps): ReactElement {
  const { data: explanation, error: unexplained } = useRead('GET /explain/{id}', { path: { id } }, { everyMs: 2000 });
  // The explanation has details of what is missing.
  const failure = unexplained ?? error;
  return (
    <Page
      title={`${title} ${shortId(id)}`}
      crumbs={
        <>
          {crumb}
          <span>/</span>
          <span className="mono">{id}</span>
        </>
      }
      actions={
        <>
          {actions}
          <AsCode name="GET /explain/{id}" input={{ path: { id } }} />
        </>
      }
    >
      {failure === null ? null : <Failure message={failure.message} requestId={failure.requestId} />}
      {explanation === undefined ? (
        failure === null ? (
          <Loading what="its story" />
        ) : null
      ) : (
        <ExplanationLine explanation={explanation} question="What became of it?" />
      )}
      <div className="cols-side">
        <div className="stack">
          {explanation === undefined ? null : <Steps story={explanation.story} />}
          {attempts === undefined || attempts.length === 0 ? null : <AttemptView attempts={attempts} sentTo={sentTo} />}
        </div>
        <aside className="side-facts" aria-label="Facts">
          {facts}
          {explanation === undefined ? null : <Advice advice={explanation.advice} />}
        </aside>
      </div>
    </Page>
  );
}

function AttemptView({ attempts, sentTo }: { attempts: readonly Attempt[]; sentTo: SentTo | null }): ReactElement | null {
  const search: { attempt?: string; with?: string } = useSearch({ strict: false });
  const navigate = useNavigate();
  const last = attempts.at(-1);
  const chosen = attempts.find(({ number }) => String(number) === search.attempt) ?? last;
  const other = attempts.find(({ number }) => String(number) === search.with);
  const at = chosen === undefined ? -1 : attempts.indexOf(chosen);
  const keys = useMemo(() => {
    const go = (to: number): void => {
      const attempt = attempts[to];
      if (attempt !== undefined)
        void navigate({ to: '.', search: ((before: object) => ({ ...before, attempt: String(attempt.number) })) as never, replace: true });
    };
    return new Map([
      ['[', () => go(at - 1)],
      [']', () => go(at + 1)],
    ]);
  }, [attempts, at, navigate]);
  useKeys(keys);
  if (chosen === undefined) return null;
  const before = attempts[at - 1];
  return (
    <>
      <h2>Attempts</h2>
      <AttemptStrip attempts={attempts} chosen={chosen.number} other={other?.number ?? null} />
      <Waterfall attempts={attempts} />
      {other === undefined || other === chosen ? (
        <>
          {before === undefined ? null : (
            <p>
              <Link to="." search={((now: object) => ({ ...now, attempt: String(chosen.number), with: String(before.number) })) as never}>
                Compare attempt {chosen.number} with attempt {before.number}
              </Link>
            </p>
          )}
          <AttemptDetail attempt={chosen} sentTo={sentTo} />
        </>
      ) : (
        <>
          <p>
            <Link to="." search={((now: object) => ({ ...now, with: undefined })) as never}>
              Show attempt {chosen.number} alone
            </Link>
          </p>
          <AttemptComparison before={other.number < chosen.number ? other : chosen} after={other.number < chosen.number ? chosen : other} />
        </>
      )}
    </>
  );
}
