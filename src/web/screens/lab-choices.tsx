import { type ReactElement, type ReactNode, useId } from 'react';
import { type Candidate, type Candidates, isNamed, useCandidates } from '../app/candidates.tsx';
import { kinds, type LabKind } from './lab-kinds.ts';

const eventCounts = [10, 25, 50, 100];
const usualEvents = 25;

export interface LabSearch {
  kind?: string;
  id?: string;
  source?: string;
  type?: string;
  events?: string;
}

/** How many events are tried, the newest first. */
export function eventsIn({ events }: LabSearch): number {
  const wanted = Number(events);
  return Number.isInteger(wanted) && wanted >= 1 && wanted <= 100 ? wanted : usualEvents;
}

export interface ChoicesProps {
  kind: LabKind;
  search: LabSearch;
  set: (next: LabSearch) => void;
}

/** What to begin with, and the events to try it on. */
export function Choices({ kind, search, set }: ChoicesProps): ReactElement {
  const objects = useCandidates(kinds[kind].family, search.id === undefined ? [] : [search.id]);
  const count = eventsIn(search);
  return (
    <div className="fields">
      <Choice
        label={kinds[kind].word}
        candidates={objects}
        value={search.id ?? ''}
        onChange={(id) => set({ id: id === '' ? undefined : id })}
      >
        <option value="">A new one</option>
        {options(objects.named, search.id, ({ id }) => id)}
      </Choice>
      {kinds[kind].isOfWebhooks ? (
        <TypeChoice isOpened={search.id !== undefined} type={search.type} set={set} />
      ) : (
        <SourceChoice source={search.source} set={set} />
      )}
      <Choice label="Events" value={String(count)} onChange={(events) => set({ events })}>
        {[...new Set([...eventCounts, count])].map((each) => (
          <option key={each} value={each}>
            The last {each}
          </option>
        ))}
      </Choice>
    </div>
  );
}

function SourceChoice({ source, set }: { source: string | undefined; set: ChoicesProps['set'] }): ReactElement {
  const sources = useCandidates('sources', source === undefined ? [] : [source]);
  return (
    <Choice label="Source" candidates={sources} value={source ?? ''} onChange={(next) => set({ source: next === '' ? undefined : next })}>
      <option value="">All sources</option>
      {options(sources.named, source, ({ id, slug }) => slug ?? id)}
    </Choice>
  );
}

interface TypeChoiceProps {
  /** What is opened has an event type of its own. */
  isOpened: boolean;
  type: string | undefined;
  set: ChoicesProps['set'];
}

function TypeChoice({ isOpened, type, set }: TypeChoiceProps): ReactElement {
  const types = useCandidates('event-types', type === undefined ? [] : [type]);
  return (
    <Choice
      label="Events of the type"
      candidates={types}
      value={type ?? ''}
      onChange={(next) => set({ type: next === '' ? undefined : next })}
    >
      <option value="">{isOpened ? 'Its own' : 'All types'}</option>
      {options(types.named, type, ({ name }) => name)}
    </Choice>
  );
}

/** Options of what exists; the one in the address is an option even if it is not found. */
export function options(named: readonly Candidate[], chosen: string | undefined, keyOf: (each: Candidate) => string): ReactElement[] {
  const all = named.map((each) => (
    // The address names it by its id or by its slug.
    <option key={each.id} value={chosen !== undefined && isNamed(each, chosen) ? chosen : keyOf(each)}>
      {each.name}
    </option>
  ));
  if (chosen === undefined || named.some((each) => isNamed(each, chosen))) return all;
  return [
    ...all,
    <option key={chosen} value={chosen}>
      {chosen}
    </option>,
  ];
}

export interface ChoiceProps {
  label: string;
  value: string;
  isFixed?: boolean;
  candidates?: Candidates;
  onChange: (value: string) => void;
  children: ReactNode;
}

export function Choice({ label, value, isFixed = false, candidates, onChange, children }: ChoiceProps): ReactElement {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {candidates?.search}
      <select className="input" id={id} value={value} disabled={isFixed} onChange={({ target }) => onChange(target.value)}>
        {children}
      </select>
      {candidates?.notice}
    </div>
  );
}
