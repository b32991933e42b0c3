import type { ReactElement } from 'react';

export interface SegmentsProps<Value extends string> {
  label: string;
  choices: readonly { value: Value; word: string }[];
  value: Value;
  onChange: (value: Value) => void;
}

/** One choice of a few. */
export function Segments<Value extends string>({ label, choices, value, onChange }: SegmentsProps<Value>): ReactElement {
  return (
    <span className="segments" role="group" aria-label={label}>
      {choices.map((choice) => (
        <button key={choice.value} type="button" aria-pressed={choice.value === value} onClick={() => onChange(choice.value)}>
          {choice.word}
        </button>
      ))}
    </span>
  );
}
