import { PosthornError } from './errors.ts';

/** A Redis command has failed (UNAVAILABLE): it is to be tried again in a second. */
export class RedisUnavailableError extends PosthornError {
  constructor(cause: unknown) {
    super('UNAVAILABLE', 'Redis does not answer', { cause, retryAfterSeconds: 1 });
    this.name = 'RedisUnavailableError';
  }
}
