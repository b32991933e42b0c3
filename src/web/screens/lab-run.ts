import { useCallback, useEffect, useRef, useState } from 'react';
import { type ApiError, call, readBytes } from '../api/client.ts';
import { apiErrorOf, retryRateLimited } from '../app/retry-rate-limited.ts';
import { useOrganization } from '../app/use-api.ts';
import { type Ask, payloadIsGone, writtenEvent } from '../app/written-event.ts';
import { forEachAtOnce } from '../ui/at-once.ts';
import { bytes } from '../ui/format.ts';
import { type Field, jsonOf, kinds, type LabKind } from './lab-kinds.ts';
import { filterOutcome, type Outcome, subscribed, transformed, validated } from './lab-outcomes.ts';

/** An event that something is tried on. */
export interface LabEvent {
  id: string;
  at: string;
  /** Slug of its source, or the name of its type. */
  from: string;
  /** Null: of an event for webhook endpoints, which is JSON. */
  contentType: string | null;
  /** Bytes of its payload; null: the list omits it. */
  size: number | null;
}

export interface LabRow {
  event: LabEvent;
  /** Null: it is not there yet. */
  outcome: Outcome | null;
}

export interface Run {
  rows: LabRow[];
  isRunning: boolean;
  /** The events could not be read. */
  error: ApiError | null;
}

export interface Trial {
  kind: LabKind;
  fields: readonly Field[];
  /** Filters by labels, which decide before an expression. */
  labels: readonly Field[];
  /** The source, where events of sources are tried; undefined: all of them. */
  sourceId: string | undefined;
  /** Name of the type, where events for webhook endpoints are tried; undefined: all of them. */
  eventType: string | undefined;
  /** Number of events, the newest first. */
  count: number;
}

const atOnce = 4;
const maxPayloadBytes = 262_144;

/** Tries a definition on the last events. A new run ends the one before, and so does leaving the screen. */
export function useLabRun(): { run: Run | null; start: (trial: Trial) => void } {
  const organization = useOrganization();
  const [run, setRun] = useState<Run | null>(null);
  const current = useRef<AbortController | null>(null);
  useEffect(() => () => current.current?.abort(), []);
  const start = useCallback(
    (trial: Trial) => {
      current.current?.abort();
      const controller = new AbortController();
      current.current = controller;
      setRun({ rows: [], isRunning: true, error: null });
      const change = (next: (before: Run) => Run): void => {
        if (!controller.signal.aborted) setRun((before) => (before === null ? null : next(before)));
      };
      void runTrial(trial, organization, controller.signal, change).catch((thrown: unknown) =>
        change((before) => ({ ...before, isRunning: false, error: apiErrorOf(thrown) })),
      );
    },
    [organization],
  );
  return { run, start };
}

async function runTrial(
  trial: Trial,
  organization: string,
  signal: AbortSignal,
  change: (next: (before: Run) => Run) => void,
): Promise<void> {
  const events = await retryRateLimited(() => lastEvents(trial, { organization, signal }), signal);
  change((before) => ({ ...before, rows: events.map((event) => ({ event, outcome: null })) }));
  const judge = async (event: LabEvent, index: number): Promise<void> => {
    const outcome = await outcomeOf(trial, event, (name, input) =>
      retryRateLimited(async () => new TextDecoder().decode(await readBytes(name, input, { organization, signal })), signal),
    ).catch((thrown: unknown): Outcome => {
      signal.throwIfAborted();
      return { result: 'error', why: [apiErrorOf(thrown).message] };
    });
    change((before) => ({ ...before, rows: before.rows.with(index, { event, outcome }) }));
  };
  await forEachAtOnce(events, judge, { atOnce, signal });
  change((before) => ({ ...before, isRunning: false }));
}

