import { basePath } from './base.ts';
import { ApiError, refusal } from './client.ts';
import { eventSplitter, type ServerEvent } from './server-events.ts';
import { type Holder, SharedStream } from './shared-stream.ts';

/** An event of the live stream. Fields that a row lacks are null. */
export interface StreamRow {
  /** Its position in the stream. */
  position: string;
  topic: string;
  type: string;
  at: string;
  status: string;
  id: string | null;
  eventId: string | null;
  sourceName: string | null;
  routeName: string | null;
  destinationId: string | null;
  destinationName: string | null;
  endpointId: string | null;
  eventType: string | null;
  attempt: number | null;
  responseStatus: number | null;
  errorType: string | null;
  reason: string | null;
}

export interface StreamHandlers {
  onRow: (row: StreamRow) => void;
  /** Rows that the server left out, since more came than it sends. */
  onSkipped: (count: number) => void;
  /** Rows may be missing from here on. */
  onReset: () => void;
  onState: (state: StreamState) => void;
}

/** Another window of this browser has the stream. `shared`: its rows come here too; `elsewhere`: it follows something else. */
export type StreamState = { is: 'connecting' | 'connected' | 'shared' | 'elsewhere' | 'hidden' } | { is: 'lost'; why: string };

/** The lock is that of the program, not of the browser: one stream at a time, so that many tabs leave connections for requests. */
const lockName = 'posthorn-stream';
const stateOf = { connected: 'shared', unconnected: 'connecting', other: 'elsewhere' } as const satisfies Record<Holder, StreamState['is']>;
const firstRetryMs = 1000;
const longestRetryMs = 15_000;
/** After an answer that the same request will have again, unless rights or configuration change. */
const refusedRetryMs = 60_000;
const maxSeen = 2000;
/** The server sends a comment every 15 seconds. */
const silenceMs = 40_000;

/**
 * Follows the live stream until `signal` aborts. One window of the browser at a time has it, the one that was focused last, and the others that
 * follow the same get their rows from it. After a disconnect it resumes.
 */
export async function followStream(
  organization: string,
  query: Record<string, string | undefined>,
  handlers: StreamHandlers,
  signal: AbortSignal,
): Promise<void> {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value);
  const url = `${basePath}/api/organizations/${encodeURIComponent(organization)}/stream?${parameters}`;
  const place: Place = { lastEventId: null, seen: new Set() };
  const shared = new SharedStream(url, signal);
  const work = (lost: AbortSignal): Promise<void> =>
    shared.having(() => connectAgain(url, { place, handlers, shared }, AbortSignal.any([signal, lost, whenHidden(signal)])));
  while (!signal.aborted) {
    if (document.visibilityState === 'hidden') {
      handlers.onState({ is: 'hidden' });
      await happened(document, 'visibilitychange', signal);
      continue;
    }
    if ((await taking(work)) === 'stolen' && !signal.aborted) await followOther({ place, handlers, shared }, work, signal);
  }
}

/** Follows the window that has the stream until this one is focused. Once that one releases it, this one has the stream, until another takes it. */
async function followOther({ place, handlers, shared }: Following, work: (lost: AbortSignal) => Promise<void>, signal: AbortSignal) {
  for (;;) {
    handlers.onState({ is: 'elsewhere' });
    const unfollow = shared.follow({
      onEvent: (event) => hand(event, place, handlers),
      onHolder: (holder) => handlers.onState({ is: stateOf[holder] }),
    });
    let hadIt = false;
    const outcome = await locked({ signal: AbortSignal.any([signal, whenLookedAt(signal)]) }, (lost) => {
      hadIt = true;
      unfollow();
      return work(lost);
    });
    unfollow();
    if (!hadIt || outcome === 'done') return;
  }
}

interface Place {
  lastEventId: string | null;
  /** Rows that were forwarded: another window may have been behind, and is sent them again. */
  seen: Set<string>;
}

/** Takes the stream from the window that has it, and runs `work` while this one has it; `lost` aborts when another takes it. */
async function taking(work: (lost: AbortSignal) => Promise<void>): Promise<'done' | 'stolen'> {
  // Browsers offer locks to secure origins and to loopback.
  if (navigator.locks === undefined) {
    await work(new AbortController().signal);
    return 'done';
  }
  return await locked({ steal: true }, work);
}

