import { type ReactElement, use } from 'react';
import { count, duration, quantity } from '../ui/format.ts';
import { Panel } from '../ui/panel.tsx';
import { Clock, dayOf, Minute, TimeOfDay, ZoneContext } from '../ui/time.tsx';
import { jitterPercent, plannedAttempts, type Waiting } from './retry-times.ts';

const shownAttempts = 12;

export interface RetryScheduleProps {
  /** What waits for its next attempt. `nextAttemptAt` null: nothing is due. */
  waiting: Omit<Waiting, 'nextAttemptAt'> & { nextAttemptAt: string | null };
  /** The waits before the retries; null: those of the installation, which the API does not show. */
  delaysMs: readonly number[] | null;
}

/** When the next attempts are made, if they all fail; nothing for what has no attempt ahead. */
export function RetrySchedule({ waiting, delaysMs }: RetryScheduleProps): ReactElement | null {
  const { attempts, maxAttempts, nextAttemptAt, expiresAt } = waiting;
  if (nextAttemptAt === null || attempts >= maxAttempts) return null;
  const all =
    delaysMs === null
      ? [{ number: attempts + 1, at: nextAttemptAt, waitMs: null }]
      : plannedAttempts({ ...waiting, nextAttemptAt }, delaysMs);
  const shown = all.slice(0, shownAttempts);
  const last = all.at(-1)?.number ?? 0;
  return (
    <Panel title="Next attempts" hint={`${count(maxAttempts - attempts)} left`} isRegion>
      <div className="panel-body stack">
        <dl className="kv is-tight">
          {shown.map(({ number, at, waitMs }) => (
            <div key={number}>
              <dt>Attempt {number}</dt>
              <dd>
                {waitMs === null ? (
                  <Clock at={at} />
                ) : (
                  <>
                    about <MinuteOf at={at} /> <span className="muted">+{duration(waitMs)}</span>
                  </>
                )}
              </dd>
            </div>
          ))}
        </dl>
        {all.length > shown.length ? <p className="small muted">And {count(all.length - shown.length)} more.</p> : null}
        <p className="small muted">
          {delaysMs === null
            ? 'The waits after that are those of the installation.'
            : `If each of them fails. A wait is up to ${jitterPercent} % longer or shorter by chance, and longer where the receiver requests it.`}
          {last < maxAttempts && delaysMs !== null && expiresAt !== null
            ? ` It expires before ${quantity(maxAttempts - last, 'more attempt')}.`
            : ''}
        </p>
      </div>
    </Panel>
  );
}

/** With its day where that is not today. */
function MinuteOf({ at }: { at: string }): ReactElement {
  const zone = use(ZoneContext);
  return dayOf(new Date(at), zone) === dayOf(new Date(), zone) ? <TimeOfDay at={at} /> : <Minute at={at} />;
}
