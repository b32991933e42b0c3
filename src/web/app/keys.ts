import { useEffect } from 'react';
import { usePreferences } from './preferences.ts';

/** Names a key, such as `j`, or two after each other, such as `g o`. */
export type Keys = ReadonlyMap<string, () => void>;

const secondKeyWithinMs = 1500;
let first: { key: string; at: number } | null = null;

/** Keys act while no field has the focus and no dialog is open. */
export function useKeys(keys: Keys): void {
  const { singleKeys } = usePreferences();
  useEffect(() => {
    if (!singleKeys) return;
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target) || isForTheFocused(event))
        return;
      const before = first !== null && event.timeStamp - first.at < secondKeyWithinMs ? `${first.key} ` : '';
      const act = keys.get(`${before}${event.key}`);
      if (act !== undefined) {
        event.preventDefault();
        first = null;
        act();
      } else if (event.key === 'g') {
        first = { key: 'g', at: event.timeStamp };
      }
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, [keys, singleKeys]);
}

/** Enter and Space act on what has the focus, also on a box. */
function isForTheFocused({ key, target }: KeyboardEvent): boolean {
  return (
    (key === 'Enter' || key === ' ') && target instanceof HTMLElement && target.closest('a, button, summary, input, [role="tree"]') !== null
  );
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.closest('input:not([type="checkbox"]), textarea, select, [role="dialog"]') !== null;
}