async function locked(options: LockOptions, work: (lost: AbortSignal) => Promise<void>): Promise<'done' | 'stolen'> {
  const lost = new AbortController();
  try {
    await navigator.locks.request(lockName, options, () => work(lost.signal));
    return 'done';
  } catch (thrown) {
    lost.abort();
    if (thrown instanceof DOMException && thrown.name === 'AbortError') return 'stolen';
    throw thrown;
  }
}

interface Following {
  place: Place;
  handlers: StreamHandlers;
  shared: SharedStream;
}

async function connectAgain(url: string, { place, handlers, shared }: Following, signal: AbortSignal): Promise<void> {
  let waitMs = firstRetryMs;
  while (!signal.aborted) {
    handlers.onState({ is: 'connecting' });
    const failure = await readStream(url, place, signal, (event) => {
      waitMs = firstRetryMs;
      if (event.event === 'connected') shared.tellConnected(true);
      else shared.tell(event);
      hand(event, place, handlers);
    }).catch((thrown: unknown) => thrown);
    if (signal.aborted) return;
    shared.tellConnected(false);
    if (failure !== null) handlers.onState({ is: 'lost', why: reasonOf(failure) });
    // The same request would be refused again.
    const isFinal = failure instanceof ApiError && !failure.isPassing;
    await pause(isFinal ? refusedRetryMs : waitMs, signal);
    waitMs = Math.min(waitMs * 2, longestRetryMs);
  }
}

function reasonOf(failure: unknown): string {
  // Browsers report `Failed to fetch` or the like.
  if (failure instanceof TypeError) return 'The API does not answer.';
  return failure instanceof Error ? failure.message : String(failure);
}

/** Resolves to null when the server ended the stream in good order. Throws ApiError when it refuses it, another Error when it is not there. */
async function readStream(url: string, place: Place, signal: AbortSignal, onEvent: (event: ServerEvent) => void): Promise<null> {
  const silence = new AbortController();
  const watch = (): ReturnType<typeof setTimeout> => setTimeout(() => silence.abort(new Error('The stream has fallen silent.')), silenceMs);
  let timer = watch();
  try {
    const response = await fetch(url, {
      headers: { accept: 'text/event-stream', ...(place.lastEventId === null ? {} : { 'last-event-id': place.lastEventId }) },
      credentials: 'same-origin',
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (!response.ok || response.body === null) throw await refusal(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const split = eventSplitter(onEvent);
    onEvent({ event: 'connected', id: null, data: '' });
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return null;
      clearTimeout(timer);
      timer = watch();
      split(value);
    }
  } finally {
    clearTimeout(timer);
  }
}

function hand({ event, id, data }: ServerEvent, place: Place, handlers: StreamHandlers): void {
  if (event === 'connected') handlers.onState({ is: 'connected' });
  if (id !== null) place.lastEventId = id;
  if (data === '') return;
  const fields: unknown = JSON.parse(data);
  if (typeof fields !== 'object' || fields === null) return;
  if (event === 'skipped') handlers.onSkipped('count' in fields && typeof fields.count === 'number' ? fields.count : 0);
  else if (event === 'reset') handlers.onReset();
  else if ('topic' in fields) {
    const row = { ...(fields as Omit<StreamRow, 'position'>), position: id ?? '' };
    if (isNew(row, place.seen)) handlers.onRow(row);
  }
}

/** Records the row. Its position is not the same in another stream. */
function isNew({ position: _place, ...row }: StreamRow, seen: Set<string>): boolean {
  const key = JSON.stringify(row);
  if (seen.has(key)) return false;
  seen.add(key);
  // A set keeps the order in which it was filled.
  const [oldest] = seen;
  if (seen.size > maxSeen && oldest !== undefined) seen.delete(oldest);
  return true;
}

function whenLookedAt(signal: AbortSignal): AbortSignal {
  const looked = new AbortController();
  const end = (): void => looked.abort();
  const options = { signal: AbortSignal.any([signal, looked.signal]) };
  addEventListener('focus', end, options);
  document.addEventListener('visibilitychange', end, options);
  return looked.signal;
}

function whenHidden(signal: AbortSignal): AbortSignal {
  const hidden = new AbortController();
  const look = (): void => {
    if (document.visibilityState === 'hidden') hidden.abort();
  };
  document.addEventListener('visibilitychange', look, { signal: AbortSignal.any([signal, hidden.signal]) });
  return hidden.signal;
}

async function happened(target: EventTarget, name: string, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    target.addEventListener(name, () => resolve(), { once: true, signal });
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
