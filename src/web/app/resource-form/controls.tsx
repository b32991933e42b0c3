import { type ReactElement, useState } from 'react';
import { Icon } from '../../ui/icon.tsx';
import { exactNumber, inexactNumber, inexactWords, parsedJson, typedText, typedValue } from './exact-json.ts';
import { isMasked } from './form-body.ts';

export interface ControlProps {
  id: string;
  value: unknown;
  /** undefined: the member is not sent. */
  onChange: (value: unknown) => void;
  describedBy: string;
  isInvalid: boolean;
  isRequired: boolean;
  /** It is fixed, or another manager owns it. It is read all the same, also by Tab. */
  isReadOnly: boolean;
  hint: string;
}

/** Attributes of the element that takes the input. */
export function attributesOf({ id, describedBy, isInvalid, isRequired, isReadOnly }: ControlProps) {
  return {
    id,
    className: 'input',
    readOnly: isReadOnly,
    'aria-describedby': describedBy,
    'aria-invalid': isInvalid,
    'aria-required': isRequired,
  };
}

const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The text of a field whose value has many spellings: as it was typed, while it means the value that there is. */
function useTyped(value: unknown, write: (value: unknown) => string, read: (text: string) => unknown) {
  const [typed, setTyped] = useState(() => write(value));
  return [isSame(read(typed), value) ? typed : write(value), setTyped] as const;
}

const numberIn = (text: string): unknown => (text === '' ? undefined : (exactNumber(text) ?? text));
const linesIn = (text: string): string[] | undefined => {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.length === 0 ? undefined : lines.map((line) => line.trim());
};
/** Text that is no number is kept, and the API validates it. */
const numbersIn = (text: string): unknown[] | undefined => linesIn(text)?.map(numberIn);
const listText = (value: unknown): string => (Array.isArray(value) ? value.map(textOf).join('\n') : textOf(value));

type TextInputProps = ControlProps & {
  isSecret?: boolean;
  isLong?: boolean;
  isChange?: boolean;
};

/** A number. Other text is sent unchanged: the API reports it. */
export function NumberInput(props: ControlProps): ReactElement {
  const { value, onChange, hint } = props;
  const [text, setTyped] = useTyped(value, textOf, numberIn);
  const changed = (next: string): void => {
    setTyped(next);
    onChange(numberIn(next));
  };
  return (
    <input
      {...attributesOf(props)}
      type="text"
      inputMode="decimal"
      autoComplete="off"
      placeholder={hint}
      value={text}
      onChange={({ target }) => changed(target.value)}
    />
  );
}

/** A text; of a secret that is stored only that it stays. */
export function TextInput(props: TextInputProps): ReactElement {
  const { value, onChange, hint, isSecret = false, isLong = false, isChange = false } = props;
  const isKept = isSecret && isMasked(value);
  const attributes = {
    ...attributesOf(props),
    value: isKept ? '' : textOf(value),
    placeholder: isSecret && value === null ? 'Removed' : isSecret && (isKept || isChange) ? 'Unchanged' : hint,
    onChange: ({ target }: { target: { value: string } }) => onChange(target.value === '' ? undefined : target.value),
  };
  if (isLong) return <textarea {...attributes} className="input is-mono" rows={5} spellCheck={false} />;
  if (!isSecret) return <input {...attributes} type="text" autoComplete="off" />;
  return <input {...attributes} type="password" autoComplete="new-password" />;
}

/** What a list to choose from shows where nothing can be chosen: a text can be read without being changed. */
export function ChosenText({ text, ...props }: ControlProps & { text: string }): ReactElement {
  return <input {...attributesOf(props)} type="text" value={text} placeholder={props.hint} />;
}

