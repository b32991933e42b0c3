import { Combobox, ComboboxItem, ComboboxList, ComboboxProvider } from '@ariakit/react';
import type { ReactElement } from 'react';
import { Icon } from './icon.tsx';
import { Overlay } from './overlay.tsx';

export interface PaletteEntry {
  id: string;
  word: string;
  hint?: string;
  icon: string;
  act: () => void;
}

export interface PaletteProps {
  isOpen: boolean;
  onClose: () => void;
  value: string;
  onValue: (value: string) => void;
  /** Further entries may come. */
  isReading: boolean;
  /** Why there may be more than was found. */
  problem: string | null;
  groups: readonly { title: string; entries: readonly PaletteEntry[] }[];
}

/** One field that finds everything, with the keyboard alone. */
export function Palette({ isOpen, onClose, value, onValue, isReading, problem, groups }: PaletteProps): ReactElement {
  const filled = groups.filter(({ entries }) => entries.length > 0);
  return (
    <Overlay isOpen={isOpen} onClose={onClose} className="palette" label="Search or jump">
      <ComboboxProvider value={value} setValue={onValue} focusLoop open>
        <div className="ask">
          <Icon name="search" size={18} />
          <Combobox
            autoSelect="always"
            autoFocus
            aria-label="Search or paste an id"
            placeholder="Search or paste ids"
            onPaste={(event) => {
              // A single-line field would join several lines.
              const text = event.clipboardData.getData('text').trim();
              if (!/[\r\n]/.test(text)) return;
              event.preventDefault();
              const { selectionStart, selectionEnd } = event.currentTarget;
              const before = value.slice(0, selectionStart ?? value.length);
              const after = value.slice(selectionEnd ?? value.length);
              onValue(`${before} ${text.replaceAll(/\s+/g, ' ')} ${after}`.trim());
            }}
          />
        </div>
        <ComboboxList alwaysVisible aria-label="Results">
          {filled.map(({ title, entries }) => (
            <div key={title} role="group" aria-label={title}>
              <div className="group" aria-hidden="true">
                {title}
              </div>
              {entries.map((entry) => (
                <ComboboxItem
                  key={entry.id}
                  value={entry.word}
                  className="opt"
                  hideOnClick={false}
                  setValueOnClick={false}
                  onClick={() => {
                    onClose();
                    entry.act();
                  }}
                >
                  <Icon name={entry.icon} />
                  <span className="t">
                    {entry.word} {entry.hint === undefined ? null : <small>{entry.hint}</small>}
                  </span>
                </ComboboxItem>
              ))}
            </div>
          ))}
          {filled.length === 0 && (isReading || problem === null) ? (
            <p className="muted opt">{isReading ? 'Searching…' : 'Nothing has that name.'}</p>
          ) : null}
        </ComboboxList>
        {problem === null || isReading ? null : (
          <p className="c-bad opt" role="status">
            {problem}
          </p>
        )}
      </ComboboxProvider>
      <footer>
        <span>
          <kbd>↑</kbd>
          <kbd>↓</kbd> move
        </span>
        <span>
          <kbd>↵</kbd> open
        </span>
        <span>
          Paste any id, or several: <code>evt_</code> <code>msg_</code> <code>rte_</code> …
        </span>
      </footer>
    </Overlay>
  );
}
