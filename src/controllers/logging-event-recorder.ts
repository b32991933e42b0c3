import type { Logger } from '../core/logger.ts';
import type { EventRecorder, ObjectEvent } from './event-recorder.ts';

/** Where there is no Kubernetes, events are log lines. */
export class LoggingEventRecorder implements EventRecorder {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  record({ object: { kind, metadata }, type, reason, message }: ObjectEvent): void {
    const fields = { kind, namespace: metadata.namespace, name: metadata.name, reason };
    if (type === 'Warning') this.#logger.warn(fields, message);
    else this.#logger.info(fields, message);
  }
}
