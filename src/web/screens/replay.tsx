import { Link, useNavigate, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { DeleteAct } from '../app/delete-act.tsx';
import { filteredName, IdLink } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { labelOf } from '../app/resource-form/form-body.ts';
import { useOrganization, useRead } from '../app/use-api.ts';
import { bytes, count, duration, quantity } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { Panel } from '../ui/panel.tsx';
import { State, stateWord } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';
import { ReplayEffect } from './delete-effects.tsx';
import { type Replay, ReplayActs, ReplayProgress } from './replay-parts.tsx';

/** How far is it, and what came of it? */
export function ReplayReport(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const { id } = useParams({ from: '/o/$org/replays/$id' });
  const { data: replay, error, refetch } = useRead('GET /replays/{id}', { path: { id } }, { everyMs: 1000 });
  return (
    <Page
      title={replay === undefined ? 'Replay' : `Replay ${replay.name}`}
      crumbs={
        <>
          <Link to="/o/$org/replays" params={{ org }}>
            Replays
          </Link>
          <span>/</span>
          <span className="mono">{id}</span>
        </>
      }
      actions={
        <>
          {replay === undefined ? null : <ReplayActs replay={replay} />}
          {replay === undefined ? null : (
            <DeleteAct
              family="replays"
              id={id}
              noun="replay"
              name={replay.name}
              updatedAt={replay.updatedAt}
              onDeleted={() => void navigate({ to: '/o/$org/replays', params: { org }, replace: true })}
            >
              <ReplayEffect replay={replay} />
            </DeleteAct>
          )}
          <AsCode name="GET /replays/{id}" input={{ path: { id } }} />
        </>
      }
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {replay === undefined ? (
        error === null ? (
          <Loading what="the replay" />
        ) : null
      ) : (
        <div className="cols-side">
          <div className="stack">
            <ReplayProgress replay={replay} />
            {replay.failure === null ? null : <Failure message={`${replay.failure.message} (${replay.failure.reason})`} />}
            {replay.alreadyRan ? <p className="muted">A replay with this name and filter ran before. It was not run again.</p> : null}
            <Skipped replay={replay} />
            <Filter replay={replay} />
          </div>
          <aside className="side-facts" aria-label="Facts">
            <Facts replay={replay} />
          </aside>
        </div>
      )}
    </Page>
  );
}

function Skipped({ replay: { skippedByReason } }: { replay: Replay }): ReactElement | null {
  const reasons = Object.entries(skippedByReason);
  if (reasons.length === 0) return null;
  return (
    <section className="stack">
      <h2>Skipped</h2>
      <dl className="kv">
        {reasons.map(([reason, amount]) => (
          <div key={reason}>
            <dt>
              <code>{reason}</code>
            </dt>
            <dd>{count(amount)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** What it selects, by the names of what has the ids. */
function Filter({ replay: { filter, what } }: { replay: Replay }): ReactElement {
  const conditions = Object.entries(filter);
  return (
    <section className="stack">
      <h2>Filter</h2>
      {conditions.length === 0 ? <p className="muted">All {what}.</p> : null}
      <dl className="kv">
        {conditions.map(([name, value]) => (
          <div key={name}>
            <dt>{labelOf(name)}</dt>
            <dd>
              {[value].flat().map((each, index) => (
                <span key={String(each)}>
                  {index === 0 ? '' : ', '}
                  {name === 'status' ? stateWord(String(each)) : name.endsWith('Id') ? filteredName(String(each)) : String(each)}
                </span>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Facts({ replay }: { replay: Replay }): ReactElement {
  const { phase, what, dryRun, plan, ratePerSecond, stopAfterFailurePercent, toDestinationId, startedAt, completedAt } = replay;
  return (
    <Panel title="Replay">
      <div className="panel-body">
        <dl className="kv">
          <dt>State</dt>
          <dd>
            <State state={phase.toLowerCase()} />
          </dd>
          <dt>Sends</dt>
          <dd>{dryRun ? `nothing: it counts ${what}` : what}</dd>
          {plan === null ? null : (
            <>
              <dt>Planned</dt>
              <dd>
                {plan.isEstimate ? 'at least ' : ''}
                {count(plan.candidates)} to {quantity(plan.targets, 'target')}, {bytes(plan.bytes)}
              </dd>
              <dt>Takes</dt>
              <dd>about {duration(plan.estimatedSeconds * 1000)}</dd>
              {plan.oldest === null ? null : (
                <>
                  <dt>Oldest</dt>
                  <dd>
                    <Clock at={plan.oldest} />
                  </dd>
                </>
              )}
            </>
          )}
          <dt>Rate</dt>
          <dd>{count(ratePerSecond)} a second</dd>
          {stopAfterFailurePercent === null ? null : (
            <>
              <dt>Stops</dt>
              <dd>above {stopAfterFailurePercent} % failed</dd>
            </>
          )}
          {toDestinationId === null ? null : (
            <>
              <dt>To</dt>
              <dd>
                <IdLink id={toDestinationId} />
              </dd>
            </>
          )}
          {startedAt === null ? null : (
            <>
              <dt>Started</dt>
              <dd>
                <Clock at={startedAt} />
              </dd>
            </>
          )}
          {completedAt === null ? null : (
            <>
              <dt>Ended</dt>
              <dd>
                <Clock at={completedAt} />
              </dd>
            </>
          )}
        </dl>
      </div>
    </Panel>
  );
}
