import { type ReactElement, useId, useState } from 'react';
import type { ReferenceFamily } from '../../api/form-schema.ts';
import { shortId } from '../../ui/format.ts';
import { type Candidate, isNamed, useCandidates } from '../candidates.tsx';
import { attributesOf, ChosenText, type ControlProps } from './controls.tsx';

const wordOf = (named: readonly Candidate[], id: string): string => {
  const found = named.find((each) => isNamed(each, id));
  return found === undefined ? id : `${found.name} (${shortId(found.id)})`;
};

/** Another resource, by its id. */
export function Reference({ to, ...props }: ControlProps & { to: ReferenceFamily }): ReactElement {
  const { value, onChange, isReadOnly } = props;
  const chosen = typeof value === 'string' ? value : '';
  const { named, search, notice } = useCandidates(to, chosen === '' ? [] : [chosen]);
  if (isReadOnly) return <ChosenText {...props} text={chosen === '' ? '' : wordOf(named, chosen)} hint="None" />;
  const { readOnly: _never, ...attributes } = attributesOf(props);
  const isForeign = chosen !== '' && !named.some(({ id }) => id === chosen);
  return (
    <>
      {notice}
      {search}
      <select {...attributes} value={chosen} onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}>
        <option value="">{props.isRequired ? 'Choose…' : 'None'}</option>
        {isForeign ? <option value={chosen}>{wordOf(named, chosen)}</option> : null}
        {named.map(({ id }) => (
          <option key={id} value={id}>
            {wordOf(named, id)}
          </option>
        ))}
      </select>
    </>
  );
}

interface ReferencesProps {
  to: ReferenceFamily;
  label: string;
  value: unknown;
  /** The resource is changed, not made: an emptied list is sent as such. */
  isChange: boolean;
  /** No list means all: an emptied one is sent as such. */
  isAllWithout?: boolean;
  isLocked: boolean;
  onChange: (value: unknown) => void;
}

/** Other resources, by their ids, in their order. */
export function References({ to, label, value, isChange, isAllWithout = false, isLocked, onChange }: ReferencesProps): ReactElement {
  const id = useId();
  const [next, setNext] = useState('');
  const ids: string[] = Array.isArray(value) ? value.map(String) : [];
  const { named, search, notice } = useCandidates(to, next === '' ? ids : [...ids, next]);
  const others = named.filter((each) => !ids.includes(each.id));
  const put = (all: string[]): void => onChange(all.length === 0 && !isChange && !isAllWithout ? undefined : all);
  const add = (): void => {
    if (next !== '') put([...ids, next]);
    setNext('');
  };
  return (
    <div className="stack">
      {ids.length > 0 ? null : <span className="muted">{Array.isArray(value) ? 'None' : isAllWithout ? 'All' : 'Not set'}</span>}
      {ids.map((each) => (
        <div className="row" key={each}>
          <span>{wordOf(named, each)}</span>
          {isLocked ? null : (
            <button
              type="button"
              className="btn is-sm"
              aria-label={`Remove ${wordOf(named, each)}`}
              onClick={() => put(ids.filter((one) => one !== each))}
            >
              Remove
            </button>
          )}
        </div>
      ))}
      {notice}
      {isLocked ? null : search}
      <div className="input-group" hidden={notice !== null || isLocked}>
        <select
          id={id}
          className="input"
          aria-label={`Add to ${label.toLowerCase()}`}
          value={next}
          onChange={({ target }) => setNext(target.value)}
        >
          <option value="">{others.length === 0 ? 'There is none to add' : 'Choose…'}</option>
          {others.map((each) => (
            <option key={each.id} value={each.id}>
              {wordOf(named, each.id)}
            </option>
          ))}
        </select>
        <button type="button" className="btn" disabled={next === ''} onClick={add}>
          Add
        </button>
      </div>
    </div>
  );
}
