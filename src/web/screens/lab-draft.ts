import { useState } from 'react';
import type { Draft } from './lab-kinds.ts';

/** What is not saved outlives a look at another screen. A text as it is stored is no draft: it would hide what others write. */
const drafts = new Map<string, Draft>();

export interface DraftState {
  draft: Draft;
  isChanged: boolean;
  edit: (change: Partial<Draft>) => void;
  undo: () => void;
  /** `sent` is stored. What was typed since stays a draft. */
  wasSaved: (sent: Draft) => void;
}

/** What is edited under this key. It begins with what is stored. */
export function useDraft(key: string, begun: Draft): DraftState {
  const [typed, setTyped] = useState(drafts.get(key) ?? null);
  // The API may write what was saved in another order, or with other blanks.
  const [saved, setSaved] = useState<Draft | null>(null);
  const draft = typed ?? begun;
  const isStored = (one: Draft): boolean => isSame(one, begun) || isSame(one, saved);
  return {
    draft,
    isChanged: !isStored(draft),
    edit: (change) => {
      const next = { ...draft, ...change };
      if (isStored(next)) drafts.delete(key);
      else drafts.set(key, next);
      setTyped(isSame(next, begun) ? null : next);
    },
    undo: () => {
      drafts.delete(key);
      setTyped(null);
    },
    wasSaved: (sent) => {
      if (isSame(sent, drafts.get(key))) drafts.delete(key);
      setSaved(sent);
    },
  };
}

function isSame(one: Draft, other: Draft | null | undefined): boolean {
  return one.text === other?.text && one.type === other.type;
}
