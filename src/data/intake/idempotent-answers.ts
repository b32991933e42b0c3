import { createHash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { keptPart } from '../../core/open-shares.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';

export interface IdempotentAnswersOptions {
  redis: RedisClient;
  prefix: string;
  /** How long a claim holds without being renewed, in milliseconds. Default 30 s. */
  claimMs?: number;
  /** Bytes of one organization beyond which answers that are spare are forgotten early, the oldest first. Default 64 MiB. */
  spareBytes?: number;
  /** Bytes of one organization, about, beyond which no new key is taken; of one credential, while it is alone, three quarters of it. Default 128 MiB. */
  maxBytes?: number;
}

/** State of a key. `answer` is the argument of `keep`. */
export type ClaimOutcome =
  /** `isTakenOver`: another process claimed it before and did not end, so that the request may have been executed in part. */
  | { state: 'claimed'; claim: IdempotencyClaim; isTakenOver: boolean }
  | { state: 'answered'; answer: string }
  | { state: 'underWay'; endsInMs: number }
  /** The key was used for another request. */
  | { state: 'other' }
  /** The key is new, and the limit of the organization, or of the credential, is reached until the oldest one expires. */
  | { state: 'full'; endsInMs: number };

const claimScript = new Script(new URL('./idempotency-claim.lua', import.meta.url));
const settleScript = new Script(new URL('./idempotency-settle.lua', import.meta.url));

/** How long a key and its answer are kept. */
export const idempotentAnswersKeptMs = 24 * 3_600_000;
const mebibyte = 1024 * 1024;

/** The keys of an organization, in one slot; `RedisMessagePurger` removes them with the organization. */
export function idempotencyKeys(prefix: string, org: string): Record<'answers' | 'order' | 'spare' | 'owners', string> {
  const base = `${prefix}{idem:${org}}`;
  return { answers: `${base}:answers`, order: `${base}:order`, spare: `${base}:spare`, owners: `${base}:owners` };
}

const claimReply = z.union([
  z.tuple([z.literal('claimed'), z.number()]),
  z.tuple([z.literal('answered'), z.string()]),
  z.tuple([z.literal('under-way'), z.number()]),
  z.tuple([z.literal('other')]),
  z.tuple([z.literal('full'), z.number()]),
]);

/**
 * Idempotency keys of an organization with the responses to them, for 24 h: claim first,
 * then act, then keep the answer. A claim whose holder died ends by itself, and the key can be claimed again. What is kept stays for its time;
 * only answers that are spare may go earlier.
 */
export class IdempotentAnswers {
  readonly #options: Required<IdempotentAnswersOptions>;

  constructor(options: IdempotentAnswersOptions) {
    this.#options = { claimMs: 30_000, spareBytes: 64 * mebibyte, maxBytes: 128 * mebibyte, ...options };
  }

  /** How long a claim holds, in milliseconds. */
  get claimMs(): number {
    return this.#options.claimMs;
  }

  /**
   * `request` is everything that two equal requests have in common; `credential` claims the key, and leaves some of what its organization may have to others
   * (`OpenShares`). UNAVAILABLE without Redis.
   */
  async claim(org: string, key: string, request: string, credential: string): Promise<ClaimOutcome> {
    const { redis, prefix, claimMs, spareBytes, maxBytes } = this.#options;
    const { answers, order, spare, owners } = idempotencyKeys(prefix, org);
    const keys = [answers, order, spare, owners];
    const [member, token] = [digest(key), randomUUID()];
    const reply = claimReply.parse(
      await claimScript
        .run(redis, keys, [
          namedArgument({
            key: member,
            token,
            request: digest(request),
            claimMs,
            keptMs: idempotentAnswersKeptMs,
            spareBytes,
            maxBytes,
            credential,
            keptPart,
          }),
        ])
        .catch(throwUnavailable),
    );
    switch (reply[0]) {
      case 'claimed':
        return { state: 'claimed', claim: new IdempotencyClaim(redis, keys, member, token), isTakenOver: reply[1] === 1 };
      case 'answered':
        return { state: 'answered', answer: reply[1] };
      case 'under-way':
        return { state: 'underWay', endsInMs: reply[1] };
      case 'other':
        return { state: 'other' };
      case 'full':
        return { state: 'full', endsInMs: reply[1] };
    }
  }
}

type SettleStep = { step: 'answer'; keptMs: number; isSpare: boolean } | { step: 'release' } | { step: 'renew'; claimMs: number };

/** A key that this process holds. Every method returns whether it still did; UNAVAILABLE without Redis. */
export class IdempotencyClaim {
  readonly #redis: RedisClient;
  readonly #keys: string[];
  readonly #member: string;
  readonly #token: string;

  constructor(redis: RedisClient, keys: string[], member: string, token: string) {
    this.#redis = redis;
    this.#keys = keys;
    this.#member = member;
    this.#token = token;
  }

  /** `isSpare`: it can be found out again without this. */
  keep(answer: string, { isSpare = false }: { isSpare?: boolean } = {}): Promise<boolean> {
    return this.#settle({ step: 'answer', keptMs: idempotentAnswersKeptMs, isSpare }, answer);
  }

  release(): Promise<boolean> {
    return this.#settle({ step: 'release' });
  }

  /** As if this process had died: the next claim of the key takes over. */
  abandon(): Promise<boolean> {
    return this.#settle({ step: 'renew', claimMs: 0 });
  }

  renew(ms: number): Promise<boolean> {
    return this.#settle({ step: 'renew', claimMs: ms });
  }

  async #settle(step: SettleStep, answer = ''): Promise<boolean> {
    const settled = namedArgument({ key: this.#member, token: this.#token, ...step });
    try {
      return (await settleScript.run(this.#redis, this.#keys, [settled, answer])) === 1;
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
