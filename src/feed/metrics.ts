import { Counter, Gauge, type Registry } from 'prom-client';

/** Metrics of the live stream, made once per registry. */
export function streamMetrics(registry: Registry) {
  const registers = [registry];
  return {
    open: new Gauge({ name: 'posthorn_stream_clients', help: 'Live streams that are open.', registers }),
    sent: new Counter({ name: 'posthorn_stream_rows_sent_total', help: 'Rows that were sent to clients of live streams.', registers }),
    skipped: new Counter({
      name: 'posthorn_stream_rows_skipped_total',
      help: 'Rows that clients of live streams did not get because there were too many in a second.',
      registers,
    }),
    dropped: new Counter({
      name: 'posthorn_stream_clients_dropped_total',
      help: 'Live streams that were closed because their clients read too slowly.',
      registers,
    }),
  };
}

export type StreamMetrics = ReturnType<typeof streamMetrics>;
