import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, type ReactNode, useCallback, useMemo, useState } from 'react';
import { basePath } from '../api/base.ts';
import type { StreamRow, StreamState } from '../api/event-stream.ts';
import { AsStream } from '../app/as-code.tsx';
import { sendEventCommand } from '../app/create-command.ts';
import { useKeys } from '../app/keys.ts';
import { filteredName } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { useOrganization } from '../app/use-api.ts';
import { useSelectionKeys } from '../app/use-selection.ts';
import { type Tail, useStream } from '../app/use-stream.ts';
import { FilterBar, type FilterField, type FilterValues } from '../ui/filters.tsx';
import { count, shortId } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Empty, Failure } from '../ui/notices.tsx';
import { type Column, Rows } from '../ui/rows.tsx';
import { Code, State, stateWord } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';
import { DeliveryDrawer } from './delivery-drawer.tsx';
import { EventDrawer } from './event-drawer.tsx';
import { MessageDrawer } from './message-drawer.tsx';

const topics = ['deliveries', 'messages', 'events', 'circuits', 'replays'] as const;
const topicWords = { deliveries: 'Deliveries', messages: 'Messages', events: 'Events', circuits: 'Circuits', replays: 'Replays' } as const;
const statuses = [
  'delivered',
  'retrying',
  'dlq',
  'failed',
  'success',
  'exhausted',
  'filtered',
  'transform_failed',
  'schema_failed',
  'open',
  'half_open',
  'closed',
];
const fields: readonly FilterField[] = [
  { name: 'status', word: 'status', isMany: true, choices: statuses.map((value) => ({ value, word: stateWord(value) })) },
  { name: 'sourceId', word: 'source', isMany: true, hint: 'Its id or slug.', show: filteredName },
  { name: 'routeId', word: 'route', isMany: true, hint: 'Its id or slug.', show: filteredName },
  { name: 'destinationId', word: 'destination', isMany: true, hint: 'Its id or slug.', show: filteredName },
  { name: 'applicationId', word: 'application', isMany: true, hint: 'Its id.', show: filteredName },
  { name: 'endpointId', word: 'endpoint', isMany: true, hint: 'Its id.', show: filteredName },
  { name: 'eventType', word: 'event type', isMany: true, hint: 'Its name.' },
];
const columns: readonly Column<StreamRow>[] = [
  { title: 'Time', className: 'mono dim', cell: ({ at }) => <Clock at={at} /> },
  {
    title: 'State',
    cell: ({ status, type }) => (
      <State state={type === 'event.received' ? 'ready' : status} word={type === 'event.received' ? 'Received' : undefined} />
    ),
  },
  { title: 'Event', className: 'grow', cell: (row) => <Subject row={row} /> },
  { title: 'From', className: 'p3 muted', cell: ({ sourceName }) => sourceName },
  {
    title: 'Target',
    className: 'p2 muted',
    cell: ({ destinationName, endpointId }) => destinationName ?? (endpointId === null ? null : shortId(endpointId)),
  },
  { title: 'Attempt', className: 'num p3 muted', cell: ({ attempt }) => attempt },
  { title: 'Code', className: 'num', cell: ({ responseStatus }) => <Code status={responseStatus} /> },
];
const keyOf = ({ position }: StreamRow): string => position;

/** What is happening now? */
export function Live(): ReactElement {
  const search = useSearch({ from: '/o/$org/live' });
  const navigate = useNavigate();
  const { topic = 'deliveries', at, id, ...filters } = search;
  const query = { topics: topic, ...filters };
  const select = useCallback(
    (row: StreamRow | null): void => {
      const selected = { at: row?.position, id: row === null ? undefined : (subjectOf(row) ?? undefined) };
      void navigate({ to: '.', search: ((before: FilterValues) => ({ ...before, ...selected })) as never, replace: true });
    },
    [navigate],
  );
  const setSearch = (next: FilterValues): void => void navigate({ to: '.', search: { topic, ...next } as never, replace: true });
  return (
    <Page
      title="Live"
      actions={
        <>
          <span className="segments" role="group" aria-label="What to follow">
            {topics.map((each) => (
              <button
                key={each}
                type="button"
                aria-pressed={topic === each}
                onClick={() => void navigate({ to: '.', search: { topic: each } as never })}
              >
                {topicWords[each]}
              </button>
            ))}
          </span>
          <AsStream query={query} />
        </>
      }
      isFull
    >
      <Follow key={JSON.stringify(query)} query={query} at={at ?? null} subject={{ topic, id: id ?? null }} select={select}>
        <FilterBar fields={fields} values={filters} onChange={setSearch} />
      </Follow>
    </Page>
  );
}

