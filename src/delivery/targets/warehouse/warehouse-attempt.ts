import type { NewAttempt } from '../../../data/shard/attempt-record.ts';
import { errorMessage, errorType } from '../http/error-type.ts';
import type { UploadResult } from './upload.ts';

/** The record of one upload. */
export function uploadRecord(result: UploadResult, { startedAtMs, endedAtMs }: { startedAtMs: number; endedAtMs: number }): NewAttempt {
  const common = { startedAtMs, durationMs: Math.max(0, Math.round(endedAtMs - startedAtMs)), responseBody: null };
  if (result.type === 'error')
    return { ...common, responseStatus: null, errorType: errorType(result.error), errorMessage: errorMessage(result.error) };
  const { status, code } = result;
  if (status < 300) return { ...common, responseStatus: status, errorType: null, errorMessage: null };
  const problem = `the store answered ${status}${code === null ? '' : ` (${code})`}`;
  return { ...common, responseStatus: status, errorType: 'http_error', errorMessage: problem };
}