async function lastEvents(
  { kind, count, sourceId, eventType }: Trial,
  options: { organization: string; signal: AbortSignal },
): Promise<LabEvent[]> {
  if (kinds[kind].isOfWebhooks) {
    const query = { limit: count, ...(eventType !== undefined && { eventType: [eventType] }) };
    const { data } = await call('GET /webhook-events', { query }, options);
    return data.map((event) => ({ id: event.id, at: event.createdAt, from: event.eventType, contentType: null, size: null }));
  }
  const query = { limit: count, ...(sourceId !== undefined && { sourceId: [sourceId] }) };
  const { data } = await call('GET /events', { query }, options);
  return data.map(({ id, receivedAt, sourceSlug, contentType, size }) => ({ id, at: receivedAt, from: sourceSlug, contentType, size }));
}

function tooLarge(size: number): Outcome {
  return { result: 'skipped', why: [`Its payload has ${bytes(size)}. The Lab tries payloads up to ${bytes(maxPayloadBytes)}.`] };
}

const isGone: Outcome = { result: 'skipped', why: [payloadIsGone] };

async function outcomeOf(trial: Trial, event: LabEvent, ask: Ask): Promise<Outcome> {
  if (event.size !== null && event.size > maxPayloadBytes) return tooLarge(event.size);
  return kinds[trial.kind].isOfWebhooks ? await ofWebhookEvent(trial, event, ask) : await ofSourceEvent(trial, event, ask);
}

async function ofSourceEvent(trial: Trial, event: LabEvent, ask: Ask): Promise<Outcome> {
  const members = await writtenEvent(false, event.id, ask);
  const written = (name: string): string => members.get(name) ?? 'null';
  const unread = unreadable(event.contentType ?? '', written('payloadEncoding'));
  if (unread !== null) return unread;
  const payload: Field = ['payload', written('payload')];
  const context: Field[] = [
    ['headers', written('headers')],
    ['query', written('query')],
  ];
  switch (trial.kind) {
    case 'filter':
      return filterOutcome(trial.fields, await ask('POST /filters/test', { bodyText: jsonOf([...trial.fields, payload, ...context]) }));
    case 'transform': {
      const source: Field = ['source', JSON.stringify(event.from)];
      const body = jsonOf([...trial.fields, source, payload, ...context]);
      return transformed(payload[1], await ask('POST /transforms/test', { bodyText: body }));
    }
    default:
      return validated(await ask('POST /schemas/test', { bodyText: jsonOf([...trial.fields, payload]) }));
  }
}

async function ofWebhookEvent(trial: Trial, event: LabEvent, ask: Ask): Promise<Outcome> {
  const members = await writtenEvent(true, event.id, ask);
  const written = (name: string, otherwise: string): string => members.get(name) ?? otherwise;
  const payload = written('payload', 'null');
  if (written('payloadEncoding', 'null') === 'null') return isGone;
  const size = new TextEncoder().encode(payload).length;
  if (size > maxPayloadBytes) return tooLarge(size);
  if (trial.kind === 'event-type') {
    const schema = String(JSON.parse(trial.fields[0]?.[1] ?? '""'));
    return validated(
      await ask('POST /schemas/test', {
        bodyText: jsonOf([
          ['jsonSchema', schema],
          ['payload', payload],
        ]),
      }),
    );
  }
  const labels = written('labels', '{}');
  const metadata = written('metadata', '{}');
  const body = jsonOf([
    ...trial.fields,
    ...trial.labels,
    ['eventType', JSON.stringify(event.from)],
    ['payload', payload],
    ['labels', labels],
    ['metadata', metadata],
  ]);
  const expression = String(JSON.parse(trial.fields[0]?.[1] ?? '""'));
  const seen = { type: event.from, data: payload, labels, metadata };
  return subscribed(expression, seen, await ask('POST /webhook-subscriptions/test', { bodyText: body }));
}

const aForm = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data)\s*(?:;|$)/i;

/** Why a payload cannot be sent to a test as a route reads it; null: it can. */
function unreadable(contentType: string, encoding: string): Outcome | null {
  if (encoding === 'null') return isGone;
  const skipped = (why: string): Outcome => ({ result: 'skipped', why: [why] });
  if (encoding === '"base64"') return skipped('Its payload is compressed, or is no text. The Lab tries JSON and text.');
  return aForm.test(contentType) && encoding !== '"json"' ? skipped('Its payload is a form. The Lab tries JSON and text.') : null;
}
