import { type ReactElement, useDeferredValue, useEffect, useMemo, useState } from 'react';
import { count } from './format.ts';
import { Icon } from './icon.tsx';
import { hitLimit, hitsIn, type Span } from './text-lines.ts';

export interface FindState {
  wanted: string;
  setWanted: (wanted: string) => void;
  hits: readonly number[];
  /** Position among the hits; -1: at none. */
  at: number;
  go: (step: 1 | -1) => void;
}

/** Searches lines for a text. `goTo` gets the line of each hit that the reader comes to, the first one at once. */
export function useFind(text: string, spans: readonly Span[], goTo: (line: number) => void): FindState {
  const [wanted, setWanted] = useState('');
  const [at, setAt] = useState(0);
  const settled = useDeferredValue(wanted);
  const hits = useMemo(() => hitsIn(text, spans, settled), [text, spans, settled]);
  const show = (position: number): void => {
    setAt(position);
    const line = hits[position];
    if (line !== undefined) goTo(line);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: only other hits lead to the first one
  useEffect(() => show(0), [hits]);
  return { wanted, setWanted, hits, at: hits.length === 0 ? -1 : at, go: (step) => show((at + step + hits.length) % hits.length) };
}

/** The field of a search in a text, its number of hits, and the way through them. */
export function Find({ find }: { find: FindState }): ReactElement {
  const { wanted, setWanted, hits, at, go } = find;
  const total = `${count(hits.length)}${hits.length === hitLimit ? ' or more' : ''}`;
  return (
    <search className="payload-bar">
      <input
        className="input is-sm"
        type="search"
        aria-label="Search the payload"
        placeholder="Search"
        value={wanted}
        onChange={({ target }) => setWanted(target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || hits.length === 0) return;
          event.preventDefault();
          go(event.shiftKey ? -1 : 1);
        }}
      />
      <span className="small muted nowrap" role="status">
        {wanted === '' ? '' : hits.length === 0 ? 'No hit' : `${count(at + 1)} of ${total}`}
      </span>
      <button
        type="button"
        className="btn is-quiet is-sm is-icon"
        aria-label="Previous hit"
        title="Previous hit"
        disabled={hits.length === 0}
        onClick={() => go(-1)}
      >
        <Icon name="up" />
      </button>
      <button
        type="button"
        className="btn is-quiet is-sm is-icon"
        aria-label="Next hit"
        title="Next hit"
        disabled={hits.length === 0}
        onClick={() => go(1)}
      >
        <Icon name="down" />
      </button>
    </search>
  );
}
