import { type FormEvent, Fragment, type ReactElement, type ReactNode, useId, useState } from 'react';
import { Icon } from './icon.tsx';

export interface FilterField {
  /** The parameter of the address and of the API. */
  name: string;
  word: string;
  /** It takes several values, of which any one may match: a new one joins the existing ones. */
  isMany?: boolean;
  /** Absent: any text. */
  choices?: readonly { value: string; word: string }[];
  /** What a filter in force shows of one of its values. Default: the word of the choice, or the value itself. */
  show?: (value: string) => ReactNode;
  hint?: string;
}

/** Choices of a field that holds or does not. */
export const yesOrNo = [
  { value: 'true', word: 'Yes' },
  { value: 'false', word: 'No' },
] as const;

export type FilterValues = Record<string, string | undefined>;

export interface FilterBarProps {
  fields: readonly FilterField[];
  values: FilterValues;
  onChange: (values: FilterValues) => void;
  /** Precedes the filters. */
  children?: ReactNode;
}

/** The filters in force as chips, and one form that adds another. */
export function FilterBar({ fields, values, onChange, children }: FilterBarProps): ReactElement {
  const [isAdding, setAdding] = useState(false);
  const set = fields.filter(({ name }) => values[name] !== undefined && values[name] !== '');
  return (
    <search className="filters" aria-label="Filters">
      {children}
      {set.map(({ name, word, ...field }) => (
        <span className="chip" key={name}>
          <span className="k">{word}</span>
          <span className="o">is</span>
          <span className="v">
            <Shown value={values[name] ?? ''} field={field} />
          </span>
          <button
            className="x"
            type="button"
            aria-label={`Remove filter ${word}`}
            onClick={() => onChange({ ...values, [name]: undefined })}
          >
            <Icon name="x" size={12} />
          </button>
        </span>
      ))}
      {isAdding ? (
        <AddFilter
          fields={fields}
          onAdd={(field, value) => {
            setAdding(false);
            onChange({ ...values, [field.name]: joined(field, values[field.name], value) });
          }}
          onCancel={() => setAdding(false)}
        />
      ) : (
        <button className="chip is-add" type="button" onClick={() => setAdding(true)}>
          <span>
            <Icon name="plus" size={12} />
            Filter
          </span>
        </button>
      )}
    </search>
  );
}

function joined({ isMany = false }: FilterField, before: string | undefined, value: string): string {
  if (!isMany || before === undefined || before === '') return value;
  return [...new Set([...before.split(','), ...value.split(',')])].join(',');
}

/** Any one of the values of a list is enough. */
function Shown({ value, field: { choices, show } }: { value: string; field: Pick<FilterField, 'choices' | 'show'> }): ReactElement {
  if (choices === undefined && show === undefined) return <>{value}</>;
  return (
    <>
      {value.split(',').map((each, index) => (
        <Fragment key={each}>
          {index === 0 ? '' : ' or '}
          {show?.(each) ?? choices?.find((choice) => choice.value === each)?.word ?? each}
        </Fragment>
      ))}
    </>
  );
}

interface AddFilterProps {
  fields: readonly FilterField[];
  onAdd: (field: FilterField, value: string) => void;
  onCancel: () => void;
}

function AddFilter({ fields, onAdd, onCancel }: AddFilterProps): ReactElement {
  const [name, setName] = useState(fields[0]?.name ?? '');
  const [value, setValue] = useState('');
  const hint = useId();
  const field = fields.find((each) => each.name === name);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const chosen = value === '' ? field?.choices?.[0]?.value : value.trim();
    if (field !== undefined && chosen !== undefined && chosen !== '') onAdd(field, chosen);
  };
  return (
    <form className="row" onSubmit={submit} onKeyDown={({ key }) => (key === 'Escape' ? onCancel() : undefined)}>
      <select
        className="select"
        aria-label="Field"
        // biome-ignore lint/a11y/noAutofocus: the reader has just opened this form
        autoFocus
        value={name}
        onChange={({ target }) => {
          setName(target.value);
          setValue('');
        }}
      >
        {fields.map((each) => (
          <option key={each.name} value={each.name}>
            {each.word}
          </option>
        ))}
      </select>
      {field?.choices === undefined ? (
        <input
          className="input"
          aria-label="Value"
          aria-describedby={hint}
          value={value}
          onChange={({ target }) => setValue(target.value)}
        />
      ) : (
        <select className="select" aria-label="Value" value={value} onChange={({ target }) => setValue(target.value)}>
          {field.choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.word}
            </option>
          ))}
        </select>
      )}
      <button className="btn is-sm" type="submit">
        Add
      </button>
      <button className="btn is-sm is-quiet" type="button" onClick={onCancel}>
        Cancel
      </button>
      <span className="small muted" id={hint}>
        {field?.hint}
      </span>
    </form>
  );
}
