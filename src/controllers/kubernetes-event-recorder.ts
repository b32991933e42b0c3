import { createHash } from 'node:crypto';
import type { Clock } from '../core/clock.ts';
import { isPosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import type { EventRecorder, ObjectEvent } from './event-recorder.ts';

const queueMax = 1000;
/** Events of cluster-scoped objects live here, as Kubernetes' own do. */
const clusterNamespace = 'default';
const component = 'posthorn-controller';

/**
 * Writes core/v1 Events, one request at a time behind a bounded queue; what does not fit is dropped and counted in the log.
 * The same transition of the same object is one Event whose count grows.
 */
export class KubernetesEventRecorder implements EventRecorder {
  readonly #api: KubernetesApi;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #queue: ObjectEvent[] = [];
  #isWriting = false;
  #dropped = 0;

  constructor(options: { api: KubernetesApi; clock: Clock; logger: Logger }) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  record(event: ObjectEvent): void {
    if (this.#queue.length >= queueMax) {
      this.#dropped++;
      return;
    }
    this.#queue.push(event);
    if (!this.#isWriting) void this.#drain();
  }

  async #drain(): Promise<void> {
    this.#isWriting = true;
    for (let event = this.#queue.shift(); event !== undefined; event = this.#queue.shift()) {
      try {
        await this.#write(event);
      } catch (error) {
        this.#logger.debug({ err: error, reason: event.reason }, 'a Kubernetes Event could not be written');
      }
    }
    this.#isWriting = false;
    if (this.#dropped > 0) this.#logger.warn({ dropped: this.#dropped }, 'Kubernetes Events were dropped because the queue was full');
    this.#dropped = 0;
  }

  async #write({ object, type, reason, message }: ObjectEvent): Promise<void> {
    const { name, uid, resourceVersion } = object.metadata;
    const namespace = object.metadata.namespace ?? clusterNamespace;
    const now = `${new Date(this.#clock.now()).toISOString().slice(0, 19)}Z`;
    const eventName = `${name}.${createHash('sha256')
      .update(JSON.stringify([uid, type, reason, message]))
      .digest('hex')
      .slice(0, 16)}`;
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
    const body = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: eventName, namespace },
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        name,
        namespace: object.metadata.namespace,
        uid,
        resourceVersion,
      },
      type,
      reason,
      message,
      source: { component },
      reportingComponent: component,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
    };
    try {
      await this.#api.request('POST', path, { body });
    } catch (error) {
      if (!isPosthornError(error, 'ALREADY_EXISTS')) throw error;
      await this.#countOnceMore(`${path}/${encodeURIComponent(eventName)}`, now);
    }
  }

  async #countOnceMore(path: string, now: string): Promise<void> {
    const stored = await this.#api.request('GET', path);
    const count = typeof stored === 'object' && stored !== null && 'count' in stored && typeof stored.count === 'number' ? stored.count : 1;
    await this.#api.request('PATCH', path, { contentType: 'application/merge-patch+json', body: { count: count + 1, lastTimestamp: now } });
  }
}
