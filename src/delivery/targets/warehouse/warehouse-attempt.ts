import type { NewAttempt } from '../../../data/attempt-record.ts';
import { errorType } from '../http/error-type.ts';
import type { UploadResult } from './upload.ts';

const keptMessageLength = 500;

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
