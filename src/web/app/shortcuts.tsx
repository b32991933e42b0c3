import type { ReactElement } from 'react';
import { Dialog } from '../ui/dialog.tsx';
import { groups } from './navigation.ts';
import { setPreferences, usePreferences } from './preferences.ts';

const others = [
  ['⌘K, Ctrl K', 'search, or paste an id'],
  ['?', 'these shortcuts'],
  ['j, k', 'next, previous row'],
  ['↓, ↑', 'the same while the list has the focus'],
  ['Enter', 'open the row'],
  ['x', 'check the box of the row'],
  ['Shift X', 'check all boxes from the last one'],
  ['Esc', 'close what is open'],
  ['Space', 'pause and resume the stream'],
  ['G', 'the newest row'],
] as const;

/** All keys, and the switch for those without a modifier. */
export function Shortcuts({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): ReactElement {
  const { singleKeys } = usePreferences();
  const places = groups
    .flatMap((group) => group.places)
    .flatMap(({ key, word }) => (key === undefined ? [] : [[`g ${key}`, word] as const]));
  return (
    <Dialog title="Keyboard shortcuts" isOpen={isOpen} onClose={onClose}>
      <dl className="kv is-double">
        {[...others, ...places].map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label className="row">
        <input type="checkbox" checked={singleKeys} onChange={({ target }) => setPreferences({ singleKeys: target.checked })} />
        Keys without a modifier act
      </label>
    </Dialog>
  );
}
