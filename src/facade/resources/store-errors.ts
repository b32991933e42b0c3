import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { fieldManaged } from './owned-spec.ts';

/** What the store refused, in words for an API client: which field and why, without the store's own phrases. */
export function forClients(error: unknown): unknown {
  if (!isPosthornError(error) || error.details === undefined) return error;
  if (error.code === 'FIELD_MANAGED') return fieldManaged(error.details);
  if (error.code !== 'VALIDATION_FAILED') return error;
  const text = Object.entries(error.details).map(([path, complaints]) => `${path.replace(/^spec\.?/, '')} ${complaints.join(', ')}`.trim());
  return new PosthornError('VALIDATION_FAILED', `${text.join('; ')}.`, { cause: error });
}
