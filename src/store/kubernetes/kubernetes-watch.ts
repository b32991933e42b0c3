import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { type Kind, kindPath } from '../../resources/kinds.ts';
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

const minTimeoutSeconds = 300;
const eventSchema = z.object({ type: z.string(), object: z.record(z.string(), z.unknown()) });
const errorObject = z.object({ code: z.number().default(500) });
const bookmarkObject = z.object({ metadata: z.object({ resourceVersion: z.string().min(1) }) });

/** One watch of the API server, from one version until its end; see `ResourceStore.watch`. */
export async function* watchKind<K extends Kind>(
  api: KubernetesApi,
  clock: Clock,
  limits: WatchLimits,
  kind: K,
  from: Version,
  signal: AbortSignal,
  namespace: string | undefined,
): AsyncGenerator<WatchEvent<K>> {
  const silence = new AbortController();
  let cancel = clock.after(limits.silenceMs, () => silence.abort());
  const heard = (): void => {
    cancel();
    cancel = clock.after(limits.silenceMs, () => silence.abort());
  };
  const stop = (): void => cancel();
  signal.addEventListener('abort', stop, { once: true });
  try {
    const body = await api.stream(collectionPath(kindPath(kind), namespace), {
      signal: AbortSignal.any([signal, silence.signal]),
      ...(kind === 'Secret' ? { accept: metadataAccept('PartialObjectMetadata') } : {}),
      query: {
        watch: 1,
        resourceVersion: from,
        allowWatchBookmarks: true,
        timeoutSeconds: Math.round(minTimeoutSeconds * (1 + Math.random())),
      },
    });
    yield { type: 'bookmark', version: from };
    for await (const line of lines(body, limits.maxLineBytes)) {
      heard();
      yield toEvent(kind, line);
    }
  } catch (error) {
    if (signal.aborted) return;
    if (silence.signal.aborted) throw new PosthornError('UNAVAILABLE', `the watch of ${kind} was silent for ${limits.silenceMs} ms`);
    if (error instanceof PosthornError) throw error;
    throw new PosthornError('UNAVAILABLE', `the watch of ${kind} broke`, { cause: error });
  } finally {
    cancel();
    signal.removeEventListener('abort', stop);
    silence.abort();
  }
}

function toEvent<K extends Kind>(kind: K, line: string): WatchEvent<K> {
  const { type, object } = eventSchema.parse(JSON.parse(line));
  switch (type) {
    case 'ADDED':
      return { type: 'added', object: toObject(kind, object) };
    case 'MODIFIED':
      return { type: 'modified', object: toObject(kind, object) };
    case 'DELETED':
      return { type: 'deleted', object: toObject(kind, object) };
    case 'BOOKMARK':
      return { type: 'bookmark', version: bookmarkObject.parse(object).metadata.resourceVersion as Version };
    case 'ERROR':
      throw statusError(errorObject.parse(object).code, object);
    default:
      throw new PosthornError('INTERNAL', `the API server sent an event of type ${type}`);
  }
}
