import type { Clock } from '../core/clock.ts';
import type { TransformRecord } from '../core/records.ts';
import type { Batch, Job, Outcome, Settlement } from '../data/delivery-queue.ts';
import { type AlertReport, attemptAlert } from './alert-attempt.ts';
import { attemptOutcome, attemptRecord } from './attempt-outcome.ts';
import type { ReadyHttpPlan, ReadyPlan, ReadyWarehousePlan } from './delivery-plan.ts';
import type { DeliveryMetrics } from './metrics.ts';
import { exchange } from './targets/http/http-exchange.ts';
import { requestHeaders } from './targets/http/request-headers.ts';
import { upload } from './targets/warehouse/upload.ts';
import type { UploadRoom } from './targets/warehouse/upload-room.ts';
import { objectsOf, uploadRecord } from './targets/warehouse/warehouse-attempt.ts';

export interface AttemptContext {
  clock: Clock;
  userAgent: string;
  metrics: DeliveryMetrics;
  /** Breaks the attempt off; its message then goes back to the queue. */
  signal: AbortSignal;
  /** Told of every attempt to send an alert. */
  onAlert: (report: AlertReport) => void;
  /** What a batch is made of, as the transform makes it; null when it has ended. */
  batchOf: (job: Job, transform: TransformRecord | null) => Promise<Batch | null>;
  uploadRoom: UploadRoom;
}

/** Delivers a message or a batch once and says what becomes of it. Rejects when a batch cannot be read. */
export async function attemptDelivery(job: Job, plan: ReadyPlan, context: AttemptContext): Promise<Settlement> {
  switch (plan.type) {
    case 'http':
      return await attemptHttp(job, plan, context);
    case 'alert':
      return await attemptAlert(job, plan, context);
    case 'warehouse':
      return await attemptUpload(job, plan, context);
    default:
      return plan satisfies never;
  }
}

async function attemptHttp(job: Job, plan: ReadyHttpPlan, { clock, userAgent, metrics, signal }: AttemptContext): Promise<Settlement> {
  const { http } = plan;
  const { event } = job;
  if (event === null) return { job, outcome: { type: 'dead', attempt: null, reason: 'payload_not_found' }, maxAttempts: null };
  const number = job.attempts + 1;
  // Each destination that a message fails over to has the retries of its own policy.
  const before = job.failover?.attemptsBefore ?? 0;
  const startedAtMs = clock.now();
  const headers = requestHeaders(http.headers, event, {
    messageId: job.messageId,
    eventId: job.eventId,
    number,
    timestampSeconds: Math.floor(startedAtMs / 1000),
    userAgent,
    failover: job.failover,
  });
  const request = { origin: http.origin, path: http.path, method: http.method, headers, body: event.payload };
  const result = await exchange(http.dispatcher(), request, { timeoutMs: http.timeoutMs, clock, signal });
  if (signal.aborted && result.type === 'error') return { job, outcome: { type: 'back' }, maxAttempts: null };
  const attempt = attemptRecord(result, plan, { startedAtMs, endedAtMs: clock.now() });
  metrics.attemptSeconds.observe({ result: attempt.errorType ?? 'ok' }, attempt.durationMs / 1000);
  return { job, outcome: attemptOutcome(attempt, result, plan, number - before), maxAttempts: before + plan.retryPolicy.maxRetries + 1 };
}

async function attemptUpload(job: Job, plan: ReadyWarehousePlan, context: AttemptContext): Promise<Settlement> {
  const { clock, metrics, signal, batchOf, uploadRoom } = context;
  const { warehouse, retryPolicy } = plan;
  const ended = (outcome: Outcome): Settlement => ({ job, outcome, maxAttempts: retryPolicy.maxRetries + 1 });
  // Queued before the setting of the target was known: it goes back, to be gathered into a batch.
  if (!job.isBatch) return ended({ type: 'back' });
  const leave = await uploadRoom.enter(job.target.org);
  if (leave === null) return ended({ type: 'back' });
  try {
    const batch = await batchOf(job, plan.transform);
    if (batch === null) return ended({ type: 'back' });
    const objects = await objectsOf(batch, warehouse);
    if (objects === null) return ended({ type: 'dead', attempt: null, reason: 'payload_not_found' });
    const startedAtMs = clock.now();
    const result = await upload(warehouse.store, objects, { dispatcher: warehouse.dispatcher(), clock, signal });
    if (signal.aborted && result.type === 'error') return ended({ type: 'back' });
    const attempt = uploadRecord(result, { startedAtMs, endedAtMs: clock.now() });
    metrics.attemptSeconds.observe({ result: attempt.errorType ?? 'ok' }, attempt.durationMs / 1000);
    return ended(attemptOutcome(attempt, result, plan, job.attempts + 1));
  } finally {
    leave();
  }
}
