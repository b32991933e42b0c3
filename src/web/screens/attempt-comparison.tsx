import { type ReactElement, useState } from 'react';
import { State } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';
import { attemptDiff, type DiffPart, differing } from './attempt-diff.ts';
import type { Attempt } from './attempts.tsx';
import type { DiffRow } from './line-diff.ts';

/** What changed between two attempts? */
export function AttemptComparison({ before, after }: { before: Attempt; after: Attempt }): ReactElement {
  const [onlyChanges, setOnlyChanges] = useState(true);
  const parts = attemptDiff(before, after);
  return (
    <section className="panel" aria-label="Comparison">
      <label className="check small">
        <input type="checkbox" checked={onlyChanges} onChange={({ target }) => setOnlyChanges(target.checked)} />
        Only what differs
      </label>
      <table className="diff-rows">
        <colgroup>
          <col className="k" />
          <col />
          <col />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">
              <span className="vh">Field</span>
            </th>
            <Head attempt={before} />
            <Head attempt={after} />
          </tr>
        </thead>
        <tbody>
          {parts.map((part) => (
            <Part key={part.title} part={part} onlyChanges={onlyChanges} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Head({ attempt: { number, at, isSuccess } }: { attempt: Attempt }): ReactElement {
  return (
    <th scope="col">
      <span className="row">
        <State state={isSuccess ? 'delivered' : 'failed'} word={`Attempt ${number}`} isPill />
        <span className="muted small">
          {isSuccess ? 'delivered' : 'failed'} <Clock at={at} />
        </span>
      </span>
    </th>
  );
}

function Part({ part: { title, rows }, onlyChanges }: { part: DiffPart; onlyChanges: boolean }): ReactElement | null {
  if (rows.length === 0) return null;
  const equal = rows.filter(({ isEqual }) => isEqual);
  const shown = onlyChanges ? rows.filter(({ isEqual }) => !isEqual) : rows;
  return (
    <>
      <tr>
        <th scope="colgroup" colSpan={3}>
          {title}
        </th>
      </tr>
      {shown.map((row) => (
        <DiffLine key={row.name} row={row} />
      ))}
      {onlyChanges && equal.length > 0 ? (
        <tr className="same">
          <th scope="row">{shown.length === 0 ? `all ${equal.length}` : `${equal.length} more`}</th>
          <td colSpan={2}>equal</td>
        </tr>
      ) : null}
    </>
  );
}

/** A row before and after, with differences marked. */
export function DiffLine({ row: { name, before, after, isEqual } }: { row: DiffRow }): ReactElement {
  if (isEqual)
    return (
      <tr className="same">
        <th scope="row">{name}</th>
        <td colSpan={2}>{before}</td>
      </tr>
    );
  const [start, removed, end] = differing(before ?? '', after ?? '');
  const [, added] = differing(after ?? '', before ?? '');
  return (
    <tr className="is-changed">
      <th scope="row">{name}</th>
      <td>
        {before === null ? <span className="dim">–</span> : start}
        {removed === '' ? null : <del>{removed}</del>}
        {end}
      </td>
      <td>
        {after === null ? <span className="dim">–</span> : start}
        {added === '' ? null : <ins>{added}</ins>}
        {end}
      </td>
    </tr>
  );
}
