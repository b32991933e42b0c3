import { type ReactElement, use, useId } from 'react';
import { Segments } from '../ui/segments.tsx';
import { ZoneContext } from '../ui/time.tsx';
import { type DeliveryTime, secondsOf } from './send-time.ts';

const kinds = [
  { value: 'now', word: 'Now' },
  { value: 'delay', word: 'After a delay' },
  { value: 'at', word: 'At a time' },
] as const;
const units = Object.keys(secondsOf) as (keyof typeof secondsOf)[];

/** At once, after a delay, or at a time. */
export function DeliveryTimeFields({ value, onChange }: { value: DeliveryTime; onChange: (value: DeliveryTime) => void }): ReactElement {
  const id = useId();
  const zone = use(ZoneContext);
  const set = (change: Partial<DeliveryTime>): void => onChange({ ...value, ...change });
  return (
    <div className="stack">
      <Segments label="Deliver" choices={kinds} value={value.kind} onChange={(kind) => set({ kind })} />
      {value.kind === 'delay' ? (
        <div className="field">
          <label htmlFor={id}>Delay</label>
          <div className="input-group">
            <input
              className="input"
              id={id}
              type="number"
              min="0"
              step="1"
              value={value.amount}
              onChange={({ target }) => set({ amount: target.value })}
            />
            <select
              className="input"
              aria-label="Unit of the delay"
              value={value.unit}
              onChange={({ target }) => set({ unit: units.find((each) => each === target.value) ?? 'seconds' })}
            >
              {units.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </div>
          <span className="help">At most 7 days.</span>
        </div>
      ) : null}
      {value.kind === 'at' ? (
        <div className="field">
          <label htmlFor={id}>Time ({zone === 'UTC' ? 'UTC' : 'local'})</label>
          <input className="input" id={id} type="datetime-local" value={value.at} onChange={({ target }) => set({ at: target.value })} />
          <span className="help">At most 7 days ahead. A time that has passed means now.</span>
        </div>
      ) : null}
    </div>
  );
}
