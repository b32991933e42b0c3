import { Link } from '@tanstack/react-router';
import type { ReactElement, ReactNode } from 'react';
import type { Answer } from '../api/client.ts';
import type { Range } from '../app/range.ts';
import { useOrganization } from '../app/use-api.ts';
import { count, duration, percent, quantity } from '../ui/format.ts';
import { Until } from '../ui/time.tsx';
import type { TargetList } from './target-data.ts';

type Series = Answer<'GET /analytics/series'>;

/** What waits: deliveries to destinations, and messages to webhook endpoints. */
interface Waiting {
  backlog: number;
  toEndpoints: number;
  oldestAgeMs: number | null;
}

/** Null: unknown. */
export function waitingIn({ now }: Series, ofEndpoints: Series | undefined): Waiting | null {
  const backlog = now?.backlog ?? null;
  if (backlog === null) return null;
  const toEndpoints = ofEndpoints?.now?.backlog ?? 0;
  const ages = [now?.oldestAgeMs ?? null, ofEndpoints?.now?.oldestAgeMs ?? null].filter((age) => age !== null);
  return { backlog: backlog + toEndpoints, toEndpoints, oldestAgeMs: ages.length === 0 ? null : Math.max(...ages) };
}

export interface FiguresProps {
  dashboard: Answer<'GET /analytics/dashboard'>;
  waiting: Waiting | null;
  /** In the range, also those that have closed again. */
  circuitsOpened: number;
  targets: TargetList;
  dead: { deliveries: number; messages: number } | null;
  /** Undefined: the reader may not see it. */
  installation: Answer<'GET /installation'> | undefined;
  range: Range;
}

/** Numbers, most of them a way to what they count. */
export function Figures({ dashboard, waiting, circuitsOpened, targets, dead, installation, range }: FiguresProps): ReactElement {
  const org = useOrganization();
  const { total_events, successful_deliveries, failed_deliveries } = dashboard.overview;
  const ended = successful_deliveries + failed_deliveries;
  const open = targets.circuits.filter(({ state }) => state === 'open');
  const openEndpoints = targets.rows.filter(({ kind, state }) => kind === 'endpoint' && state === 'circuit_open');
  const probe = [...open, ...openEndpoints].flatMap(({ probeAt }) => probeAt ?? []).toSorted()[0];
  const { p50, p95, p99 } = dashboard.latency.percentiles;
  const openCount = open.length + openEndpoints.length;
  return (
    <dl className="figures">
      <Figure
        name="Events received"
        value={
          <Link to="/o/$org/events" params={{ org }}>
            {count(total_events)}
          </Link>
        }
        below={rate(total_events, range.ms)}
      />
      <Figure
        name="Delivered"
        value={ended === 0 ? <span className="dim">–</span> : percent(successful_deliveries / ended)}
        below={ended === 0 ? 'nothing has ended' : `${count(failed_deliveries)} of ${count(ended)} failed`}
        tone={failed_deliveries > 0 ? 'is-bad' : ''}
      />
      <Figure
        name="Waiting now"
        value={
          waiting !== null && waiting.toEndpoints === waiting.backlog && waiting.backlog > 0 ? (
            <Link to="/o/$org/messages" params={{ org }} search={{ status: 'pending,failed' }}>
              {count(waiting.backlog)}
            </Link>
          ) : (
            <Link to="/o/$org/deliveries" params={{ org }} search={{ status: 'pending,retrying,circuit_open' }}>
              {waiting === null ? '–' : count(waiting.backlog)}
            </Link>
          )
        }
        below={waitingWords(waiting)}
      />
      <Figure
        name="Open circuits"
        value={
          <Link to="/o/$org/targets" params={{ org }} search={{ state: 'circuit_open' }}>
            {count(openCount)}
          </Link>
        }
        below={
          probe === undefined ? (
            openCount === 0 ? (
              circuitsOpened === 0 ? (
                'all closed'
              ) : (
                `all closed, ${count(circuitsOpened)} opened`
              )
            ) : (
              'a probe is due'
            )
          ) : (
            <>
              next probe <Until at={probe} />
            </>
          )
        }
        tone={openCount > 0 ? 'is-open' : ''}
      />
      <Figure
        name="Dead letters"
        value={
          dead === null ? (
            <span className="dim">–</span>
          ) : (
            <Link to="/o/$org/dead-letters" params={{ org }}>
              {count(dead.deliveries + dead.messages)}
            </Link>
          )
        }
        below={dead === null ? '' : givenUpWord(dead)}
        tone={dead !== null && dead.deliveries + dead.messages > 0 ? 'is-bad' : ''}
      />
      <Figure
        name="Attempt latency"
        value={
          p95 === 0 ? (
            <span className="dim">–</span>
          ) : (
            <>
              {duration(p95)} <small>p95</small>
            </>
          )
        }
        below={p95 === 0 ? 'nothing was attempted' : `${duration(p50)} p50, ${duration(p99)} p99`}
      />
      {installation === undefined || installation.workers === null ? null : (
        <Workers workers={installation.workers.data} warnings={installation.warnings.length} />
      )}
    </dl>
  );
}

interface WorkersProps {
  workers: NonNullable<Answer<'GET /installation'>['workers']>['data'];
  /** Number of warnings of the installation. */
  warnings: number;
}

function Workers({ workers, warnings }: WorkersProps): ReactElement {
  const org = useOrganization();
  const alive = workers.filter(({ isAlive }) => isAlive).length;
  return (
    <Figure
      name="Workers alive"
      value={
        <Link to="/o/$org/installation" params={{ org }}>
          {count(alive)}
        </Link>
      }
      below={warnings === 0 ? 'no warning' : quantity(warnings, 'warning')}
      tone={alive === 0 || warnings > 0 ? 'is-bad' : ''}
    />
  );
}

function Figure({ name, value, below, tone = '' }: { name: string; value: ReactNode; below: ReactNode; tone?: string }): ReactElement {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="v">{value}</dd>
      <dd className={`d ${tone}`}>{below}</dd>
    </div>
  );
}

function waitingWords(waiting: Waiting | null): string {
  const { toEndpoints = 0, oldestAgeMs = null } = waiting ?? {};
  if (oldestAgeMs === null) return 'nothing is overdue';
  return `oldest ${duration(oldestAgeMs)}${toEndpoints === 0 ? '' : `, ${count(toEndpoints)} to endpoints`}`;
}

function givenUpWord({ deliveries, messages }: { deliveries: number; messages: number }): string {
  if (deliveries + messages === 0) return 'nothing was given up';
  if (messages === 0) return 'to destinations';
  return deliveries === 0 ? 'to endpoints' : `${count(messages)} to endpoints`;
}

/** Such as `51/s` or `4/h`, whichever is easy to read. */
function rate(events: number, ms: number): string {
  const perSecond = events / (ms / 1000);
  if (perSecond >= 1) return `${count(Math.round(perSecond))}/s`;
  const perMinute = perSecond * 60;
  return perMinute >= 1 ? `${count(Math.round(perMinute))}/min` : `${(perMinute * 60).toFixed(1).replace('.0', '')}/h`;
}
