import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, type ReactNode, useId, useMemo } from 'react';
import { basePath } from '../api/base.ts';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { Page } from '../app/page.tsx';
import { useBytes, useOrganization, useRead, useWrite } from '../app/use-api.ts';
import { Icon } from '../ui/icon.tsx';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { Segments } from '../ui/segments.tsx';
import { useDraft } from './lab-draft.ts';
import { definitionOf, kinds, type LabKind, labKinds, type Stored, storedIn, transformTypes } from './lab-kinds.ts';
import { LabResults } from './lab-results.tsx';
import { useLabRun } from './lab-run.ts';
import { LabSave } from './lab-save.tsx';

const eventCounts = [10, 25, 50, 100];
const usualEvents = 25;

interface LabSearch {
  kind?: string;
  id?: string;
  source?: string;
  events?: string;
}

/** Would this filter, transform or schema do what I mean? */
export function Lab(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search: LabSearch = useSearch({ from: '/o/$org/lab' });
  const kind = labKinds.find((each) => each === search.kind) ?? 'filter';
  const set = (next: LabSearch): void => void navigate({ to: '.', search: { ...search, ...next } as never, replace: true });
  const { data: some, error, refetch } = useRead('GET /events', { query: { limit: 1, sourceId: search.source } });
  return (
    <Page
      title="Lab"
      sub="Would it do what you mean? It is tried on the last events, and nothing is delivered."
      actions={
        <Segments
          label="What to try"
          choices={labKinds.map((value) => ({ value, word: kinds[value].word }))}
          value={kind}
          onChange={(value) => set({ kind: value, id: undefined })}
        />
      }
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      <Choices kind={kind} search={search} set={set} />
      {some?.data.length === 0 ? <NoEvents source={search.source} /> : null}
      <Opened
        key={`${org} ${kind} ${search.id ?? ''}`}
        kind={kind}
        id={search.id}
        sourceId={search.source}
        count={eventsIn(search)}
        open={(id) => set({ kind, id })}
      />
    </Page>
  );
}

function eventsIn({ events }: LabSearch): number {
  const wanted = Number(events);
  return Number.isInteger(wanted) && wanted >= 1 && wanted <= 100 ? wanted : usualEvents;
}

function NoEvents({ source }: { source: string | undefined }): ReactElement {
  const org = useOrganization();
  return (
    <Empty
      title={source === undefined ? 'No event yet' : 'No event of this source'}
      command={`curl ${location.origin}${basePath}/ingest/${org}/${source ?? 'SOURCE'} \\\n  -H 'content-type: application/json' -d '{"type":"order.paid"}'`}
    >
      <p>The Lab tries things on events that have come in. Send one to the address of a source, then run.</p>
    </Empty>
  );
}

/** What to begin with, and the events to try it on. */
function Choices({ kind, search, set }: { kind: LabKind; search: LabSearch; set: (next: LabSearch) => void }): ReactElement {
  const objects = useRead(kinds[kind].list, { query: { pageSize: 100 } });
  const sources = useRead('GET /sources', { query: { pageSize: 100 } });
  const error = objects.error ?? sources.error;
  const count = eventsIn(search);
  return (
    <>
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} />}
      <div className="fields">
        <Choice label={kinds[kind].word} value={search.id ?? ''} onChange={(id) => set({ id: id === '' ? undefined : id })}>
          <option value="">A new one</option>
          {named(objects.data?.data, search.id, ({ id }) => id)}
        </Choice>
        <Choice label="Source" value={search.source ?? ''} onChange={(source) => set({ source: source === '' ? undefined : source })}>
          <option value="">All sources</option>
          {named(sources.data?.data, search.source, ({ slug }) => slug)}
        </Choice>
        <Choice label="Events" value={String(count)} onChange={(events) => set({ events })}>
          {[...new Set([...eventCounts, count])].map((each) => (
            <option key={each} value={each}>
              The last {each}
            </option>
          ))}
        </Choice>
      </div>
    </>
  );
}

type Named = { id: string; slug: string; name: string };

