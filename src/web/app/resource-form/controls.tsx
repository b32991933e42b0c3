import { type ReactElement, useState } from 'react';

export interface ControlProps {
  id: string;
  value: unknown;
  /** undefined: the member is not sent. */
  onChange: (value: unknown) => void;
  describedBy: string;
  isInvalid: boolean;
  isRequired: boolean;
  isReadOnly: boolean;
  hint: string;
}

/** Attributes of the element that takes the input. */
export function attributesOf({ id, describedBy, isInvalid, isRequired }: ControlProps) {
  return { id, className: 'input', 'aria-describedby': describedBy, 'aria-invalid': isInvalid, 'aria-required': isRequired };
}

const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);

type TextInputProps = ControlProps & {
  isNumber?: boolean;
  isSecret?: boolean;
  isLong?: boolean;
  isNullable?: boolean;
  isChange?: boolean;
};

/** A text or a number; of a secret that is stored only that it stays. What is no number is sent as it is: the API says so. */
export function TextInput(props: TextInputProps): ReactElement {
  const { value, onChange, isReadOnly, hint, isNumber = false, isSecret = false, isLong = false, isChange = false } = props;
  const isKept = isSecret && typeof value === 'string' && value.startsWith('••••');
  const changed = (text: string): void =>
    onChange(text === '' ? undefined : isNumber && Number.isFinite(Number(text)) && text.trim() !== '' ? Number(text) : text);
  const attributes = {
    ...attributesOf(props),
    value: isKept ? '' : textOf(value),
    readOnly: isReadOnly,
    placeholder: isSecret && (isKept || isChange) ? 'Unchanged' : hint,
    onChange: ({ target }: { target: { value: string } }) => changed(target.value),
  };
  if (isLong) return <textarea {...attributes} className="input is-mono" rows={5} spellCheck={false} />;
  if (!isSecret) return <input {...attributes} type="text" inputMode={isNumber ? 'decimal' : undefined} autoComplete="off" />;
  return <input {...attributes} type="password" autoComplete="new-password" />;
}

/** One of a few values. */
export function Choice({ values, ...props }: ControlProps & { values: readonly string[] }): ReactElement {
  const { value, onChange, isReadOnly, hint } = props;
  return (
    <select
      {...attributesOf(props)}
      disabled={isReadOnly}
      value={textOf(value)}
      onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}
    >
      <option value="">{hint === '' ? 'Choose…' : hint}</option>
      {values.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}

/** Texts, one in a line. */
export function ListInput(props: ControlProps): ReactElement {
  const { value, onChange } = props;
  const [text, setText] = useState(() => (Array.isArray(value) ? value.map(textOf).join('\n') : textOf(value)));
  const changed = (next: string): void => {
    setText(next);
    const lines = next.split('\n').filter((line) => line.trim() !== '');
    onChange(lines.length === 0 ? undefined : lines.map((line) => line.trim()));
  };
  return (
    <textarea
      {...attributesOf(props)}
      rows={3}
      placeholder="One in a line"
      spellCheck={false}
      value={text}
      onChange={({ target }) => changed(target.value)}
    />
  );
}

/** JSON, or a text where it is none. */
export function JsonInput(props: ControlProps): ReactElement {
  const { value, onChange } = props;
  const [text, setText] = useState(() => (typeof value === 'object' && value !== null ? JSON.stringify(value, null, 2) : textOf(value)));
  const changed = (next: string): void => {
    setText(next);
    onChange(next.trim() === '' ? undefined : (parsed(next) ?? next));
  };
  return (
    <textarea
      {...attributesOf(props)}
      className="input is-mono"
      rows={2}
      placeholder="JSON, or a text"
      spellCheck={false}
      value={text}
      onChange={({ target }) => changed(target.value)}
    />
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Some of a few values. */
export function Choices({ values, value, onChange }: { values: readonly string[]; value: unknown; onChange: (value: unknown) => void }) {
  const chosen: unknown[] = Array.isArray(value) ? value : [];
  return (
    <div className="row">
      {values.map((each) => (
        <label className="check" key={each}>
          <input
            type="checkbox"
            checked={chosen.includes(each)}
            onChange={({ target }) => onChange(values.filter((one) => (one === each ? target.checked : chosen.includes(one))))}
          />
          {each}
        </label>
      ))}
    </div>
  );
}

/** Names with a text each. */
export function MapInput({ value, onChange }: { value: unknown; onChange: (value: unknown) => void }): ReactElement {
  const [pairs, setPairs] = useState<[name: string, text: string][]>(() =>
    Object.entries(Object(value)).map(([name, text]) => [name, textOf(text)]),
  );
  const put = (next: [string, string][]): void => {
    setPairs(next);
    const named = next.filter(([name]) => name.trim() !== '');
    onChange(named.length === 0 ? undefined : Object.fromEntries(named));
  };
  return (
    <div className="stack">
      {pairs.map(([name, text], i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a pair is its place in the list
        <div className="input-group" key={i}>
          <input
            className="input"
            aria-label={`Name ${i + 1}`}
            placeholder="Name"
            value={name}
            onChange={({ target }) => put(pairs.with(i, [target.value, text]))}
          />
          <input
            className="input"
            aria-label={`Value ${i + 1}`}
            placeholder="Value"
            value={text}
            onChange={({ target }) => put(pairs.with(i, [name, target.value]))}
          />
          <button type="button" className="btn" aria-label={`Remove ${i + 1}`} onClick={() => put(pairs.toSpliced(i, 1))}>
            Remove
          </button>
        </div>
      ))}
      <div>
        <button type="button" className="btn is-sm" onClick={() => setPairs([...pairs, ['', '']])}>
          Add
        </button>
      </div>
    </div>
  );
}
