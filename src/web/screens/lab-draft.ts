import { useState } from 'react';
import type { Draft } from './lab-kinds.ts';

interface StoredValue {
  draft: Draft;
  /** What was stored when the draft was begun. */
  base: Draft;
}

/** Unsaved text survives a change of screen. A text as it is stored is no draft: it would hide what others write. */
const drafts = new Map<string, StoredValue>();

export interface DraftState {
  draft: Draft;
  /** What was stored when the draft was begun. */
  base: Draft;
  isChanged: boolean;
  /** Another has saved something else since the draft was begun. */
  isOutdated: boolean;
  edit: (change: Partial<Draft>) => void;
  undo: () => void;
  /** The draft is to replace what is stored now. */
  rebase: () => void;
  /** `sent` is stored, as `stored`. What was typed since stays a draft. */
  wasSaved: (sent: Draft, stored: Draft) => void;
}

/** What is edited under this key. It begins with what is stored. */
export function useDraft(key: string, begun: Draft): DraftState {
  const [kept, setKept] = useState(drafts.get(key) ?? null);
  // The API may write what was saved in another order, or with other blanks.
  const [saved, setSaved] = useState<Draft | null>(null);
  const { draft, base } = kept ?? { draft: begun, base: begun };
  const isStored = (one: Draft): boolean => isSameDraft(one, begun) || isSameDraft(one, saved);
  const isChanged = !isStored(draft);
  const keep = (next: StoredValue): void => {
    if (isStored(next.draft)) drafts.delete(key);
    else drafts.set(key, next);
    setKept(isSameDraft(next.draft, begun) ? null : next);
  };
  return {
    draft,
    base,
    isChanged,
    isOutdated: isChanged && !isSameDraft(base, begun),
    edit: (change) => keep({ draft: { ...draft, ...change }, base }),
    undo: () => {
      drafts.delete(key);
      setKept(null);
    },
    rebase: () => keep({ draft, base: begun }),
    wasSaved: (sent, stored) => {
      const typed = drafts.get(key);
      if (typed !== undefined && isSameDraft(sent, typed.draft)) drafts.delete(key);
      else if (typed !== undefined) drafts.set(key, { ...typed, base: stored });
      setKept((before) => (before === null ? null : { ...before, base: stored }));
      setSaved(sent);
    },
  };
}

export function isSameDraft(one: Draft, other: Draft | null | undefined): boolean {
  return one.text === other?.text && one.type === other.type;
}
