import { useCallback, useEffect, useRef, useState } from 'react';
import { type Answer, type ApiError, call, type Input, type OperationName, readBytes } from '../api/client.ts';
import { apiErrorOf, patiently } from '../app/patiently.ts';
import { useOrganization } from '../app/use-api.ts';
import { forEachAtOnce } from '../ui/at-once.ts';
import { bytes } from '../ui/format.ts';
import { memberTexts } from '../ui/json-text.ts';
import { jsonOf, type LabKind } from './lab-kinds.ts';

type Event = Answer<'GET /events'>['data'][number];

export interface Outcome {
  result: 'passes' | 'fails' | 'skipped' | 'error';
  /** Why it does not pass, or what is to be known of it. */
  why: string[];
  /** Of a transform: what it was given and what it made, as they are written. */
  made?: { input: string; output: string };
}

export interface LabRow {
  event: Event;
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
  /** Of a schema. */
  id: string | undefined;
  fields: readonly (readonly [field: string, json: string])[];
  sourceId: string | undefined;
  /** Of events, the newest first. */
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
  const query = { limit: trial.count, sourceId: trial.sourceId };
  const { data } = await patiently(() => call('GET /events', { query }, { organization, signal }), signal);
  change((before) => ({ ...before, rows: data.map((event) => ({ event, outcome: null })) }));
  const judge = async (event: Event, index: number): Promise<void> => {
    const outcome = await outcomeOf(trial, event, (name, input) =>
      patiently(async () => new TextDecoder().decode(await readBytes(name, input, { organization, signal })), signal),
    ).catch((thrown: unknown): Outcome => {
      signal.throwIfAborted();
      return { result: 'error', why: [apiErrorOf(thrown).message] };
    });
    change((before) => ({ ...before, rows: before.rows.with(index, { event, outcome }) }));
  };
  await forEachAtOnce(data, judge, { atOnce, signal });
  change((before) => ({ ...before, isRunning: false }));
}

type Ask = (name: OperationName, input: Input<OperationName>) => Promise<string>;

async function outcomeOf(trial: Trial, event: Event, ask: Ask): Promise<Outcome> {
  if (event.size > maxPayloadBytes)
    return { result: 'skipped', why: [`Its payload has ${bytes(event.size)}. The Lab tries payloads up to ${bytes(maxPayloadBytes)}.`] };
  const members = memberTexts(await ask('GET /events/{id}', { path: { id: event.id } })) ?? new Map<string, string>();
  const written = (name: string): string => members.get(name) ?? 'null';
  const reason = unreadable(event.contentType, written('payloadEncoding'));
  if (reason !== null) return { result: 'skipped', why: [reason] };
  const payload: [string, string] = ['payload', written('payload')];
  const context: [string, string][] = [
    ['headers', written('headers')],
    ['query', written('query')],
  ];
  switch (trial.kind) {
    case 'filter':
      return judged(trial, await ask('POST /filters/test', { bodyText: jsonOf([...trial.fields, payload, ...context]) }));
    case 'transform': {
      const source: [string, string] = ['source', JSON.stringify(event.sourceSlug)];
      const body = jsonOf([...trial.fields, source, payload, ...context]);
      return transformed(payload[1], await ask('POST /transforms/test', { bodyText: body }));
    }
    case 'schema':
      return validated(await ask('POST /schemas/{id}/validate', { path: { id: trial.id ?? '' }, bodyText: jsonOf([payload]) }));
  }
}

const aForm = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data)\s*(?:;|$)/i;

/** Why a payload cannot be sent to a test as a route reads it. */
function unreadable(contentType: string, encoding: string): string | null {
  if (encoding === 'null') return 'Its payload is gone: its retention has ended, or the source keeps none.';
  if (encoding === '"base64"') return 'Its payload is compressed, or is no text. The Lab tries JSON and text.';
  return aForm.test(contentType) && encoding !== '"json"' ? 'Its payload is a form. The Lab tries JSON and text.' : null;
}

function judged({ fields }: Trial, answer: string): Outcome {
  const { matches, conditions }: Answer<'POST /filters/test'> = JSON.parse(answer);
  if (matches) return { result: 'passes', why: [] };
  const wanted: { value?: unknown }[] = JSON.parse(fields.find(([name]) => name === 'conditions')?.[1] ?? '[]');
  const why = conditions.flatMap(({ field, operator, matches: isMet }, index) => {
    const value = wanted[index]?.value;
    return isMet ? [] : [`${field} ${operator}${value === undefined ? '' : ` ${JSON.stringify(value)}`} is not met`];
  });
  return { result: 'fails', why };
}

function transformed(input: string, answer: string): Outcome {
  const members = memberTexts(answer) ?? new Map<string, string>();
  const textOf = (name: string): string | null => (members.has(name) ? String(JSON.parse(members.get(name) ?? '')) : null);
  if (members.get('success') !== 'true') return { result: 'error', why: [textOf('error') ?? 'The transform failed.'] };
  const output = members.get('output') ?? 'null';
  if (members.get('contentType') === 'null')
    return { result: 'fails', why: ['The transform has no output: the delivery would be filtered.'] };
  const warning = textOf('warning');
  const isText = textOf('contentType') !== 'application/json';
  const shown = isText ? String(JSON.parse(output)) : output;
  return { result: 'passes', why: warning === null ? [] : [warning], made: { input, output: shown } };
}

function validated(answer: string): Outcome {
  const { valid, errors }: Answer<'POST /schemas/{id}/validate'> = JSON.parse(answer);
  return { result: valid ? 'passes' : 'fails', why: errors.map(({ path, message }) => (path === '' ? message : `${path} ${message}`)) };
}
