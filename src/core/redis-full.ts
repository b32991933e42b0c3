import { PosthornError } from './errors.ts';

/** Deliveries need this long to make room. */
const retryAfterSeconds = 10;

/** Redis uses nearly all the memory that it may (UNAVAILABLE): nothing was stored. */
export class RedisFull extends PosthornError {
  constructor() {
    super('UNAVAILABLE', 'Redis is nearly full', { retryAfterSeconds });
    this.name = 'RedisFull';
  }
}
