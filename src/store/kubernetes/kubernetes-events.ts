import { z } from 'zod';
import { withPendingRights } from '../../core/rights-pending.ts';
import type { KubernetesApi } from './kubernetes-api.ts';

/** The API server lists Events in the order of their names, so that the newest are known only once all have been read. */
const pageLimit = 500;
const maxPages = 10;

const time = z.string().nullish();
const eventSchema = z.looseObject({
  type: z.string().default('Normal'),
  reason: z.string().default(''),
  message: z.string().default(''),
  count: z.int().nullish(),
  firstTimestamp: time,
  lastTimestamp: time,
  eventTime: time,
  metadata: z.looseObject({ creationTimestamp: time }),
  reportingComponent: z.string().default(''),
  source: z.looseObject({ component: z.string().default('') }).default({ component: '' }),
});
const listSchema = z.object({
  metadata: z.object({ continue: z.string().optional() }),
  items: z.array(eventSchema).nullable(),
});

const maxObjectEvents = 100;

/** A Kubernetes Event of an object. */
export interface RecordedEvent {
  type: string;
  /** In one word. */
  reason: string;
  message: string;
  /** How often it was recorded. */
  count: number;
  firstAt: string | null;
  lastAt: string | null;
  /** The component that recorded it. */
  source: string;
}

/**
 * Events of objects. The cluster keeps them for an hour, unless it is set up otherwise. Reads core/v1 Events, which those of
 * `events.k8s.io` are too.
 */
export class KubernetesEvents {
  readonly #api: Pick<KubernetesApi, 'request'>;

  constructor({ api }: { api: Pick<KubernetesApi, 'request'> }) {
    this.#api = api;
  }

  /** Events of the object with this uid, the newest first; at most `maxObjectEvents`. RightsPending while the right is not granted; UNAVAILABLE. */
  async of({ namespace, uid }: { namespace: string; uid: string }): Promise<RecordedEvent[]> {
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
    let newest: RecordedEvent[] = [];
    let continueToken: string | undefined;
    for (let pages = 0; pages < maxPages; pages++) {
      const query = { fieldSelector: `involvedObject.uid=${uid}`, limit: pageLimit, continue: continueToken };
      const answer = await this.#api.request('GET', path, { query }).catch((error: unknown) => {
        throw withPendingRights(error, namespace, 'Events');
      });
      const { items, metadata } = listSchema.parse(answer);
      newest = [...newest, ...(items ?? []).map(toEvent)].sort(byTime).slice(0, maxObjectEvents);
      if (metadata.continue === undefined || metadata.continue === '') break;
      continueToken = metadata.continue;
    }
    return newest;
  }
}

function toEvent({
  type,
  reason,
  message,
  count,
  firstTimestamp,
  lastTimestamp,
  eventTime,
  metadata,
  reportingComponent,
  source,
}: z.output<typeof eventSchema>): RecordedEvent {
  const at = eventTime ?? metadata.creationTimestamp ?? null;
  const component = reportingComponent === '' ? source.component : reportingComponent;
  return { type, reason, message, count: count ?? 1, firstAt: firstTimestamp ?? at, lastAt: lastTimestamp ?? at, source: component };
}

/** The newest first. */
function byTime(one: RecordedEvent, other: RecordedEvent): number {
  return Date.parse(other.lastAt ?? '') - Date.parse(one.lastAt ?? '');
}
