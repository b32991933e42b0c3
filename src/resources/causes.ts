import { type ErrorCode, PosthornError } from '../core/errors.ts';
import type { Kind } from './kinds.ts';

/** One complaint about an object, as the API server's `details.causes`: a dotted path (`spec.http.url`) and what to do. */
export interface Cause {
  field: string;
  message: string;
}

/** The error that a store throws for an object that `admit` refused: `details` has the complaints by field. */
export function invalidObject(kind: Kind, name: string, causes: readonly Cause[], code: ErrorCode = 'VALIDATION_FAILED'): PosthornError {
  const byField = Map.groupBy(causes, ({ field }) => field);
  const details = Object.fromEntries([...byField].map(([field, group]) => [field, group.map(({ message }) => message)]));
  const text = causes.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`)).join('; ');
  return new PosthornError(code, `${kind} ${name} is invalid: ${text}`, { details });
}