interface FollowProps {
  query: Record<string, string | undefined>;
  /** Position of the selected row, which may have left the page. */
  at: string | null;
  /** What the selected row is about. */
  subject: Subject;
  select: (row: StreamRow | null) => void;
  children: ReactNode;
}

/** The rows of a stream. They come four times a second, which renders this and not the screen around it. */
function Follow({ query, at, subject, select, children }: FollowProps): ReactElement {
  const tail = useStream(query);
  const { rows, waiting, state, hold } = tail;
  const [isPaused, setPaused] = useState(false);
  const [isAtTop, setAtTop] = useState(true);
  const [toTop, setToTop] = useState(0);
  const pause = useCallback(
    (paused: boolean) => {
      setPaused(paused);
      hold(paused || !isAtTop);
    },
    [hold, isAtTop],
  );
  const newest = useCallback(() => {
    setPaused(false);
    select(null);
    setAtTop(true);
    hold(false);
    setToTop((before) => before + 1);
  }, [hold, select]);
  const keys = useMemo(
    () =>
      new Map([
        [' ', () => pause(!isPaused)],
        ['G', newest],
      ]),
    [pause, isPaused, newest],
  );
  useKeys(keys);
  const selectAt = useCallback((key: string | null) => select(rows.find(({ position }) => position === key) ?? null), [rows, select]);
  useSelectionKeys({ rows, keyOf, selected: at, select: selectAt });
  return (
    <>
      <div>
        {children}
        {state.is === 'lost' ? <Failure message={`${state.why} The console tries again by itself.`} /> : null}
      </div>
      <div className="split">
        <div className="live-list">
          {waiting > 0 ? <Newer waiting={waiting} onShow={newest} /> : null}
          {rows.length === 0 ? (
            <Waiting topic={subject.topic} />
          ) : (
            <Rows
              label="Newest first"
              columns={columns}
              rows={rows}
              keyOf={keyOf}
              selected={at}
              onSelect={selectAt}
              isDense
              toTop={toTop}
              onTop={(atTop) => {
                if (atTop === isAtTop) return;
                setAtTop(atTop);
                hold(isPaused || !atTop);
              }}
            />
          )}
          <Foot tail={tail} isPaused={isPaused} onPause={() => pause(!isPaused)} />
        </div>
        {at === null ? null : <SubjectDrawer key={at} subject={subject} onClose={() => select(null)} />}
      </div>
    </>
  );
}

/** How many rows wait, and the way to them. */
function Newer({ waiting, onShow }: { waiting: number; onShow: () => void }): ReactElement {
  return (
    <button className="bulk newer" type="button" onClick={onShow}>
      <Icon name="up" size={14} />
      <strong>{count(waiting)} more</strong>
      <span className="muted wide-only">The stream continues; this list waits while you read.</span>
      <span className="spacer" />
      <span className="medium">Show newest</span>
      <kbd>G</kbd>
    </button>
  );
}

interface Subject {
  topic: string;
  id: string | null;
}

/** The id that a drawer shows; circuits and replays have links alone. */
function subjectOf({ topic, id, eventId }: StreamRow): string | null {
  if (topic === 'events') return eventId;
  return topic === 'deliveries' || topic === 'messages' ? id : null;
}

function SubjectDrawer({ subject: { topic, id }, onClose }: { subject: Subject; onClose: () => void }): ReactElement | null {
  if (id === null) return null;
  if (topic === 'messages') return <MessageDrawer id={id} onClose={onClose} />;
  if (topic === 'deliveries') return <DeliveryDrawer id={id} onClose={onClose} />;
  return topic === 'events' ? <EventDrawer id={id} onClose={onClose} /> : null;
}

