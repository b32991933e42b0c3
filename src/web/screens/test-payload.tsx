import { useQuery } from '@tanstack/react-query';
import { type ReactElement, use, useId } from 'react';
import { call, readBytes } from '../api/client.ts';
import { useCandidates } from '../app/candidates.tsx';
import { parsedJson } from '../app/resource-form/exact-json.ts';
import { useOrganization, useRead } from '../app/use-api.ts';
import { payloadIsGone, writtenEvent } from '../app/written-event.ts';
import { shortId } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { minuteLabel, ZoneContext } from '../ui/time.tsx';
import { Choice, options } from './lab-choices.tsx';
import { jsonOf } from './lab-kinds.ts';
import { isEndpointId } from './target-data.ts';

/** The payload of a test as it is chosen. */
export interface TestDraft {
  /** `usual`: the example of the event type, or a sample event. */
  from: 'usual' | 'event' | 'own';
  /** Event type, for the test of an endpoint; empty: none. */
  eventTypeId: string;
  /** Empty: not chosen. */
  eventId: string;
  /** What is typed; null: nothing, so it is what was chosen. */
  text: string | null;
}

export const usualTest: TestDraft = { from: 'usual', eventTypeId: '', eventId: '', text: null };

export interface TestPayload {
  /** Name of the event type; undefined: none is chosen, or it is not read yet. */
  eventType: string | undefined;
  /** As it is sent; null: the sample event of the API. */
  text: string | null;
  /** The chosen event type or event is not read yet. */
  isLoading: boolean;
  /** Why there is none; null: there is one. */
  error: string | null;
}

const eventsListed = 20;

/** Payload of a draft for the target. */
export function useTestPayload(id: string, { from, eventTypeId, eventId, text }: TestDraft): TestPayload {
  const isEndpoint = isEndpointId(id);
  const type = useRead('GET /event-types/{id}', { path: { id: eventTypeId } }, { isEnabled: eventTypeId !== '' });
  const event = useEventPayload(isEndpoint, from === 'event' ? eventId : '');
  const example = type.data?.data.examplePayload ?? null;
  const chosen = from === 'own' ? '{}' : from === 'event' ? (event.data ?? '') : example;
  return {
    eventType: type.data?.data.name,
    text: text ?? chosen,
    isLoading: type.isLoading || event.isLoading,
    error: type.error?.message ?? event.error?.message ?? null,
  };
}

/** The body of the test, in which numbers keep the digits that were typed; or what is missing. */
export function testBody(id: string, draft: TestDraft, { eventType, text }: TestPayload): { body: string } | { problem: string } {
  if (draft.from === 'event' && draft.eventId === '') return { problem: 'Choose an event.' };
  const named: [string, string][] = eventType === undefined ? [] : [['eventType', JSON.stringify(eventType)]];
  if (text === null) return { body: jsonOf(named) };
  const read = parsedJson(text);
  if (read === undefined) return { problem: 'The payload is not JSON.' };
  if (!isEndpointId(id) && (typeof read.value !== 'object' || read.value === null || Array.isArray(read.value)))
    return { problem: 'A test of a destination takes a JSON object.' };
  return { body: jsonOf([...named, ['payload', text.trim()]]) };
}

interface TestPayloadFieldsProps {
  id: string;
  draft: TestDraft;
  payload: TestPayload;
  onChange: (draft: TestDraft) => void;
}

/** Chooses the payload of a test, and edits it. */
export function TestPayloadFields({ id, draft, payload, onChange }: TestPayloadFieldsProps): ReactElement {
  const field = useId();
  const isEndpoint = isEndpointId(id);
  const { from, eventTypeId, eventId } = draft;
  const change = (next: Partial<TestDraft>): void => onChange({ ...draft, text: null, ...next });
  return (
    <>
      <div className="fields">
        {isEndpoint ? <TypeChoice value={eventTypeId} onChange={(next) => change({ eventTypeId: next })} /> : null}
        <Choice label="Payload of" value={from} onChange={(next) => change({ from: next as TestDraft['from'] })}>
          <option value="usual">{eventTypeId === '' ? 'A sample event' : 'The event type'}</option>
          <option value="event">A recent event</option>
          <option value="own">My own</option>
        </Choice>
        {from === 'event' ? <EventChoice id={id} value={eventId} onChange={(next) => change({ eventId: next })} /> : null}
      </div>
      {payload.isLoading ? <Loading what="the payload" /> : null}
      {payload.isLoading || (from === 'event' && eventId === '') ? null : payload.text === null ? (
        from === 'usual' && eventTypeId !== '' ? (
          <p className="small muted">The event type has no example, so a sample event is sent.</p>
        ) : null
      ) : (
        <div className="field">
          <label htmlFor={field}>Payload</label>
          <textarea
            className="input is-mono"
            id={field}
            rows={7}
            spellCheck={false}
            value={payload.text}
            onChange={({ target }) => onChange({ ...draft, text: target.value })}
          />
          <span className="help">JSON. The target gets it as it is typed.</span>
        </div>
      )}
    </>
  );
}

