import { Gauge, type Registry } from 'prom-client';
import type { EventRecorder, ObjectEvent } from '../controllers/event-recorder.ts';
import type { Readiness } from './readiness.ts';

const check = 'bootstrap';
const longestMessage = 1000;

/** The gauge of `BootstrapReport`. */
export function bootstrapGauge(registry: Registry): Gauge {
  return new Gauge({
    name: 'posthorn_bootstrap_complaints',
    help: 'Objects that the installation requires, such as the organization `default` and the pool `default`, and that could not be applied. The controller is not ready while there are any.',
    registers: [registry],
  });
}

export interface BootstrapReportOptions {
  gauge: Pick<Gauge, 'set'>;
  readiness: Pick<Readiness, 'set'>;
  recorder: EventRecorder;
  /** Object of Events: the ConfigMap of the manifests. Null: there is none. */
  subject(): Promise<ObjectEvent['object'] | null>;
}

/** Reports failures of the bootstrap: by a metric, by Events and by readiness. */
export class BootstrapReport {
  readonly #options: BootstrapReportOptions;
  /** By what every controller sees in the manifests; null: it has not checked yet. */
  #refused: readonly string[] | null = null;
  /** By the rounds of a leader; null: they have not shown it yet. */
  #failed: readonly string[] | null = [];
  readonly #told = new Set<string>();

  constructor(options: BootstrapReportOptions) {
    this.#options = options;
    this.#show();
  }

  /** Errors of the manifests by their kinds. */
  refused(complaints: readonly string[]): void {
    this.#refused = complaints;
    this.#show();
  }

  /** Failures of a leader; null: it is still applying. */
  failed(complaints: readonly string[] | null): void {
    this.#failed = complaints;
    this.#show();
  }

  #show(): void {
    const { gauge, readiness } = this.#options;
    // A leader finds what the kinds refuse, too, in the words of the API server.
    const complaints = this.#refused !== null && this.#refused.length > 0 ? this.#refused : (this.#failed ?? []);
    gauge.set(complaints.length);
    if (complaints.length > 0) readiness.set(check, { ok: false, detail: complaints.join('; ') });
    else if (this.#refused === null) readiness.set(check, { ok: false, detail: 'starting' });
    else if (this.#failed === null) readiness.set(check, { ok: false, detail: 'the bootstrap manifests are being applied' });
    else readiness.set(check, { ok: true });
    const news = complaints.filter((complaint) => !this.#told.has(complaint));
    for (const complaint of complaints) this.#told.add(complaint);
    if (complaints.length === 0 && this.#failed !== null) this.#told.clear();
    if (news.length > 0) void this.#record(news);
  }

  async #record(complaints: readonly string[]): Promise<void> {
    const { recorder, subject } = this.#options;
    // An Event is a courtesy: the log has the same.
    const object = await subject().catch(() => null);
    if (object === null) return;
    for (const complaint of complaints)
      recorder.record({ object, type: 'Warning', reason: 'BootstrapFailed', message: complaint.slice(0, longestMessage) });
  }
}
