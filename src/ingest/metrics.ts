import { Counter, Histogram, type Registry } from 'prom-client';
import type { ErrorCode } from '../core/errors.ts';

/** `accepted`: stored, answered 200; `duplicate`: stored before, answered 200; `handshake`: a provider's question, answered; `aborted`: the sender hung up; else the code of the answer. */
export type IngestOutcome = 'accepted' | 'duplicate' | 'handshake' | 'aborted' | ErrorCode;

export interface IngestMetrics {
  requests: Counter<'outcome'>;
  durationSeconds: Histogram;
  payloadBytes: Counter;
  untriedFilters: Counter;
}

export function ingestMetrics(registry: Registry): IngestMetrics {
  const registers = [registry];
  const metrics: IngestMetrics = {
    requests: new Counter({
      name: 'posthorn_ingest_requests_total',
      help: 'Requests to /ingest by outcome: accepted, duplicate, handshake, aborted, or the error code of the answer.',
      labelNames: ['outcome'],
      registers,
    }),
    durationSeconds: new Histogram({
      name: 'posthorn_ingest_duration_seconds',
      help: 'Time from the head of an ingest request to its 200, the sender’s time to send the body included.',
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    untriedFilters: new Counter({
      name: 'posthorn_ingest_untried_filters_total',
      help: 'Filters that kept an event back because a regular expression was not tried: with the text of the event, or with the filters of all routes together, it would take too long.',
      registers,
    }),
    payloadBytes: new Counter({ name: 'posthorn_ingest_payload_bytes_total', help: 'Bytes of the accepted payloads.', registers }),
  };
  // What alerts watch begins at 0: the first one would be no increase.
  for (const outcome of ['INTERNAL', 'UNAVAILABLE'] satisfies IngestOutcome[]) metrics.requests.inc({ outcome }, 0);
  return metrics;
}
