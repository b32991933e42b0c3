import { Counter, Histogram, type Registry } from 'prom-client';
import type { ErrorCode } from '../core/errors.ts';
import { signatureFailureReasons } from '../core/providers/signature-failure.ts';

/** `accepted`: stored, answered 200; `duplicate`: stored before, answered 200; `handshake`: a provider's question, answered; `aborted`: the sender hung up; else the code of the answer. */
export type IngestOutcome = 'accepted' | 'duplicate' | 'handshake' | 'aborted' | ErrorCode;

export interface IngestMetrics {
  requests: Counter<'outcome'>;
  durationSeconds: Histogram;
  payloadBytes: Counter;
  untriedFilters: Counter;
  signatureFailures: Counter<'reason'>;
}

export function ingestMetrics(registry: Registry): IngestMetrics {
  const registers = [registry];
  const metrics: IngestMetrics = {
    requests: new Counter({
      name: 'posthorn_ingest_requests_total',
      help: 'Requests to /ingest by outcome: accepted, duplicate, handshake, aborted (the sender hung up), or the error code of the response.',
      labelNames: ['outcome'],
      registers,
    }),
    durationSeconds: new Histogram({
      name: 'posthorn_ingest_duration_seconds',
      help: 'Time from the headers of an ingest request to its 200 response, including the time in which the sender transmits the body.',
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    untriedFilters: new Counter({
      name: 'posthorn_ingest_untried_filters_total',
      help: 'Filters that did not match because a regular expression was skipped: its estimated cost for the event exceeded the limit of the filter or of all routes of the source.',
      registers,
    }),
    signatureFailures: new Counter({
      name: 'posthorn_ingest_signature_failures_total',
      help: 'Requests whose signature no secret of the source has verified, refused or accepted as unverified, by reason: see Failed signatures in docs/sources.md.',
      labelNames: ['reason'],
      registers,
    }),
    payloadBytes: new Counter({ name: 'posthorn_ingest_payload_bytes_total', help: 'Bytes of accepted payloads.', registers }),
  };
  // Metrics in alerts begin at 0: the first one would be no increase.
  for (const outcome of ['INTERNAL', 'UNAVAILABLE'] satisfies IngestOutcome[]) metrics.requests.inc({ outcome }, 0);
  for (const reason of signatureFailureReasons) metrics.signatureFailures.inc({ reason }, 0);
  return metrics;
}
