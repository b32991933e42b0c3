import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import { WithLinks } from '../app/names.tsx';
import { useRead } from '../app/use-api.ts';
import { AnswerLine } from '../ui/answer.tsx';
import { duration } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Command, Failure } from '../ui/notices.tsx';
import { Panel } from '../ui/panel.tsx';
import { type Tone, toneOfState } from '../ui/state.tsx';
import { Clock, Countdown } from '../ui/time.tsx';

type Explanation = Answer<'GET /explain/{id}'>;

/** What became of it, why, and what happens by itself. */
export function ExplanationLine({
  explanation: { state, summary, waitsFor, next },
  question,
}: {
  explanation: Explanation;
  question: string;
}): ReactElement {
  const second = furtherText(summary, waitsFor ?? next);
  const countdown = next === null || next.at === null ? undefined : <UntilNext at={next.at} what={next.what} />;
  return (
    <AnswerLine tone={toneOfAnswer(state.toLowerCase(), waitsFor)} question={question} act={countdown}>
      <p>
        <WithLinks text={summary} />
      </p>
      {second === undefined ? null : (
        <p>
          <WithLinks text={second} />
        </p>
      )}
    </AnswerLine>
  );
}

/** What has failed and waits for a retry has not failed for good. */
function toneOfAnswer(state: string, waitsFor: Explanation['waitsFor']): Tone {
  if (state !== 'failed' || waitsFor === null) return toneOfState(state);
  return toneOfState(waitsFor.reason.includes('circuit') ? 'circuit_open' : 'retrying');
}

/** Details that the summary omits. */
function furtherText(summary: string, further: { text: string } | null): string | undefined {
  return further === null || summary.includes(further.text) ? undefined : further.text;
}

function UntilNext({ at, what }: { at: string; what: string }): ReactElement {
  return (
    <div className="countdown" role="timer">
      <div className="end">
        <div className="clock">
          <Countdown at={at} />
        </div>
        <div className="small muted">until the next {what}</div>
      </div>
    </div>
  );
}

/** The steps of its story, with the time that each took. */
export function Steps({ story }: { story: Explanation['story'] }): ReactElement {
  return (
    <ol className="story">
      {story.map((step, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two steps may be equal, and their order stays
        <li key={index} className={`is-${toneOf(step)}`}>
          <Icon name={stepMarks[toneOf(step)]} size={20} />
          <div>
            <div className="what">
              <span className="how">
                <WithLinks text={step.text} />
              </span>
              {step.at === null ? null : (
                <span className="at">
                  <Clock at={step.at} />
                  <Later from={story[index - 1]?.at ?? null} to={step.at} />
                </span>
              )}
            </div>
          </div>
        </li>
      ))}
    </ol>
  );
}

function Later({ from, to }: { from: string | null; to: string }): ReactElement | null {
  if (from === null) return null;
  const ms = Date.parse(to) - Date.parse(from);
  return ms <= 0 ? null : <span className="dim"> +{duration(ms)}</span>;
}

/** Advice, with the command that does it. */
export function Advice({ advice }: { advice: Explanation['advice'] }): ReactElement | null {
  if (advice.length === 0) return null;
  return (
    <Panel title="What you can do">
      <div className="panel-body stack">
        {advice.map(({ text, command }) => (
          <div key={text} className="stack">
            <p>{text}</p>
            {command === undefined ? null : <Command text={command} />}
          </div>
        ))}
      </div>
    </Panel>
  );
}

/** The explanation of something with an id, as running text. */
export function ExplanationText({ id }: { id: string }): ReactElement | null {
  const { data, error } = useRead('GET /explain/{id}', { path: { id } }, { everyMs: 5000 });
  if (error !== null) return <Failure message={error.message} requestId={error.requestId} />;
  if (data === undefined) return null;
  const second = furtherText(data.summary, data.waitsFor ?? data.next);
  return (
    <>
      <p>
        <WithLinks text={data.summary} />
      </p>
      {second === undefined ? null : (
        <p className="muted">
          <WithLinks text={second} />
        </p>
      )}
    </>
  );
}

const stepTones = new Map<string, Tone>([
  ['dead_letter', 'bad'],
  ['failure', 'bad'],
  ['filter_error', 'bad'],
  ['last_failure', 'bad'],
  ['event_gone', 'bad'],
  ['failed_over', 'warn'],
  ['waiting', 'warn'],
  ['backlog', 'warn'],
  ['circuit', 'open'],
  ['circuit_opened', 'open'],
  ['not_matched', 'idle'],
  ['filtered', 'idle'],
  ['disabled', 'idle'],
  ['endpoint_disabled', 'idle'],
  ['application_disabled', 'idle'],
  ['suspended', 'idle'],
  ['archived', 'idle'],
  ['changed', 'idle'],
  ['condition', 'idle'],
  ['settings', 'idle'],
]);
const stepMarks: Record<Tone, string> = { ok: 'ok', bad: 'fail', warn: 'warn', open: 'open', run: 'run', idle: 'skip' };

/** An attempt has failed when its step has an error. */
function toneOf({ what, data }: Explanation['story'][number]): Tone {
  if (what === 'attempt') return typeof data['errorType'] === 'string' ? 'bad' : 'ok';
  const { status } = data;
  if (typeof status === 'string') return toneOfState(status.toLowerCase());
  return stepTones.get(what) ?? 'ok';
}