function TypeChoice({ value, onChange }: { value: string; onChange: (id: string) => void }): ReactElement {
  const types = useCandidates('event-types', value === '' ? [] : [value]);
  return (
    <Choice label="Event type" candidates={types} value={value} onChange={onChange}>
      <option value="">posthorn.test</option>
      {options(types.named, value === '' ? undefined : value, (each) => each.id)}
    </Choice>
  );
}

function EventChoice({ id, value, onChange }: { id: string; value: string; onChange: (id: string) => void }): ReactElement {
  const zone = use(ZoneContext);
  const { data, error, refetch } = useRecentEvents(id);
  return (
    <div>
      <Choice label="Event" value={value} onChange={onChange}>
        <option value="">Choose…</option>
        {data?.map((event) => (
          <option key={event.id} value={event.id}>
            {minuteLabel(event.at, zone)} {event.from}, {shortId(event.id)}
          </option>
        ))}
      </Choice>
      {data?.length === 0 ? <p className="help">There is no event yet.</p> : null}
      {error === null ? null : <Failure message={error.message} retry={() => void refetch()} />}
    </div>
  );
}

interface RecentEvent {
  id: string;
  at: string;
  /** Slug of its source, or the name of its type. */
  from: string;
}

/** The last events that were sent to a target; of one that had none the last of the organization. */
function useRecentEvents(id: string) {
  const organization = useOrganization();
  return useQuery<RecentEvent[]>({
    queryKey: [organization, 'events for a test', id],
    queryFn: async ({ signal }) => {
      const options = { organization, signal };
      const own = await (isEndpointId(id)
        ? webhookEvents({ endpointId: [id], limit: eventsListed }, options)
        : sourceEvents({ destinationId: [id], limit: eventsListed }, options));
      if (own.length > 0) return own;
      return await (isEndpointId(id) ? webhookEvents({ limit: eventsListed }, options) : sourceEvents({ limit: eventsListed }, options));
    },
  });
}

interface ReadOptions {
  organization: string;
  signal: AbortSignal;
}

async function sourceEvents(query: { destinationId?: string[]; limit: number }, options: ReadOptions): Promise<RecentEvent[]> {
  const { data } = await call('GET /events', { query }, options);
  return data.map(({ id, receivedAt, sourceSlug }) => ({ id, at: receivedAt, from: sourceSlug }));
}

async function webhookEvents(query: { endpointId?: string[]; limit: number }, options: ReadOptions): Promise<RecentEvent[]> {
  const { data } = await call('GET /webhook-events', { query }, options);
  return data.map(({ id, createdAt, eventType }) => ({ id, at: createdAt, from: eventType }));
}

/** The payload of an event as it is written. Fails for one that is no JSON, is gone or is too large to be edited. */
function useEventPayload(isOfWebhooks: boolean, id: string) {
  const organization = useOrganization();
  return useQuery<string>({
    queryKey: [organization, 'payload for a test', id],
    queryFn: async ({ signal }) => {
      const members = await writtenEvent(isOfWebhooks, id, async (name, input) =>
        new TextDecoder().decode(await readBytes(name, input, { organization, signal })),
      );
      const encoding = members.get('payloadEncoding') ?? 'null';
      if (encoding === 'null') throw new Error(payloadIsGone);
      if (members.get('payloadTruncated') === 'true') throw new Error('Its payload is too large to be edited here.');
      if (encoding !== '"json"') throw new Error('Its payload is not JSON. A test takes JSON alone.');
      return members.get('payload') ?? 'null';
    },
    enabled: id !== '',
    retry: false,
  });
}
