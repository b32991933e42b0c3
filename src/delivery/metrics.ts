import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { organizationBehind } from '../core/alert.ts';
import { type PayloadForm, payloadForms } from '../core/payload-link.ts';
import type { ChannelRecord } from '../core/records.ts';
import { type SentAs, type SignedTarget, sentForm } from '../core/sent-as.ts';
import { sharedCall } from '../core/shared-call.ts';
import { type SignatureScheme, signatureSchemes } from '../core/signature-scheme.ts';
import { organizationOfWebhooks } from '../core/webhook.ts';
import type { ByteUsage } from '../data/queue/byte-shares.ts';
import { type Settlement, targetKinds } from '../data/queue/delivery-queue.ts';
import { sumQueueStats } from '../data/queue/queue-stats.ts';
import type { RedisDeliveryQueue } from '../data/queue/redis-delivery-queue.ts';

export interface DeliveryMetrics {
  /** Outcomes of attempts: delivered, retry, dead, back. */
  outcomes: Counter<'outcome'>;
  attemptSeconds: Histogram<'result'>;
  /** Attempts after which the receiver allows no further one at their message. */
  rejections: Counter<'target'>;
  /** Attempts over HTTP by the form of their payload and by what signs them; scheme none where nothing does. */
  requests: RequestCounts;
  lostSettlements: Counter;
  requeued: Counter;
  storeResets: Counter;
  memoryShare: Gauge;
  prunedEarly: Counter;
  /** Messages that archives have; batches by outcome: stored or failed; messages that were removed before they were written. */
  archived: Counter;
  archiveUploads: Counter<'outcome'>;
  archiveLost: Counter;
  /** Webhook endpoints; cause gone (it answered 410) or failing (every attempt has failed for as long as it may). */
  endpointsDisabled: Counter<'cause'>;
  /** Attempts to send alerts. */
  alerts: Counter<'channel' | 'outcome'>;
  /** Tests and triggers; outcome ok, error or late: the caller no longer waited for the result. */
  tasks: Counter<'kind' | 'outcome'>;
  /** Runs of cron jobs; outcome success, failed, late or dropped: the job is gone or disabled. */
  cronRuns: Counter<'outcome'>;
}

const channelTypes = ['slack', 'teams', 'discord', 'pagerduty', 'email', 'webhook'] satisfies ChannelRecord['type'][];

const earlyEnds = [
  ['cancelled', 'because they were cancelled'],
  ['expired', 'because they were not delivered before they expired'],
] as const;

/** Targets that reject messages. */
const rejectingTargets = [...targetKinds, 'channel'] as const;

/** Counts an attempt whose receiver allows no further one at its message. */
export function countRejection({ rejections }: Pick<DeliveryMetrics, 'rejections'>, { job, outcome }: Settlement): void {
  if (outcome.type !== 'dead' || outcome.isRejected !== true) return;
  const { org } = job.target;
  const target: (typeof rejectingTargets)[number] =
    organizationOfWebhooks(org) !== null ? 'endpoint' : organizationBehind(org) !== null ? 'channel' : 'destination';
  rejections.inc({ target });
}

/** Counts an attempt by the form of its request. */
export function countRequest({ requests }: Pick<DeliveryMetrics, 'requests'>, target: SignedTarget, own: SentAs | undefined): void {
  const { payloadForm, signatureScheme } = sentForm(target, own);
  requests[target][payloadForm][signatureScheme ?? 'none']++;
}

/** Attempts that are counted since the counter was read last: a number costs less than an increment by labels. */
type RequestCounts = Record<SignedTarget, Record<PayloadForm, Record<SignatureScheme | 'none', number>>>;

function requestCounts(registry: Registry): RequestCounts {
  const ofScheme = { 'hmac-sha256': 0, ed25519: 0, both: 0, none: 0 };
  const ofTarget = (): RequestCounts[SignedTarget] => ({ full: { ...ofScheme }, thin: { ...ofScheme } });
  const counts: RequestCounts = { destination: ofTarget(), endpoint: ofTarget() };
  new Counter({
    name: 'posthorn_delivery_requests_total',
    help: 'Delivery attempts over HTTP by target (destination, endpoint), by payload form (full, thin: a link to the payload) and by what signs them: hmac-sha256 (v1), ed25519 (v1a), both, none.',
    labelNames: ['target', 'form', 'scheme'],
    registers: [registry],
    collect() {
      for (const target of targetKinds)
        for (const form of payloadForms)
          for (const scheme of [...signatureSchemes, 'none'] as const) {
            // Metrics in alerts begin at 0: the first one would be no increase. Endpoints always sign.
            if (target === 'destination' || scheme !== 'none') this.inc({ target, form, scheme }, counts[target][form][scheme]);
            counts[target][form][scheme] = 0;
          }
    },
  });
  return counts;
}

