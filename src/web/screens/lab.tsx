import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useId, useMemo } from 'react';
import { basePath } from '../api/base.ts';
import { createCommand } from '../app/create-command.ts';
import { DeleteAct, EffectLoading } from '../app/delete-act.tsx';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { Page } from '../app/page.tsx';
import { useBytes, useOrganization, useRead, useWrite } from '../app/use-api.ts';
import { quantity } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { Segments } from '../ui/segments.tsx';
import { EventTypeEffect, SubscriptionEffect } from './delete-effects.tsx';
import { Choice, Choices, eventsIn, type LabSearch } from './lab-choices.tsx';
import { useDraft } from './lab-draft.ts';
import { definitionOf, kinds, type LabKind, labKinds, type Stored, storedIn, transformTypes } from './lab-kinds.ts';
import { LabResults } from './lab-results.tsx';
import { useLabRun } from './lab-run.ts';
import { LabSave } from './lab-save.tsx';

/** Would this filter, expression, transform or schema do what I mean? */
export function Lab(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search: LabSearch = useSearch({ from: '/o/$org/lab' });
  const kind = labKinds.find((each) => each === search.kind) ?? 'filter';
  const set = (next: LabSearch): void => void navigate({ to: '.', search: { ...search, ...next } as never, replace: true });
  return (
    <Page
      title="Lab"
      sub="Would it do what you mean? It is tried on the last events, and nothing is delivered."
      actions={
        <Segments
          label="What to try"
          choices={labKinds.map((value) => ({ value, word: kinds[value].choice ?? kinds[value].word }))}
          value={kind}
          onChange={(value) => set({ kind: value, id: undefined })}
        />
      }
    >
      <Choices key={kind} kind={kind} search={search} set={set} />
      {kinds[kind].isOfWebhooks ? <AnyWebhookEvent type={search.type} /> : <AnyEvent source={search.source} />}
      <Opened
        key={`${org} ${kind} ${search.id ?? ''}`}
        kind={kind}
        id={search.id}
        sourceId={search.source}
        eventType={search.type}
        count={eventsIn(search)}
        open={(id) => set({ kind, id })}
      />
    </Page>
  );
}

/** Shows a notice while no event of a source has come in. */
function AnyEvent({ source }: { source: string | undefined }): ReactElement | null {
  const { data, error, refetch } = useRead('GET /events', { query: { limit: 1, sourceId: source === undefined ? undefined : [source] } });
  if (error !== null) return <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />;
  return data?.data.length === 0 ? <NoEvents source={source} /> : null;
}

/** Shows a notice while no event has been sent to webhook endpoints. */
function AnyWebhookEvent({ type }: { type: string | undefined }): ReactElement | null {
  const { data, error, refetch } = useRead('GET /webhook-events', {
    query: { limit: 1, eventType: type === undefined ? undefined : [type] },
  });
  if (error !== null) return <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />;
  return data?.data.length === 0 ? <NoWebhookEvents type={type} /> : null;
}

function NoWebhookEvents({ type }: { type: string | undefined }): ReactElement {
  const org = useOrganization();
  const body = JSON.stringify({ eventType: type ?? 'order.paid', payload: { id: 'o-1', total: 20 } });
  return (
    <Empty
      title={type === undefined ? 'No event for webhook endpoints yet' : 'No event of this type'}
      command={createCommand(org, '/send-event', body)}
    >
      <p>The Lab tries this on events that were sent to webhook endpoints. Send one, then run.</p>
    </Empty>
  );
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

interface BenchProps {
  kind: LabKind;
  id: string | undefined;
  sourceId: string | undefined;
  /** Name of the event type; undefined: that of what is opened, or all. */
  eventType: string | undefined;
  count: number;
  open: (id: string | undefined) => void;
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

function Bench({ kind, id, sourceId, eventType: chosenType, count, open, stored }: BenchProps & { stored: Stored | null }): ReactElement {
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
  const eventType = chosenType ?? stored?.eventType ?? undefined;
  const tryIt = (): void => {
    if (fields !== null) start({ kind, fields, labels: stored?.subscription?.labels ?? [], sourceId, eventType, count });
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
          <button type="button" className="btn is-primary" disabled={fields === null} onClick={tryIt}>
            <Icon name="play" />
            Run
          </button>
          <span className="small muted wide-only">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
          {stored === null ? null : <ManifestLink id={stored.id} />}
          {stored === null ? null : (
            <DeleteAct
              key={stored.id}
              family={what.family}
              id={stored.id}
              noun={what.word.toLowerCase()}
              name={stored.subscription === null ? stored.name : undefined}
              updatedAt={stored.updatedAt}
              onDeleted={() => {
                undo();
                open(undefined);
              }}
            >
              <DeletedEffect kind={kind} stored={stored} />
            </DeleteAct>
          )}
          {isChanged ? (
            <button type="button" className="btn" onClick={undo}>
              Undo the changes
            </button>
          ) : null}
        </div>
        <LabSave
          key={id}
          kind={kind}
          id={id}
          eventType={eventType ?? null}
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

/** What the deletion of what is opened does. */
function DeletedEffect({ kind, stored: { id, routeCount } }: { kind: LabKind; stored: Stored }): ReactElement {
  if (kind === 'expression') return <SubscriptionEffect />;
  if (kind === 'event-type') return <OpenedEventTypeEffect id={id} />;
  return (
    <p>
      {quantity(routeCount, 'route refers', 'routes refer')} to it. The API deletes it only where no route, no subscription and no other
      organization uses it.
    </p>
  );
}

function OpenedEventTypeEffect({ id }: { id: string }): ReactElement {
  const { data, error } = useRead('GET /event-types/{id}', { path: { id } });
  if (error !== null) return <Failure message={error.message} requestId={error.requestId} />;
  if (data === undefined) return <EffectLoading what="its subscriptions" />;
  return <EventTypeEffect subscriptionCount={data.data.subscriptionCount} />;
}