/** Options of what there is; what the address names is one also where the list does not reach it. */
function named(all: readonly Named[] | undefined, chosen: string | undefined, keyOf: (each: Named) => string): ReactElement[] {
  const options = (all ?? []).map((each) => (
    <option key={keyOf(each)} value={keyOf(each)}>
      {each.name}
    </option>
  ));
  if (chosen === undefined || (all ?? []).some((each) => keyOf(each) === chosen)) return options;
  return [
    ...options,
    <option key={chosen} value={chosen}>
      {chosen}
    </option>,
  ];
}

interface ChoiceProps {
  label: string;
  value: string;
  isFixed?: boolean;
  onChange: (value: string) => void;
  children: ReactNode;
}

function Choice({ label, value, isFixed = false, onChange, children }: ChoiceProps): ReactElement {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select className="input" id={id} value={value} disabled={isFixed} onChange={({ target }) => onChange(target.value)}>
        {children}
      </select>
    </div>
  );
}

interface BenchProps {
  kind: LabKind;
  id: string | undefined;
  sourceId: string | undefined;
  count: number;
  open: (id: string) => void;
}

/** The bench, once what it begins with is read. */
function Opened({ ...props }: BenchProps): ReactElement {
  const { kind, id } = props;
  const { data, error, refetch } = useBytes(kinds[kind].read, { path: { id: id ?? '' } }, { isEnabled: id !== undefined });
  const stored = useMemo(() => (data === undefined ? null : storedIn(kind, new TextDecoder().decode(data))), [kind, data]);
  if (error !== null) return <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />;
  if (id !== undefined && stored === null) return <Loading what={`the ${kinds[kind].word.toLowerCase()}`} />;
  return <Bench {...props} stored={stored} />;
}

function Bench({ kind, id, sourceId, count, open, stored }: BenchProps & { stored: Stored | null }): ReactElement {
  const org = useOrganization();
  const what = kinds[kind];
  const state = useDraft(`${org} ${kind} ${id ?? ''}`, stored?.draft ?? what.start);
  const { draft, isChanged, edit, undo } = state;
  const create = useWrite(what.create);
  const { run, start } = useLabRun();
  const field = useId();
  const hint = useId();
  const definition = useMemo(() => definitionOf(kind, draft), [kind, draft]);
  const fields = 'fields' in definition ? definition.fields : null;
  const canRun = fields !== null && (kind !== 'schema' || (stored !== null && !isChanged));
  const tryIt = (): void => {
    if (canRun) start({ kind, id: stored?.id, fields, sourceId, count });
  };
  return (
    <>
      <section className="stack" aria-label="Definition">
        {kind === 'transform' ? (
          <div className="row">
            <Choice
              label="Language"
              value={draft.type}
              isFixed={create.isPending}
              onChange={(type) => edit({ type: transformTypes.find((each) => each === type) })}
            >
              {transformTypes.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </Choice>
          </div>
        ) : null}
        <div className="field">
          <label htmlFor={field}>{what.label}</label>
          <textarea
            className="input is-mono"
            id={field}
            aria-describedby={hint}
            aria-invalid={'problem' in definition}
            rows={12}
            readOnly={create.isPending}
            spellCheck={false}
            value={draft.text}
            onChange={({ target }) => edit({ text: target.value })}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
              event.preventDefault();
              tryIt();
            }}
          />
          <p className="help" id={hint}>
            {'problem' in definition ? <span className="c-bad">{definition.problem}</span> : what.hint}
          </p>
        </div>
        <div className="row">
          <button type="button" className="btn is-primary" disabled={!canRun} onClick={tryIt}>
            <Icon name="play" />
            Run
          </button>
          <span className="small muted wide-only">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
          {stored === null ? null : <ManifestLink id={stored.id} />}
          {isChanged ? (
            <button type="button" className="btn" onClick={undo}>
              Undo the changes
            </button>
          ) : null}
        </div>
        <LabSave
          kind={kind}
          id={id}
          draft={state}
          stored={stored}
          fields={fields}
          create={create}
          onCreated={(created) => {
            undo();
            open(created);
          }}
        />
      </section>
      {run === null ? null : <LabResults run={run} kind={what} />}
    </>
  );
}
