import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { parseJson } from '../../core/read-json.ts';
import { type Kind, kindPath, type ObjectOf } from '../../resources/kinds.ts';
import type { Version, WatchEvent } from '../store.ts';
import type { KubernetesApi } from './kubernetes-api.ts';
import { statusError } from './status-error.ts';
import { lines } from './watch-lines.ts';
import { collectionPath, metadataAccept, toObject } from './wire.ts';

export interface WatchLimits {
  /** A stream that has been silent for so long is taken for dead; the API server sends a bookmark about every minute. */
  silenceMs: number;
  maxLineBytes: number;
}

export const defaultWatchLimits: WatchLimits = { silenceMs: 90_000, maxLineBytes: 8 * 1024 * 1024 };
const minTimeoutSeconds = 300;
const eventSchema = z.object({ type: z.string(), object: z.record(z.string(), z.unknown()) });
const errorObject = z.object({ code: z.number().default(500) });
const bookmarkObject = z.object({ metadata: z.object({ resourceVersion: z.string().min(1) }) });

/** Target of a watch: its path, and how an object of it is read. */
export interface Watched<T> {
  /** Name in errors. */
  what: string;
  path: string;
  query?: Record<string, string>;
  /** Default: whole objects. */
  accept?: string;
  read(object: Record<string, unknown>): T;
}

export type WatchedEvent<T> = { type: 'added' | 'modified' | 'deleted'; object: T } | { type: 'bookmark'; version: Version };

/** One watch of a kind of Posthorn's own, from one version until its end; see `ResourceStore.watch`. */
export function watchKind<K extends Kind>(
  api: KubernetesApi,
  clock: Clock,
  limits: WatchLimits,
  kind: K,
  from: Version,
  signal: AbortSignal,
  namespace: string | undefined,
): AsyncGenerator<WatchEvent<K>> {
  const watched: Watched<ObjectOf<K>> = {
    what: kind,
    path: collectionPath(kindPath(kind), namespace),
    ...(kind === 'Secret' ? { accept: metadataAccept('PartialObjectMetadata') } : {}),
    read: (object) => toObject(kind, object),
  };
  return watchPath(api, clock, limits, watched, from, signal);
}

/** The same for anything that the API server serves. */
export async function* watchPath<T>(
  api: KubernetesApi,
  clock: Clock,
  limits: WatchLimits,
  { what, path, query, accept, read }: Watched<T>,
  from: Version,
  signal: AbortSignal,
): AsyncGenerator<WatchedEvent<T>> {
  const silence = new AbortController();
  let cancel = clock.after(limits.silenceMs, () => silence.abort());
  const heard = (): void => {
    cancel();
    cancel = clock.after(limits.silenceMs, () => silence.abort());
  };
  const stop = (): void => cancel();
  signal.addEventListener('abort', stop, { once: true });
  try {
    const body = await api.stream(path, {
      signal: AbortSignal.any([signal, silence.signal]),
      ...(accept !== undefined && { accept }),
      query: {
        ...query,
        watch: 1,
        resourceVersion: from,
        allowWatchBookmarks: true,
        timeoutSeconds: Math.round(minTimeoutSeconds * (1 + Math.random())),
      },
    });
    yield { type: 'bookmark', version: from };
    for await (const line of lines(body, limits.maxLineBytes)) {
      heard();
      yield toEvent(line, read);
    }
  } catch (error) {
    if (signal.aborted) return;
    if (silence.signal.aborted) throw new PosthornError('UNAVAILABLE', `the watch of ${what} was silent for ${limits.silenceMs} ms`);
    if (error instanceof PosthornError) throw error;
    throw new PosthornError('UNAVAILABLE', `the watch of ${what} broke`, { cause: error });
  } finally {
    cancel();
    signal.removeEventListener('abort', stop);
    silence.abort();
  }
}

function toEvent<T>(line: string, read: Watched<T>['read']): WatchedEvent<T> {
  const { type, object } = eventSchema.parse(parseJson(line));
  switch (type) {
    case 'ADDED':
      return { type: 'added', object: read(object) };
    case 'MODIFIED':
      return { type: 'modified', object: read(object) };
    case 'DELETED':
      return { type: 'deleted', object: read(object) };
    case 'BOOKMARK':
      return { type: 'bookmark', version: bookmarkObject.parse(object).metadata.resourceVersion as Version };
    case 'ERROR':
      throw statusError(errorObject.parse(object).code, object);
    default:
      throw new PosthornError('INTERNAL', `the API server sent an event of type ${type}`);
  }
}