/** One of a few values. */
export function Choice({ values, ...props }: ControlProps & { values: readonly string[] }): ReactElement {
  const { value, onChange, isReadOnly, hint } = props;
  if (isReadOnly) return <ChosenText {...props} text={textOf(value)} />;
  const { readOnly: _never, ...attributes } = attributesOf(props);
  return (
    <select {...attributes} value={textOf(value)} onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}>
      <option value="">{hint === '' ? 'Choose…' : hint}</option>
      {values.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}

export interface ListInputProps extends ControlProps {
  isNumeric?: boolean;
  /** An emptied list is sent as such. */
  isAllWithout?: boolean;
}

/** Texts, or numbers, one in a line. */
export function ListInput({ isNumeric = false, isAllWithout = false, ...props }: ListInputProps): ReactElement {
  const { value, onChange } = props;
  const valuesIn = (typed: string): unknown[] | undefined => (isNumeric ? numbersIn : linesIn)(typed) ?? (isAllWithout ? [] : undefined);
  const [text, setTyped] = useTyped(value, listText, valuesIn);
  const changed = (next: string): void => {
    setTyped(next);
    onChange(valuesIn(next));
  };
  return (
    <textarea
      {...attributesOf(props)}
      rows={3}
      placeholder={isAllWithout ? `${Array.isArray(value) ? 'None' : 'All'}; one in a line` : 'One in a line'}
      spellCheck={false}
      value={text}
      onChange={({ target }) => changed(target.value)}
    />
  );
}

export interface AllOrListedProps {
  /** Label of the list. */
  label: string;
  value: unknown;
  isLocked: boolean;
  onChange: (value: unknown) => void;
}

/** Whether all count, so that there is no list; otherwise those of the list, which may be none. */
export function AllOrListed({ label, value, isLocked, onChange }: AllOrListedProps): ReactElement {
  return (
    <div>
      <label className="check">
        <input
          type="checkbox"
          aria-disabled={isLocked}
          checked={!Array.isArray(value)}
          onChange={({ target }) => (isLocked ? undefined : onChange(target.checked ? undefined : []))}
        />
        All {label.toLowerCase()}
      </label>
    </div>
  );
}

/** JSON, or a text where it is none. A number that is not kept with all its digits is not taken, and the form is not sent while it is there. */
export function JsonInput(props: ControlProps): ReactElement {
  const { id, value, onChange, describedBy } = props;
  const [text, setTyped] = useTyped(value, typedText, typedValue);
  const [refused, setRefused] = useState<string | null>(null);
  const changed = (next: string, element: HTMLTextAreaElement): void => {
    const inexact = parsedJson(next) === undefined ? null : inexactNumber(next);
    element.setCustomValidity(inexact === null ? '' : inexactWords(inexact));
    setRefused(inexact === null ? null : next);
    if (inexact !== null) return;
    setTyped(next);
    onChange(typedValue(next));
  };
  return (
    <>
      <textarea
        {...attributesOf(props)}
        className="input is-mono"
        aria-invalid={props.isInvalid || refused !== null}
        aria-describedby={`${describedBy} ${id}-refused`}
        rows={2}
        placeholder="JSON, or a text"
        spellCheck={false}
        value={refused ?? text}
        onChange={({ target }) => changed(target.value, target)}
      />
      <span className="error" id={`${id}-refused`} role="status">
        {refused === null ? null : inexactWords(inexactNumber(refused) ?? '')}
      </span>
    </>
  );
}

export interface ChoicesProps {
  values: readonly string[];
  value: unknown;
  isLocked: boolean;
  onChange: (value: unknown) => void;
}

/** Some of a few values. */
export function Choices({ values, value, isLocked, onChange }: ChoicesProps): ReactElement {
  const chosen: unknown[] = Array.isArray(value) ? value : [];
  return (
    <div className="row">
      {values.map((each) => (
        <label className="check" key={each}>
          <input
            type="checkbox"
            aria-disabled={isLocked}
            checked={chosen.includes(each)}
            onChange={({ target }) =>
              isLocked ? undefined : onChange(values.filter((one) => (one === each ? target.checked : chosen.includes(one))))
            }
          />
          {each}
        </label>
      ))}
    </div>
  );
}

export interface MapInputProps {
  label: string;
  value: unknown;
  isLocked: boolean;
  onChange: (value: unknown) => void;
}

/** Names with a text each. */
export function MapInput({ label, value, isLocked, onChange }: MapInputProps): ReactElement {
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
        // biome-ignore lint/suspicious/noArrayIndexKey: a pair is its index in the list
        <div className="input-group" key={i}>
          <input
            className="input"
            aria-label={`Name ${i + 1}`}
            placeholder="Name"
            readOnly={isLocked}
            value={name}
            onChange={({ target }) => put(pairs.with(i, [target.value, text]))}
          />
          <input
            className="input"
            aria-label={`Value ${i + 1}`}
            placeholder="Value"
            readOnly={isLocked}
            value={text}
            onChange={({ target }) => put(pairs.with(i, [name, target.value]))}
          />
          {isLocked ? null : (
            <button type="button" className="btn" aria-label={`Remove ${i + 1}`} onClick={() => put(pairs.toSpliced(i, 1))}>
              Remove
            </button>
          )}
        </div>
      ))}
      {isLocked ? null : (
        <div>
          <button type="button" className="btn is-sm" onClick={() => setPairs([...pairs, ['', '']])}>
            <Icon name="plus" size={12} />
            Add to {label.toLowerCase()}
          </button>
        </div>
      )}
    </div>
  );
}
