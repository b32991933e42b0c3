import type { Clock } from '../core/clock.ts';
import { isPosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { ClusterKind, ClusterMetadata, ClusterQuery } from '../store/cluster-objects.ts';
import type { KubernetesObjects } from '../store/kubernetes/kubernetes-objects.ts';
import { ReflectorBackoff } from '../store/reflector-backoff.ts';
import type { Version } from '../store/store.ts';

export interface FollowOptions {
  objects: Pick<KubernetesObjects, 'list' | 'watch'>;
  kind: ClusterKind;
  query: ClusterQuery;
  /** Called for every object that is there, and again whenever one changes or goes. */
  onChange(metadata: ClusterMetadata): void;
  clock: Clock;
  logger: Logger;
}

/** Pause between two watches, for a server that closes each at once. */
const reopenMs = 1000;
/** How soon to look again whether a kind is served that was not. */
const unservedMs = 60_000;

/** Reports changes until the signal aborts; caches nothing. Never rejects. */
export async function followObjects({ objects, kind, query, onChange, clock, logger }: FollowOptions, signal: AbortSignal): Promise<void> {
  const backoff = new ReflectorBackoff(clock);
  let version: Version | null = null;
  while (!signal.aborted) {
    try {
      if (version === null) {
        const page = await objects.list(kind, query);
        for (const metadata of page.items) onChange(metadata);
        version = page.version;
      }
      for await (const event of objects.watch(kind, version, signal, query)) {
        if (event.type === 'changed') onChange(event.metadata);
        version = event.type === 'changed' ? (event.metadata.resourceVersion as Version) : event.version;
      }
      await clock.sleep(reopenMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      version = null;
      if (isPosthornError(error, 'EXPIRED')) continue;
      const isUnserved = isPosthornError(error, 'RESOURCE_NOT_FOUND');
      const delayMs = isUnserved ? unservedMs : backoff.next();
      if (!isUnserved) logger.warn({ err: error, kind: kind.kind, delayMs }, 'the watch of these objects failed; retrying');
      await clock.sleep(delayMs, signal);
    }
  }
}
