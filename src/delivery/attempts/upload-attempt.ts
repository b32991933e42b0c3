import { retryCount } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import type { OrganizationBudget } from '../../core/organization-budget.ts';
import type { Batch, Job, Outcome, Settlement } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { NewAttempt } from '../../data/shard/attempt-record.ts';
import type { DeliveryMetrics } from '../metrics.ts';
import type { ReadyWarehousePlan } from '../plans/delivery-plan.ts';
import { type UploadResult, upload, uploadTimeoutMs } from '../targets/warehouse/upload.ts';
import { uploadRecord } from '../targets/warehouse/warehouse-attempt.ts';
import { attemptOutcome, withWarning } from './attempt-outcome.ts';
import { batchContent } from './batch-content.ts';
import { runBatchTransforms, TransformsStalledError } from './batch-transforms.ts';
import type { EventTransformer } from './transformed-event.ts';

/** Time limit of an attempt including its preparation. Below the visibility timeout of a batch (150 s). */
const attemptTimeoutMs = 80_000;
const shortestUploadMs = 1000;

/** Where a worker reads the batches of a shard. */
export interface BatchSource {
  worker: string;
  queue: RedisDeliveryQueue;
  transformer: EventTransformer;
}

export interface UploadContext {
  clock: Clock;
  metrics: DeliveryMetrics;
  /** Aborts the attempt; its batch then returns to the queue. */
  signal: AbortSignal;
  batches: BatchSource;
  /** Memory for batches whose transforms have been run. */
  uploadBudget: OrganizationBudget;
  transformBudget: OrganizationBudget;
}

/**
 * Writes a batch once and returns its outcome. Rejects if the batch cannot be read, or if some transforms have been run and others must wait. The batch then
 * returns to the queue, and the next attempt runs the rest of the transforms.
 */
export async function attemptUpload(job: Job, plan: ReadyWarehousePlan, context: UploadContext): Promise<Settlement> {
  const { clock, metrics, signal, batches, uploadBudget } = context;
  const { warehouse, retryPolicy } = plan;
  const begunAtMs = clock.now();
  const settlement = (outcome: Outcome): Settlement => ({ job, outcome, maxAttempts: retryCount(retryPolicy) + 1 });
  const back = settlement({ type: 'back' });
  const attempted = (result: UploadResult, startedAtMs: number): Settlement => {
    const attempt: NewAttempt = uploadRecord(result, { startedAtMs, endedAtMs: clock.now() });
    metrics.attemptSeconds.observe({ result: attempt.errorType ?? 'ok' }, attempt.durationMs / 1000);
    return settlement(attemptOutcome(attempt, result, plan, job.attempts + 1));
  };
  if ('refusal' in warehouse) return attempted({ type: 'error', error: warehouse.refusal, code: null }, begunAtMs);
  // A message that was queued before the setting of the target was known returns to the queue, where it is added to a batch.
  const batch = job.isBatch ? await batches.queue.batch(job) : null;
  if (batch === null) return back;
  const ready = await readyMembers(batch, job, plan, context);
  if (ready === null) return back;
  if (ready instanceof TransformsStalledError) return attempted({ type: 'error', error: ready, code: null }, begunAtMs);
  const leave = await uploadBudget.enter(job.target.org);
  if (leave === null) return back;
  try {
    const content = await batchContent(batch, job, { ...plan, ...warehouse }, { ...batches, clock, ready });
    if (content === null) return back;
    const { objects, warning } = content;
    if (objects.length === 0) return settlement({ type: 'dead', attempt: null, reason: 'payload_not_found' });
    const startedAtMs = clock.now();
    const leftMs = Math.max(shortestUploadMs, begunAtMs + attemptTimeoutMs - startedAtMs);
    const timeoutMs = Math.min(uploadTimeoutMs, leftMs);
    const { secrets } = warehouse;
    const result = await upload(warehouse.store, objects, { dispatcher: warehouse.dispatcher(), secrets, clock, signal, timeoutMs });
    if (signal.aborted && result.type === 'error') return back;
    return withWarning(attempted(result, startedAtMs), warning);
  } finally {
    leave();
  }
}

/** Returns how many members, from the oldest on, may be written now; null: the batch returns to the queue. */
async function readyMembers(
  batch: Batch,
  job: Job,
  { transform }: ReadyWarehousePlan,
  { batches, clock, signal, transformBudget }: UploadContext,
): Promise<number | TransformsStalledError | null> {
  if (transform === null) return batch.members.length;
  const leave = await transformBudget.enter(job.target.org);
  if (leave === null) return null;
  try {
    return await runBatchTransforms(batch, job, transform, { ...batches, clock, signal });
  } catch (error) {
    if (error instanceof TransformsStalledError) return error;
    throw error;
  } finally {
    leave();
  }
}
