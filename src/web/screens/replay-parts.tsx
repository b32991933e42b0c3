import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import type { Answer } from '../api/client.ts';
import { WithLinks } from '../app/names.tsx';
import { useOrganization, useRead, useWrite } from '../app/use-api.ts';
import { Confirm } from '../ui/confirm.tsx';
import { count, percent, quantity } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Failure } from '../ui/notices.tsx';
import { Progress } from '../ui/progress.tsx';
import { State } from '../ui/state.tsx';
import { Countdown } from '../ui/time.tsx';

export type Replay = Answer<'GET /replays/{id}'>;

const everyMs = 2000;
const reasons: Record<string, string> = {
  TargetDisabled: 'a target is disabled',
  CircuitOpen: 'the circuit of a target is open',
  TargetFull: 'a target has as many waiting messages as it may have',
  InFlightLimit: 'as many of its messages are queued as may be at a time',
  QuotaReached: 'the quota of the organization is reached',
  QueueFull: 'the queue of the organization is full',
  RedisFull: 'Redis is full',
  TooManyReplays: 'as many replays run as may run in an organization',
};

export function newReplayName(): string {
  return `replay-${Date.now().toString(36)}`;
}

export function isUnderWay({ phase }: Replay): boolean {
  return phase === 'Planning' || phase === 'Running';
}

/** What a replay does not send when it ends now. While it is planned, the number of messages is unknown. */
export function unsentWords({ plan, queued, skipped }: Replay): string {
  if (plan === null) return 'Its messages are not sent again.';
  const left = quantity(Math.max(0, plan.candidates - queued - skipped), 'message is', 'messages are');
  return `${plan.isEstimate ? 'At least ' : ''}${left} not sent again.`;
}

/** What it sends all the same when it ends now. */
export function queuedWords({ queued }: Replay): string {
  return queued === 0 ? '' : `${quantity(queued, 'message is', 'messages are')} queued already and will be sent.`;
}

/** Those under way, with their progress. */
export function RunningReplays(): ReactElement | null {
  const running = useRead('GET /replays', { query: { phase: 'Running', pageSize: 10 } }, { everyMs });
  const replays = running.data?.data.filter(({ dryRun }) => !dryRun) ?? [];
  if (replays.length === 0) return null;
  return (
    <>
      {replays.map((replay) => (
        <ReplayPanel key={replay.id} replay={replay} />
      ))}
    </>
  );
}

function ReplayPanel({ replay }: { replay: Replay }): ReactElement {
  const org = useOrganization();
  return (
    <section className="panel" aria-label={`Replay ${replay.name}`}>
      <header className="panel-head">
        <State state={replay.phase.toLowerCase()} isPill />
        <h2>
          <Link to="/o/$org/replays/$id" params={{ org, id: replay.id }}>
            {replay.name}
          </Link>
        </h2>
        <span className="spacer" />
        <ReplayActs replay={replay} isSmall />
      </header>
      <div className="panel-body">
        <ReplayProgress replay={replay} />
      </div>
    </section>
  );
}

/** What has been queued, sent and refused, of what was planned. */
export function ReplayProgress({ replay }: { replay: Replay }): ReactElement {
  const { plan, queued, skipped, delivered, failed, endedOtherwise, stopAfterFailurePercent, estimatedCompletionAt, waiting, name } =
    replay;
  const total = plan?.candidates ?? 0;
  const done = queued + skipped;
  const ended = delivered + failed;
  return (
    <div className="stack">
      <div className="row is-base">
        <strong className="figure">{count(done)}</strong>
        <span className="muted">
          of {plan?.isEstimate === true ? 'about ' : ''}
          {count(total)} queued{total === 0 ? '' : `, ${percent(Math.min(1, done / total))}`}
        </span>
        <span className="spacer" />
        {estimatedCompletionAt !== null && isUnderWay(replay) ? (
          <span className="medium">
            <Countdown at={estimatedCompletionAt} /> left
          </span>
        ) : null}
      </div>
      <Progress
        label={`Replay ${name}`}
        total={total}
        parts={[
          { fill: 'f-ok', value: delivered },
          { fill: 'f-bad', value: failed },
          { fill: 'f-idle', value: skipped + endedOtherwise },
          { fill: 'f-run', value: Math.max(0, queued - delivered - failed - endedOtherwise) },
        ]}
      />
      <div className="legend">
        <Count mark="delivered" word="delivered" value={delivered} />
        <Count mark="failed" word="failed" value={failed} />
        <Count mark="filtered" word="skipped" value={skipped} />
        {endedOtherwise === 0 ? null : <Count mark="cancelled" word="ended otherwise" value={endedOtherwise} />}
        <Count mark="processing" word="on the way" value={Math.max(0, queued - delivered - failed - endedOtherwise)} />
        {stopAfterFailurePercent === null ? null : (
          <span className="muted">
            stops above {stopAfterFailurePercent} % failed{ended === 0 ? '' : `, now ${percent(failed / ended)}`}
          </span>
        )}
      </div>
      {waiting === null || !isUnderWay(replay) ? null : <WaitingNote reason={waiting.reason} message={waiting.message} />}
    </div>
  );
}

/** Why nothing is sent at the moment. */
function WaitingNote({ reason, message }: { reason: string; message: string }): ReactElement {
  return (
    <div className="note is-warn">
      <Icon name="warn" />
      <p>
        <strong>It waits: {reasons[reason] ?? message}.</strong> {reasons[reason] === undefined ? null : <WithLinks text={message} />} It
        continues by itself. <code>{reason}</code>
      </p>
    </div>
  );
}

function Count({ mark, word, value }: { mark: string; word: string; value: number }): ReactElement {
  return (
    <span>
      <State state={value === 0 ? 'pending' : mark} word={word} /> <b>{count(value)}</b>
    </span>
  );
}

/** Suspend, resume, and cancel after a question. */
export function ReplayActs({ replay, isSmall = false }: { replay: Replay; isSmall?: boolean }): ReactElement | null {
  const update = useWrite('PATCH /replays/{id}');
  const [asks, setAsks] = useState(false);
  const { id, name, phase, suspend } = replay;
  const size = isSmall ? ' is-sm' : '';
  if (!isUnderWay(replay) && phase !== 'Suspended') return null;
  const change = (body: { suspend?: boolean; cancel?: boolean }): void =>
    // An answer to another change leaves the question open.
    update.mutate({ path: { id }, body }, { onSuccess: () => (body.cancel === true ? setAsks(false) : undefined) });
  return (
    <>
      {update.error === null || asks ? null : <Failure message={update.error.message} requestId={update.error.requestId} />}
      <button type="button" className={`btn${size}`} disabled={update.isPending} onClick={() => change({ suspend: !suspend })}>
        <Icon name={suspend ? 'play' : 'pause'} />
        {suspend ? 'Resume' : 'Suspend'}
      </button>
      <button type="button" className={`btn is-quiet${size}`} onClick={() => setAsks(true)}>
        Cancel…
      </button>
      <Confirm
        title={`Cancel replay ${name}?`}
        act="Cancel the replay"
        keep="Keep it"
        isDanger
        isOpen={asks}
        isPending={update.isPending}
        error={update.error}
        onClose={() => setAsks(false)}
        onAct={() => change({ cancel: true })}
      >
        <p>
          {unsentWords(replay)} {queuedWords(replay)} A cancelled replay cannot be resumed; a new one can be planned.
        </p>
      </Confirm>
    </>
  );
}
