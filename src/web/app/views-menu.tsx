import { Link, useSearch } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, useEffect, useId, useRef, useState } from 'react';
import { Confirm } from '../ui/confirm.tsx';
import { Icon } from '../ui/icon.tsx';
import type { ListName } from './list-filters.ts';
import { useOrganization } from './use-api.ts';
import {
  dropView,
  filtersOf,
  haveSameFilters,
  keepView,
  type ListedView,
  longestViewName,
  maxViews,
  renameView,
  useViews,
} from './views.ts';

/** The views of a list: opens one, keeps the filters as one, and changes those that the reader has made. */
export function ViewsMenu({ list }: { list: ListName }): ReactElement {
  const org = useOrganization();
  const search = filtersOf(list, useSearch({ strict: false }));
  const views = useViews(org).filter((view) => view.list === list);
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const frame = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const isWithin = (target: EventTarget | null): boolean => target instanceof Node && frame.current?.contains(target) === true;
    const left = ({ target }: Event): void => {
      // A question above the page belongs to the menu.
      if (target instanceof Element && target.closest('.scrim') === null && !isWithin(target)) setOpen(false);
    };
    const pressed = (event: KeyboardEvent): void => {
      const isHere = isWithin(event.target) || event.target === document.body;
      if (event.key !== 'Escape' || event.defaultPrevented || !isHere) return;
      event.preventDefault();
      setOpen(false);
      button.current?.focus();
    };
    document.addEventListener('pointerdown', left);
    document.addEventListener('focusin', left);
    document.addEventListener('keydown', pressed);
    return () => {
      document.removeEventListener('pointerdown', left);
      document.removeEventListener('focusin', left);
      document.removeEventListener('keydown', pressed);
    };
  }, [isOpen]);
  const [focused, setFocused] = useState<string | null>(null);
  useEffect(() => {
    if (focused === null) return;
    setFocused(null);
    const place = frame.current?.querySelector<HTMLElement>(`[data-view="${CSS.escape(focused)}"] .views-rename`);
    (place ?? button.current)?.focus();
  }, [focused]);
  const current = views.find((view) => haveSameFilters(view.search, search));
  return (
    <div className="views" ref={frame}>
      <button
        ref={button}
        type="button"
        className="btn is-sm"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        Views{current === undefined ? null : <span className="muted views-name">{current.name}</span>}
        <Icon name="down" size={12} />
      </button>
      {isOpen ? (
        <section className="pop views-pop" id={id} aria-label="Views">
          {views.length === 0 ? <p className="muted small">No view yet. A view keeps the filters of this list under a name.</p> : null}
          <ul>
            {views.map((view) => (
              <Item
                key={`${view.isShipped} ${view.name}`}
                view={view}
                isCurrent={view === current}
                others={views.filter((each) => each !== view && !each.isShipped).map(({ name }) => name)}
                onOpen={() => setOpen(false)}
                onGone={setFocused}
              />
            ))}
          </ul>
          <Keep list={list} search={search} own={views.filter(({ isShipped }) => !isShipped).map(({ name }) => name)} />
        </section>
      ) : null}
    </div>
  );
}

interface ItemProps {
  view: ListedView;
  isCurrent: boolean;
  /** Names that are taken. */
  others: readonly string[];
  onOpen: () => void;
  /** What had the focus goes. The view of this name gets it; the menu where there is none. */
  onGone: (name: string) => void;
}

