import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { clientNetwork } from '../../core/client-address.ts';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';

export interface GuessLimiterOptions {
  clock: Clock;
  /** Credentials that a client may have refused in a minute; as many at once. */
  maxPerMinute: number;
}

/** Clients, and accepted credentials, that one process remembers; the least recently used is forgotten first. */
const maxRemembered = 10_000;
const minuteMs = 60_000;

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/**
 * Slows down clients that guess credentials: a token bucket per client (see `clientNetwork`) and process. Each refused credential takes a token,
 * and one that is accepted never does, so a guesser does not lock out those who share its address.
 * - `checkAfter`, for credentials whose check is cheap: all are checked; one that is refused is UNAUTHORIZED, and without a token RATE_LIMITED.
 * - `checkBefore`, for those whose check is dear: without a token a credential is refused unchecked, unless this process has accepted it before.
 */
export class GuessLimiter {
  readonly #clock: Clock;
  readonly #maxPerMinute: number;
  readonly #buckets = new LRUCache<string, Bucket>({ max: maxRemembered });
  readonly #accepted = new LRUCache<string, true>({ max: maxRemembered });
  /** First checks of credentials that are not accepted yet; they never reject. */
  readonly #firstChecks = new Map<string, Promise<void>>();

  constructor({ clock, maxPerMinute }: GuessLimiterOptions) {
    this.#clock = clock;
    this.#maxPerMinute = maxPerMinute;
  }

  /** Returns what `verify` resolves to; rejects as it does, and with RATE_LIMITED instead of UNAUTHORIZED if `address` has no token left. */
  async checkAfter<T>(address: string, verify: () => Promise<T>): Promise<T> {
    try {
      return await verify();
    } catch (error) {
      if (isPosthornError(error, 'UNAUTHORIZED')) this.#takeToken(this.#bucketOf(clientNetwork(address)));
      throw error;
    }
  }

  /** Returns what `verify` resolves to; rejects as it does, and with RATE_LIMITED where `address` has no token left. */
  async checkBefore<T>(address: string, credential: string, verify: () => Promise<T>): Promise<T> {
    const digest = hash('sha256', credential, 'base64url');
    // Many requests with a valid credential that is not cached yet take one token, not one each. The first of them must not be delayed.
    const first = this.#firstChecks.get(digest);
    if (first !== undefined) await first;
    const bucket = this.#bucketOf(clientNetwork(address));
    const wasAccepted = this.#accepted.get(digest) === true;
    if (!wasAccepted) this.#takeToken(bucket);
    const checked = verify();
    if (!wasAccepted) this.#noteFirstCheck(digest, checked);
    try {
      const verified = await checked;
      if (!wasAccepted) this.#giveBack(bucket);
      return verified;
    } catch (error) {
      const isRefused = isPosthornError(error, 'UNAUTHORIZED');
      if (isRefused && wasAccepted) {
        this.#accepted.delete(digest);
        bucket.tokens = Math.max(0, bucket.tokens - 1);
      }
      if (!isRefused && !wasAccepted) this.#giveBack(bucket);
      throw error;
    }
  }

  #bucketOf(client: string): Bucket {
    const nowMs = this.#clock.now();
    const bucket = this.#buckets.get(client) ?? { tokens: this.#maxPerMinute, filledAtMs: nowMs };
    const grown = (Math.max(0, nowMs - bucket.filledAtMs) / minuteMs) * this.#maxPerMinute;
    bucket.tokens = Math.min(this.#maxPerMinute, bucket.tokens + grown);
    bucket.filledAtMs = nowMs;
    this.#buckets.set(client, bucket);
    return bucket;
  }

  #takeToken(bucket: Bucket): void {
    if (bucket.tokens < 1) {
      const retryAfterSeconds = Math.ceil(((1 - bucket.tokens) / this.#maxPerMinute) * (minuteMs / 1000));
      throw new PosthornError('RATE_LIMITED', 'Too many credentials from this address were refused; send the request again later.', {
        retryAfterSeconds,
      });
    }
    bucket.tokens -= 1;
  }

  #giveBack(bucket: Bucket): void {
    bucket.tokens = Math.min(this.#maxPerMinute, bucket.tokens + 1);
  }

  #noteFirstCheck(digest: string, checked: Promise<unknown>): void {
    const forget = (): void => {
      if (this.#firstChecks.get(digest) === first) this.#firstChecks.delete(digest);
    };
    const accept = (): void => {
      this.#accepted.set(digest, true);
      forget();
    };
    const first: Promise<void> = checked.then(accept, forget);
    this.#firstChecks.set(digest, first);
  }
}