function Foot({
  tail: { state, skipped, hasGap },
  isPaused,
  onPause,
}: {
  tail: Tail;
  isPaused: boolean;
  onPause: () => void;
}): ReactElement {
  return (
    <div className="table-foot">
      <span className="row" role="status">
        {state.is === 'connected' || state.is === 'shared' ? <span className="pulse" /> : null}
        {connection(state)}
      </span>
      {skipped > 0 ? <span>{count(skipped)} rows left out: 50 a second are shown. Filter to see every row.</span> : null}
      {hasGap ? <span>Rows may be missing from before.</span> : null}
      <span className="spacer" />
      <button type="button" className="btn is-sm is-quiet" aria-pressed={isPaused} onClick={onPause}>
        <Icon name={isPaused ? 'play' : 'pause'} />
        {isPaused ? 'Resume' : 'Pause'}
      </button>
    </div>
  );
}

function connection(state: StreamState): string {
  switch (state.is) {
    case 'connected':
      return 'Connected';
    case 'connecting':
      return 'Connecting…';
    case 'shared':
      return 'Connected through another window';
    case 'elsewhere':
      return 'Another window has the stream. Click here to have it again.';
    case 'hidden':
      return 'Waits until this tab is seen';
    case 'lost':
      return 'Not connected';
  }
}

/** The lists that have what happened earlier. */
const earlier = [
  { topic: 'deliveries', to: '/o/$org/deliveries', before: 'Earlier ones are in', word: 'deliveries' },
  { topic: 'messages', to: '/o/$org/messages', before: 'Earlier ones are in', word: 'messages' },
  { topic: 'events', to: '/o/$org/events', before: 'Earlier ones are in', word: 'events' },
  { topic: 'circuits', to: '/o/$org/targets', before: 'Circuits that are open are in', word: 'targets' },
  { topic: 'replays', to: '/o/$org/replays', before: 'Earlier ones are in', word: 'replays' },
] as const;

function Waiting({ topic }: { topic: string }): ReactElement {
  const org = useOrganization();
  const { to, before, word } = earlier.find((each) => each.topic === topic) ?? earlier[0];
  return (
    <Empty title="Nothing has happened since you opened this page" command={commandFor(topic, org)}>
      <p>
        Rows appear here as they happen. {before}{' '}
        <Link to={to} params={{ org }}>
          {word}
        </Link>
        .
      </p>
    </Empty>
  );
}

/** Makes a row of the topic; undefined: no single command does. */
function commandFor(topic: string, org: string): string | undefined {
  if (topic === 'circuits' || topic === 'replays') return undefined;
  if (topic === 'messages') return sendEventCommand(org);
  return `curl -d '{"hello":"world"}' ${location.origin}${basePath}/ingest/${org}/SOURCE`;
}

/** What a row is about, as a link to it. */
function Subject({ row: { topic, id, eventId, eventType, routeName, destinationId, endpointId } }: { row: StreamRow }): ReactElement {
  const org = useOrganization();
  const linked = id ?? eventId ?? destinationId ?? endpointId;
  if (linked === null) return <span className="dim">–</span>;
  const link = (
    <Link to="/o/$org/id/$id" params={{ org, id: linked }} title={linked} className="id">
      {shortId(linked)}
    </Link>
  );
  if (topic === 'deliveries' && id !== null)
    return (
      <>
        {routeName === null ? null : <span className="name">{routeName} </span>}
        <Link to="/o/$org/deliveries/$id" params={{ org, id }} title={id} className="id">
          {shortId(id)}
        </Link>
      </>
    );
  if (topic === 'messages' && id !== null)
    return (
      <>
        {eventType === null ? null : <span className="name">{eventType} </span>}
        <Link to="/o/$org/messages/$id" params={{ org, id }} title={id} className="id">
          {shortId(id)}
        </Link>
      </>
    );
  return link;
}
