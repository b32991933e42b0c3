import type { NewAttempt } from '../../../data/attempt-record.ts';
import type { Batch } from '../../../data/delivery-queue.ts';
import { errorType } from '../http/error-type.ts';
import { readLayout } from './batch-layout.ts';
import { batchObjects } from './batch-objects.ts';
import type { StoredObject } from './object-store.ts';
import type { UploadResult } from './upload.ts';
import type { WarehousePlan } from './warehouse-plan.ts';

const keptMessageLength = 500;

/** What a batch is written as; null when it has nothing to write: no event of it is there any more, or the transform lets none through. */
export async function objectsOf({ id, layout, members }: Batch, { mapping }: WarehousePlan): Promise<StoredObject[] | null> {
  const events = members.flatMap(({ eventId, event, isUnsent }) => (event === null || isUnsent ? [] : [{ ...event, eventId }]));
  return events.length === 0 ? null : await batchObjects({ id, layout: readLayout(layout), events }, mapping);
}

/** The record of one upload. */
export function uploadRecord(result: UploadResult, { startedAtMs, endedAtMs }: { startedAtMs: number; endedAtMs: number }): NewAttempt {
  const common = { startedAtMs, durationMs: Math.max(0, Math.round(endedAtMs - startedAtMs)), responseBody: null };
  if (result.type === 'error')
    return {
      ...common,
      responseStatus: null,
      errorType: errorType(result.error),
      errorMessage: result.error.message.slice(0, keptMessageLength),
    };
  const { status, code } = result;
  if (status < 300) return { ...common, responseStatus: status, errorType: null, errorMessage: null };
  const errorMessage = `the store answered ${status}${code === null ? '' : ` (${code})`}`;
  return { ...common, responseStatus: status, errorType: 'http_error', errorMessage };
}
