import { type ReactElement, useEffect, useState, useSyncExternalStore } from 'react';
import { Icon } from './icon.tsx';

/** What was just done, and how it is undone. */
interface Done {
  text: string;
  /** Rejects with what it is refused for. */
  undo: () => Promise<unknown>;
}

const shownMs = 15_000;
const listeners = new Set<() => void>();
let last: Done | null = null;

function show(next: Done | null): void {
  last = next;
  for (const listener of listeners) listener();
}

/** Says what was done, on whatever screen, and offers to undo it for a while. The next one takes its place. */
export function offerUndo(text: string, undo: () => Promise<unknown>): void {
  show({ text, undo });
}

/** The place where what was done last is shown. */
export function Toasts(): ReactElement {
  const done = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => last,
  );
  return (
    <div className="toasts" role="status">
      {done === null ? null : <Toast key={done.text} done={done} />}
    </div>
  );
}

/** It stays while it is pointed at or has the focus. */
function Toast({ done }: { done: Done }): ReactElement {
  const [isHeld, setHeld] = useState(false);
  const [isPending, setPending] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  useEffect(() => {
    if (isHeld || isPending) return;
    const timer = setTimeout(() => show(null), shownMs);
    return () => clearTimeout(timer);
  }, [isHeld, isPending]);
  const undo = async (): Promise<void> => {
    setPending(true);
    try {
      await done.undo();
      show(null);
    } catch (thrown) {
      setRefusal(thrown instanceof Error ? thrown.message : String(thrown));
      setPending(false);
    }
  };
  const hold = (): void => setHeld(true);
  const letGo = (): void => setHeld(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: pointing at it does nothing but keep it
    <div
      className={refusal === null ? 'toast is-ok' : 'toast is-bad'}
      onPointerEnter={hold}
      onPointerLeave={letGo}
      onFocus={hold}
      onBlur={letGo}
    >
      <Icon name={refusal === null ? 'ok' : 'fail'} />
      <div>
        <strong>{done.text}</strong>
        {refusal === null ? null : <p className="small">{refusal}</p>}
      </div>
      <button type="button" className="btn is-sm" disabled={isPending} onClick={() => void undo()}>
        Undo
      </button>
    </div>
  );
}
