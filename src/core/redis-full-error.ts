import { PosthornError } from './errors.ts';

/** Time in which deliveries free memory. */
const retryAfterSeconds = 10;

/** Redis uses nearly all the memory that it may (UNAVAILABLE): nothing was stored. */
export class RedisFullError extends PosthornError {
  constructor() {
    super('UNAVAILABLE', 'Redis is nearly full', { retryAfterSeconds });
    this.name = 'RedisFullError';
  }
}
