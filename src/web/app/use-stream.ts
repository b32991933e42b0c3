import { useCallback, useEffect, useRef, useState } from 'react';
import { followStream, type StreamRow, type StreamState } from '../api/event-stream.ts';
import { useOrganization } from './use-api.ts';

export interface Tail {
  /** Newest first. */
  rows: StreamRow[];
  /** Rows that wait while the reader reads. */
  waiting: number;
  /** Rows that the server left out. */
  skipped: number;
  state: StreamState;
  /** Rows may be missing. */
  hasGap: boolean;
  /** While it is held, rows wait. */
  hold: (isHeld: boolean) => void;
}

/** Rows in the page at most; older ones leave it. */
const kept = 1000;
const showEveryMs = 250;

/** The newest rows of the live stream with these parameters. */
export function useStream(query: Record<string, string | undefined>): Tail {
  const organization = useOrganization();
  const [shown, setShown] = useState<{ rows: StreamRow[]; waiting: number; skipped: number; hasGap: boolean }>({
    rows: [],
    waiting: 0,
    skipped: 0,
    hasGap: false,
  });
  const [state, setState] = useState<StreamState>({ is: 'connecting' });
  const isHeld = useRef(false);
  const key = JSON.stringify(query);
  useEffect(() => {
    const ended = new AbortController();
    let fresh: StreamRow[] = [];
    let beyond = 0;
    let skipped = 0;
    let hasGap = false;
    let hasNews = false;
    isHeld.current = false;
    setShown({ rows: [], waiting: 0, skipped: 0, hasGap: false });
    const show = (): void => {
      if (!hasNews) return;
      if (isHeld.current) {
        setShown((before) => ({ ...before, waiting: fresh.length + beyond, skipped, hasGap }));
        return;
      }
      hasNews = false;
      const news = fresh.toReversed();
      fresh = [];
      beyond = 0;
      setShown(({ rows }) => ({ rows: [...news, ...rows].slice(0, kept), waiting: 0, skipped, hasGap }));
    };
    const timer = setInterval(show, showEveryMs);
    void followStream(
      organization,
      JSON.parse(key),
      {
        onRow: (row) => {
          fresh.push(row);
          if (fresh.length > kept) {
            fresh.shift();
            beyond += 1;
          }
          hasNews = true;
        },
        onSkipped: (count) => {
          skipped += count;
          hasNews = true;
        },
        onReset: () => {
          hasGap = true;
          hasNews = true;
        },
        onState: setState,
      },
      ended.signal,
    ).catch((thrown: unknown) => setState({ is: 'lost', why: String(thrown) }));
    return () => {
      clearInterval(timer);
      ended.abort();
    };
  }, [organization, key]);
  const hold = useCallback((held: boolean) => {
    isHeld.current = held;
  }, []);
  return { ...shown, state, hold };
}
