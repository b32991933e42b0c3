import { type FocusEvent, type ReactElement, useEffect, useState, useSyncExternalStore } from 'react';
import { Icon } from './icon.tsx';

export interface UndoOffer {
  /** The finished act. */
  text: string;
  /** The text once it is undone. */
  undoneText: string;
  /** Rejects with what it is refused for. */
  undo: () => Promise<unknown>;
}

type Shown = UndoOffer & { number: number };

const shownMs = 15_000;
const listeners = new Set<() => void>();
let offers = 0;
let last: Shown | null = null;

function show(next: Shown | null): void {
  last = next;
  for (const listener of listeners) listener();
}

/** Reports what was done, on whatever screen, and offers to undo it for a while. The next one replaces it. */
export function offerUndo(offer: UndoOffer): void {
  offers += 1;
  show({ ...offer, number: offers });
}

/** The element that shows the last action. It is forgotten with the element, which ends with the session. */
export function Toasts(): ReactElement {
  const offer = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => last,
  );
  useEffect(() => () => show(null), []);
  return (
    <div className="toasts" role="status">
      {offer === null ? null : <Toast key={offer.number} offer={offer} />}
    </div>
  );
}

/** It stays while it is pointed at or has the focus of the keyboard. */
function Toast({ offer }: { offer: Shown }): ReactElement {
  const [isPointed, setPointed] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const [at, setAt] = useState<'offered' | 'pending' | 'undone'>('offered');
  const [refusal, setRefusal] = useState<string | null>(null);
  const isHeld = isPointed || isFocused || at === 'pending';
  // biome-ignore lint/correctness/useExhaustiveDependencies: a repeated text is shown as long
  useEffect(() => {
    if (isHeld) return;
    const timer = setTimeout(() => forget(offer), shownMs);
    return () => clearTimeout(timer);
  }, [offer, isHeld, at]);
  const undo = async (): Promise<void> => {
    setAt('pending');
    setRefusal(null);
    try {
      await offer.undo();
      setAt('undone');
    } catch (thrown) {
      setRefusal(thrown instanceof Error ? thrown.message : String(thrown));
      setAt('offered');
    }
  };
  const close = (): void => {
    forget(offer);
    document.getElementById('main')?.focus();
  };
  const press = { offered: () => void undo(), pending: () => undefined, undone: close }[at];
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: pointing at it does nothing but keep it
    <div
      className={refusal === null ? 'toast is-ok' : 'toast is-bad'}
      onPointerEnter={() => setPointed(true)}
      onPointerLeave={() => setPointed(false)}
      onFocus={({ target }: FocusEvent) => setFocused(target.matches(':focus-visible'))}
      onBlur={() => setFocused(false)}
    >
      <Icon name={refusal === null ? 'ok' : 'fail'} />
      <div>
        <strong>{at === 'undone' ? offer.undoneText : offer.text}</strong>
        {refusal === null ? null : <p className="small">{refusal}</p>}
      </div>
      {/* One button, which keeps the focus. */}
      <button type="button" className="btn is-sm" aria-disabled={at === 'pending'} onClick={press}>
        {at === 'undone' ? 'Close' : 'Undo'}
      </button>
    </div>
  );
}

/** Unless another offer has replaced it. */
function forget(offer: Shown): void {
  if (last === offer) show(null);
}