function Item({ view: { name, list, search, isShipped }, isCurrent, others, onOpen, onGone }: ItemProps): ReactElement {
  const org = useOrganization();
  const [mode, setMode] = useState<'shown' | 'renamed' | 'dropped'>('shown');
  if (mode === 'renamed')
    return (
      <li>
        <NameForm
          label={`New name of ${name}`}
          act="Rename"
          initial={name}
          refusal={(next) => (others.includes(next) ? 'Another view has that name.' : null)}
          onName={(next) => {
            renameView(org, list, name, next);
            setMode('shown');
            onGone(next);
            return true;
          }}
          onCancel={() => {
            setMode('shown');
            onGone(name);
          }}
        />
      </li>
    );
  return (
    <li data-view={name}>
      <Link
        to={`/o/$org/${list}`}
        params={{ org }}
        search={search}
        // A view whose filters are among others would else have the current link.
        activeOptions={{ exact: true }}
        aria-current={isCurrent ? 'page' : undefined}
        onClick={onOpen}
      >
        {name}
      </Link>
      {isShipped ? (
        <span className="tag" title="It comes with this installation.">
          shipped
        </span>
      ) : (
        <>
          <button
            type="button"
            className="btn is-sm is-quiet views-rename"
            aria-label={`Rename view ${name}`}
            onClick={() => setMode('renamed')}
          >
            Rename
          </button>
          <button
            type="button"
            className="btn is-sm is-icon is-quiet"
            aria-label={`Delete view ${name}`}
            title="Delete"
            onClick={() => setMode('dropped')}
          >
            <Icon name="x" size={12} />
          </button>
          <Confirm
            title="Delete the view?"
            act="Delete view"
            keep="Keep it"
            isDanger
            isOpen={mode === 'dropped'}
            isPending={false}
            error={null}
            onClose={() => setMode('shown')}
            onAct={() => {
              dropView(org, list, name);
              onGone('');
            }}
          >
            <p>
              <strong>{name}</strong> is kept by this browser alone. The list stays as it is.
            </p>
          </Confirm>
        </>
      )}
    </li>
  );
}

interface KeepProps {
  list: ListName;
  search: ListedView['search'];
  /** Names of the views that the reader has made. */
  own: readonly string[];
}

function Keep({ list, search, own }: KeepProps): ReactElement {
  const org = useOrganization();
  const [asked, setAsked] = useState<string | null>(null);
  if (Object.keys(search).length === 0) return <p className="muted small">Add a filter to save it as a view.</p>;
  const keep = (name: string): void => {
    keepView(org, list, { name, search });
    setAsked(null);
  };
  return (
    <>
      <NameForm
        label="Save these filters as"
        act="Save"
        initial=""
        refusal={(name) =>
          own.length >= maxViews && !own.includes(name) ? `There are ${maxViews} views already. Delete one that is not needed.` : null
        }
        onName={(name) => {
          if (own.includes(name)) setAsked(name);
          else keep(name);
          return !own.includes(name);
        }}
      />
      <Confirm
        title="Replace the view?"
        act="Replace view"
        keep="Keep it"
        isOpen={asked !== null}
        isPending={false}
        error={null}
        onClose={() => setAsked(null)}
        onAct={() => keep(asked ?? '')}
      >
        <p>
          There is a view <strong>{asked}</strong>. It gets the filters of this list.
        </p>
      </Confirm>
    </>
  );
}

interface NameFormProps {
  label: string;
  act: string;
  initial: string;
  /** Why the name cannot be taken. */
  refusal: (name: string) => string | null;
  /** Returns whether the form is for another one now. */
  onName: (name: string) => boolean;
  onCancel?: () => void;
}

function NameForm({ label, act, initial, refusal, onName, onCancel }: NameFormProps): ReactElement {
  const [value, setValue] = useState(initial);
  const [complaint, setComplaint] = useState<string | null>(null);
  const id = useId();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const name = value.trim();
    const found = name === '' ? 'A view needs a name.' : refusal(name);
    setComplaint(found);
    if (found === null && onName(name)) setValue('');
  };
  return (
    <form
      className="row"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || onCancel === undefined) return;
        event.preventDefault();
        onCancel();
      }}
    >
      <label className="small" htmlFor={id}>
        {label}
      </label>
      <input
        className="input"
        id={id}
        maxLength={longestViewName}
        // biome-ignore lint/a11y/noAutofocus: the reader has just opened the rename form
        autoFocus={onCancel !== undefined}
        value={value}
        aria-invalid={complaint !== null}
        aria-describedby={complaint === null ? undefined : `${id}-complaint`}
        onChange={({ target }) => setValue(target.value)}
      />
      <button type="submit" className="btn is-sm">
        {act}
      </button>
      {complaint === null ? null : (
        <span className="small c-bad" id={`${id}-complaint`} role="alert">
          {complaint}
        </span>
      )}
    </form>
  );
}
