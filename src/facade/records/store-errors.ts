import { setTimeout as pause } from 'node:timers/promises';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { ServedKind } from '../http/services.ts';
import { reworded } from './api-names.ts';
import { nouns } from './nouns.ts';
import { fieldManaged } from './owned-spec.ts';

const writeAttempts = 10;

/** Refusals of the store, in words for an API client: which field and why, without the store's own phrases and names. */
export function forClients(error: unknown, kind: ServedKind): unknown {
  if (!isPosthornError(error)) return error;
  // It is not the caller who lacks the right.
  if (error.code === 'FORBIDDEN' && /: User "[^"]*" cannot /.test(error.message))
    return new PosthornError(
      'INTERNAL',
      'The API lacks a permission in the cluster that this needs; find it in the logs by the request id.',
      {
        cause: error,
      },
    );
  if (isQuotaUsedUp(error))
    return new PosthornError('FORBIDDEN', "A quota of the organization's namespace in the cluster is used up.", { cause: error });
  if (error.details === undefined) return error;
  if (error.code === 'FIELD_MANAGED') return fieldManaged(error.details);
  if (error.code !== 'VALIDATION_FAILED') return error;
  const complaints = Object.entries(error.details).map(([path, texts]): [string, string[]] => {
    const field = path.replace(/^spec\.?/, '').replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]');
    return [reworded(field, kind), texts.map((text) => reworded(text, kind))];
  });
  const text = complaints.map(([field, texts]) => `${field} ${texts.join(', ')}`.trim());
  return new PosthornError('VALIDATION_FAILED', `${text.join('; ')}.`, { details: Object.fromEntries(complaints), cause: error });
}

/** A ResourceQuota of the namespace allows no more of the kind. */
export function isQuotaUsedUp(error: unknown): boolean {
  return isPosthornError(error, 'FORBIDDEN') && error.message.includes('exceeded quota');
}

/** Compiles what was sent; complaints are worded as `forClients` does. */
export function inApiWords<T>(kind: ServedKind, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    throw forClients(error, kind);
  }
}

/** Waits between two attempts to write an object that others write, too. CONFLICT after the last attempt. */
export async function pauseBeforeRetry(kind: ServedKind, attempt: number, cause: unknown): Promise<void> {
  if (attempt === writeAttempts) {
    const message = `The ${nouns[kind]} is being changed by others at this moment; send the request again.`;
    throw new PosthornError('CONFLICT', message, { cause });
  }
  await pause(attempt * (5 + 10 * Math.random()));
}
