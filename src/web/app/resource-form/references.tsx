import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useId, useState } from 'react';
import { type Answer, call } from '../../api/client.ts';
import type { ReferenceFamily } from '../../api/form-schema.ts';
import { shortId } from '../../ui/format.ts';
import { Failure, Loading } from '../../ui/notices.tsx';
import { useOrganization } from '../use-api.ts';
import { attributesOf, ChosenText, type ControlProps } from './controls.tsx';

interface Named {
  id: string;
  name: string;
}

interface Candidates {
  named: Named[];
  /** What there is to say while they are not there; null: they are. */
  notice: ReactElement | null;
}

const maxOptions = 100;
/** The others are listed by cursors. */
const isPaged = (to: ReferenceFamily): boolean => !to.startsWith('webhook-') && to !== 'event-types';

/** The first page of what can be referred to, by name; another one goes by its id in the JSON. */
function useNamed(to: ReferenceFamily): Candidates {
  const organization = useOrganization();
  const { data, error, refetch } = useQuery({
    queryKey: [organization, `GET /${to}`, 'named'],
    queryFn: async ({ signal }) => {
      const answer: Answer<`GET /${ReferenceFamily}`> = await call(
        `GET /${to}`,
        { query: isPaged(to) ? { pageSize: maxOptions } : { limit: maxOptions } },
        { organization, signal },
      );
      return answer.data.map((each): Named => ({ id: each.id, name: 'url' in each && !('name' in each) ? each.url : each.name }));
    },
  });
  const named = (data ?? []).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (data !== undefined) return { named, notice: null };
  if (error === null) return { named, notice: <Loading what={to.replaceAll('-', ' ')} /> };
  return { named, notice: <Failure message={error.message} retry={() => void refetch()} /> };
}

const wordOf = (named: readonly Named[], id: string): string => {
  const found = named.find((each) => each.id === id);
  return found === undefined ? id : `${found.name} (${shortId(id)})`;
};

/** Another resource, by its id. */
export function Reference({ to, ...props }: ControlProps & { to: ReferenceFamily }): ReactElement {
  const { value, onChange, isReadOnly } = props;
  const { named, notice } = useNamed(to);
  const chosen = typeof value === 'string' ? value : '';
  if (isReadOnly) return <ChosenText {...props} text={chosen === '' ? '' : wordOf(named, chosen)} hint="None" />;
  const { readOnly: _never, ...attributes } = attributesOf(props);
  const isForeign = chosen !== '' && !named.some(({ id }) => id === chosen);
  return (
    <>
      {notice}
      <select {...attributes} value={chosen} onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}>
        <option value="">{props.isRequired ? 'Choose…' : 'None'}</option>
        {isForeign ? <option value={chosen}>{chosen}</option> : null}
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
  /** Of a resource that is changed: an emptied list is sent as such. */
  isChange: boolean;
  /** No list means all: an emptied one is sent as such. */
  isAllWithout?: boolean;
  isLocked: boolean;
  onChange: (value: unknown) => void;
}

/** Other resources, by their ids, in their order. */
export function References({ to, label, value, isChange, isAllWithout = false, isLocked, onChange }: ReferencesProps): ReactElement {
  const { named, notice } = useNamed(to);
  const id = useId();
  const [next, setNext] = useState('');
  const ids: string[] = Array.isArray(value) ? value.map(String) : [];
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
