import { PosthornError } from '../core/errors.ts';
import { RedisUnavailableError } from '../core/redis-unavailable-error.ts';

/** Maps a failed Redis command to UNAVAILABLE, to be tried again in a second. Leaves a PosthornError as it is. */
export function redisUnavailable(error: unknown): PosthornError {
  if (error instanceof PosthornError) return error;
  return new RedisUnavailableError(error);
}

/** The same for `catch` of a promise. */
export function throwUnavailable(error: unknown): never {
  throw redisUnavailable(error);
}

/** Whether a command failed because Redis did not answer in time, and not because it is unreachable. */
export function hasTimedOut(error: unknown): boolean {
  return error instanceof Error && error.message === 'Command timed out';
}
