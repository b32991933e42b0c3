import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../app/use-api.ts';
import { count, shortId } from '../ui/format.ts';
import { laidOut } from '../ui/json-layout.ts';
import { Failure } from '../ui/notices.tsx';
import { Panel } from '../ui/panel.tsx';
import { Progress } from '../ui/progress.tsx';
import { State } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';
import { DiffLine } from './attempt-comparison.tsx';
import type { KindOfLab } from './lab-kinds.ts';
import type { Outcome } from './lab-outcomes.ts';
import type { LabRow, Run } from './lab-run.ts';
import { lineDiff } from './line-diff.ts';

const states = { passes: 'delivered', fails: 'filtered', skipped: 'pending', error: 'failed' } as const;
const maxReasons = 5;
const maxDiffLines = 500;

/** What would pass, and why the rest would not. */
export function LabResults({ run, kind }: { run: Run; kind: KindOfLab }): ReactElement {
  const { rows, isRunning, error } = run;
  const [chosen, setChosen] = useState<string | null>(null);
  const numberOf = (result: Outcome['result']): number => rows.filter(({ outcome }) => outcome?.result === result).length;
  const [passes, fails, skipped, errors] = [numberOf('passes'), numberOf('fails'), numberOf('skipped'), numberOf('error')];
  const done = passes + fails + skipped + errors;
  const open = chosen ?? rows.find(({ outcome }) => outcome?.made !== undefined)?.event.id;
  return (
    <Panel
      title="Results"
      hint={
        <span role="status">
          {isRunning ? `${count(done)} of ${count(rows.length)} tried: ` : ''}
          {count(passes)} {(passes === 1 ? kind.passes : (kind.severalPass ?? kind.passes)).toLowerCase()}, {count(fails)}{' '}
          {kind.fails.toLowerCase()}, {count(errors)} failed
          {skipped === 0 ? '' : `, ${count(skipped)} skipped`}
        </span>
      }
      isRegion
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} />}
      <div className="panel-body">
        <Progress
          label="Events tried"
          total={rows.length}
          parts={[
            { fill: 'f-ok', value: passes },
            { fill: 'f-idle', value: fails + skipped },
            { fill: 'f-bad', value: errors },
          ]}
        />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="table-wrap" tabIndex={0} aria-label="Events">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Result</th>
              <th scope="col">Why</th>
              <th scope="col">Event</th>
              <th scope="col">Received</th>
              <th scope="col" className="p2">
                {kind.isOfWebhooks ? 'Event type' : 'Source'}
              </th>
              {kind.isOfWebhooks ? null : (
                <th scope="col" className="p2">
                  Type
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <ResultRow
                key={row.event.id}
                row={row}
                kind={kind}
                isOpen={open === row.event.id}
                toggle={() => setChosen(open === row.event.id ? '' : row.event.id)}
              />
            ))}
          </tbody>
        </table>
      </section>
    </Panel>
  );
}

interface ResultRowProps {
  row: LabRow;
  kind: KindOfLab;
  isOpen: boolean;
  toggle: () => void;
}

function ResultRow({ row: { event, outcome }, kind, isOpen, toggle }: ResultRowProps): ReactElement {
  const org = useOrganization();
  const words = { passes: kind.passes, fails: kind.fails, skipped: 'Skipped', error: 'Failed' } as const;
  const made = outcome?.made;
  return (
    <>
      <tr>
        <td>
          {outcome === null ? (
            <State state="pending" word="Waiting" />
          ) : (
            <State state={states[outcome.result]} word={words[outcome.result]} />
          )}
        </td>
        <td className="wrap">
          {outcome?.why.slice(0, maxReasons).map((reason) => (
            <div key={reason}>{reason}</div>
          ))}
          {outcome !== null && outcome.why.length > maxReasons ? (
            <div className="dim">and {outcome.why.length - maxReasons} more</div>
          ) : null}
          {made === undefined ? null : (
            <button type="button" className="btn is-sm" aria-expanded={isOpen} onClick={toggle}>
              {isOpen ? 'Hide the output' : 'Show the output'}
            </button>
          )}
        </td>
        <td>
          <Link
            className="id"
            to={kind.isOfWebhooks ? '/o/$org/id/$id' : '/o/$org/events/$id'}
            params={{ org, id: event.id }}
            title={event.id}
          >
            {shortId(event.id)}
          </Link>
        </td>
        <td className="mono">
          <Clock at={event.at} />
        </td>
        <td className="p2">{event.from}</td>
        {kind.isOfWebhooks ? null : <td className="muted p2">{event.contentType}</td>}
      </tr>
      {made !== undefined && isOpen ? (
        <tr>
          <td className="wrap" colSpan={6}>
            <SideBySide
              label={`Output for ${event.id}`}
              titles={['Payload', 'Output']}
              before={laidOut(made.input)}
              after={laidOut(made.output)}
            />
          </td>
        </tr>
      ) : null}
    </>
  );
}

interface SideBySideProps {
  label: string;
  titles: readonly [string, string];
  before: readonly string[];
  after: readonly string[];
}

/** Two texts beside each other, and where they differ. */
export function SideBySide({ label, titles: [one, other], before, after }: SideBySideProps): ReactElement {
  const rows = lineDiff(before, after);
  return (
    <>
      <table className="diff-rows is-lines" aria-label={label}>
        <colgroup>
          <col className="k" />
          <col />
          <col />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">
              <span className="vh">Line</span>
            </th>
            <th scope="col">{one}</th>
            <th scope="col">{other}</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, maxDiffLines).map((row) => (
            <DiffLine key={row.name} row={row} />
          ))}
        </tbody>
      </table>
      {rows.length > maxDiffLines ? <p className="muted">{count(rows.length - maxDiffLines)} more lines are not shown.</p> : null}
    </>
  );
}