/** Maximum series of organizations. */
const organizationsShown = 20;

/** E-mails of alerts and tests, one for each address. */
export function mailCounter(registry: Registry): Counter<'outcome'> {
  const mails = new Counter({
    name: 'posthorn_mails_total',
    help: 'E-mails of alerts and tests, counted once per recipient, by outcome: sent, failed, over_budget (the organization has used its daily budget), refused (the installation sends none to the address), unconfirmed (the recipient has not confirmed the address).',
    labelNames: ['outcome'],
    registers: [registry],
  });
  for (const outcome of ['sent', 'failed', 'over_budget', 'refused', 'unconfirmed']) mails.inc({ outcome }, 0);
  return mails;
}

/** Defines the metrics of a worker on `registry`; the backlog is read from Redis at each scrape. */
export function deliveryMetrics(
  registry: Registry,
  {
    queues,
    now,
    inFlight,
    bytes,
  }: { queues: readonly RedisDeliveryQueue[]; now: () => number; inFlight: () => number; bytes: () => Promise<ByteUsage> },
): DeliveryMetrics {
  const registers = [registry];
  // Gauges are read at the same time and share one read of Redis. Without Redis there are no figures, and no samples.
  const figures = sharedCall(() => Promise.all(queues.map((queue) => queue.figures())).then(sumQueueStats, () => null));
  const byteFigures = sharedCall(() => bytes().catch(() => null));
  new Gauge({
    name: 'posthorn_queue_messages',
    help: 'Messages by state: unfinished, retry_waiting (waits for its next attempt), scheduled (waits for the time for which it is scheduled), earlier_message (waits for an earlier message of its ordered target), processing, dead_letter. Every worker reports the whole installation.',
    labelNames: ['state'],
    registers,
    async collect() {
      const seen = await figures();
      this.reset();
      if (seen === null) return;
      this.set({ state: 'unfinished' }, seen.unfinished);
      this.set({ state: 'retry_waiting' }, seen.retriesWaiting);
      this.set({ state: 'scheduled' }, seen.scheduled);
      this.set({ state: 'earlier_message' }, seen.behindEarlier);
      this.set({ state: 'processing' }, seen.held);
      this.set({ state: 'dead_letter' }, seen.deadLetters);
    },
  });
  for (const [reason, meaning] of earlyEnds)
    new Counter({
      name: `posthorn_${reason}_messages_total`,
      help: `Messages that ended ${meaning}, by target: destination, endpoint. Every worker reports the whole installation.`,
      labelNames: ['target'],
      registers,
      async collect() {
        const seen = await figures();
        this.reset();
        if (seen === null) return;
        for (const target of targetKinds) this.inc({ target }, seen.earlyEnds[reason][target]);
      },
    });
  new Gauge({
    name: 'posthorn_backlog_messages',
    help: 'Messages that more workers of the pool could deliver sooner. Every worker of the pool reports the same value, which drives autoscaling.',
    registers,
    async collect() {
      const seen = await figures();
      this.reset();
      if (seen !== null) this.set(seen.backlog);
    },
  });
  new Gauge({
    name: 'posthorn_queue_oldest_unread_seconds',
    help: 'Age of the oldest ready message that no worker of the pool has dequeued.',
    registers,
    async collect() {
      const seen = await figures();
      if (seen !== null) this.set(seen.oldestUnreadAtMs === null ? 0 : Math.max(0, now() - seen.oldestUnreadAtMs) / 1000);
    },
  });
  new Gauge({
    name: 'posthorn_outbox_entries',
    help: 'Outbox entries that wait for transfer to another shard.',
    registers,
    async collect() {
      const seen = await figures();
      if (seen !== null) this.set(seen.outboxEntries);
    },
  });
  new Gauge({
    name: 'posthorn_outbox_oldest_seconds',
    help: 'Age of the oldest outbox entry. Rises while a target shard is unreachable or full.',
    registers,
    async collect() {
      const seen = await figures();
      if (seen !== null) this.set(seen.outboxAgeMs / 1000);
    },
  });
  new Gauge({
    name: 'posthorn_unfinished_bytes',
    help: 'Bytes in Redis of unfinished events: one series for each of the 20 organizations with the most, and one named others for the rest.',
    labelNames: ['organization'],
    registers,
    async collect() {
      const seen = await byteFigures();
      this.reset();
      if (seen === null) return;
      const sorted = [...seen.byAccount].sort(([, one], [, other]) => other - one);
      for (const [organization, held] of sorted.slice(0, organizationsShown)) this.set({ organization }, held);
      this.set(
        { organization: 'others' },
        sorted.slice(organizationsShown).reduce((sum, [, held]) => sum + held, 0),
      );
    },
  });
  new Gauge({
    name: 'posthorn_organizations_over_share',
    help: 'Organizations whose events are refused with QUEUE_FULL because their unfinished events exceed their share of Redis memory.',
    registers,
    async collect() {
      const seen = await byteFigures();
      this.reset();
      if (seen !== null) this.set(seen.over);
    },
  });
  new Gauge({
    name: 'posthorn_delivery_in_flight',
    help: 'Delivery attempts in flight in this worker.',
    registers,
    collect() {
      this.set(inFlight());
    },
  });
  const metrics: DeliveryMetrics = {
    outcomes: new Counter({
      name: 'posthorn_delivery_outcomes_total',
      help: 'Delivery attempts by outcome of the message: delivered, retry, dead (it became a dead letter), back (it was requeued, and the attempt does not count).',
      labelNames: ['outcome'],
      registers,
    }),
    attemptSeconds: new Histogram({
      name: 'posthorn_delivery_attempt_duration_seconds',
      help: 'Duration of delivery attempts by result: ok or the error type.',
      labelNames: ['result'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    rejections: new Counter({
      name: 'posthorn_delivery_rejections_total',
      help: 'Attempts whose receiver rejected the message permanently, by x-posthorn-retry: no or 410, by target: destination, endpoint, channel.',
      labelNames: ['target'],
      registers,
    }),
    requests: requestCounts(registry),
    lostSettlements: new Counter({
      name: 'posthorn_delivery_settled_elsewhere_total',
      help: 'Attempts whose result was discarded because the lease had ended: another worker settled the message, or it was requeued.',
      registers,
    }),
    requeued: new Counter({
      name: 'posthorn_delivery_put_back_total',
      help: 'Messages requeued because the worker that leased them was declared dead.',
      registers,
    }),
    memoryShare: new Gauge({
      name: 'posthorn_redis_memory_share',
      help: 'Used share of the memory limit of Redis, from 0 to 1. It is 0 if Redis has no limit.',
      registers,
    }),
    endpointsDisabled: new Counter({
      name: 'posthorn_webhook_endpoints_disabled_total',
      help: 'Webhook endpoints that were disabled, by cause: gone (it answered 410) or failing (every attempt has failed for its disableAfterHours).',
      labelNames: ['cause'],
      registers,
    }),
    prunedEarly: new Counter({
      name: 'posthorn_pruned_early_total',
      help: 'Finished messages removed before the end of their retention because Redis was above 60 % of its memory limit.',
      registers,
    }),
    archived: new Counter({
      name: 'posthorn_archived_messages_total',
      help: 'Finished messages written to archives.',
      registers,
    }),
    archiveUploads: new Counter({
      name: 'posthorn_archive_uploads_total',
      help: 'Uploads of archive batches by outcome: stored, failed.',
      labelNames: ['outcome'],
      registers,
    }),
    archiveLost: new Counter({
      name: 'posthorn_archive_lost_total',
      help: 'Finished messages removed before they were archived, because Redis was short of memory or the archive failed for too long.',
      registers,
    }),
    cronRuns: new Counter({
      name: 'posthorn_cron_runs_total',
      help: 'Scheduled runs of cron jobs by outcome: success, failed, late (skipped because no worker was free for ten minutes), dropped (the job was deleted or disabled).',
      labelNames: ['outcome'],
      registers,
    }),
    tasks: new Counter({
      name: 'posthorn_tasks_total',
      help: 'Tests and triggers that this worker ran for the API, by outcome: ok, error, late (the request of the API had timed out).',
      labelNames: ['kind', 'outcome'],
      registers,
    }),
    alerts: new Counter({
      name: 'posthorn_alert_outcomes_total',
      help: 'Attempts to send alerts, by channel type and outcome: delivered, retry, dead (the alert is given up).',
      labelNames: ['channel', 'outcome'],
      registers,
    }),
    storeResets: new Counter({ name: 'posthorn_store_resets_total', help: 'Times that a worker found Redis without its data.', registers }),
  };
  // Metrics in alerts begin at 0: the first one would be no increase.
  metrics.outcomes.inc({ outcome: 'dead' }, 0);
  for (const target of rejectingTargets) metrics.rejections.inc({ target }, 0);
  metrics.cronRuns.inc({ outcome: 'late' }, 0);
  for (const channel of channelTypes) metrics.alerts.inc({ channel, outcome: 'dead' }, 0);
  return metrics;
}
