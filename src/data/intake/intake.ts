import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';
import { homeShard, recordKey } from '../shard/record-key.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { intakeKeys } from './intake-keys.ts';
import { type QuotaSteps, quotaStep } from './quota-steps.ts';
import { type RateLimitState, takeRequest } from './rate-limit.ts';

/** Arguments of a claim of an event. */
export interface EventClaim {
  org: string;
  eventId: string;
  receivedAtMs: number;
  /** Hexadecimal digests, of which equal events of the source share one; none: it cannot be a duplicate. At most two. */
  marks: readonly string[];
  windowMs: number;
  /** Messages that it queues. */
  messages: number;
  /** Messages that the organization may queue in a month; null: any number. */
  monthlyMessages: number | null;
}

/** Claim options that are known before the number of the event's messages is. */
export interface UncountedClaim extends Pick<EventClaim, 'org' | 'receivedAtMs' | 'windowMs'> {
  /** Null: it cannot be a duplicate. */
  mark: string | null;
  monthlyMessages: number;
}

/** Remaining messages of a month. */
export interface MonthRemainder {
  messages: number;
  /** Records a refusal because of its size: the month counts as reached, as it does with a refused claim. */
  refused(): void;
}

export type ClaimOutcome =
  /** Accept it under `eventId`, which differs from its own when the same event was claimed before. `duplicateOf`: the same event, from before the window. */
  | { outcome: 'store'; eventId: string; duplicateOf: string | null }
  | { outcome: 'duplicate'; eventId: string }
  | { outcome: 'quotaExceeded' };

/** Admission: limits and dedup keys that hold over all replicas. Rejects with UNAVAILABLE when Redis does not answer. */
export interface Intake {
  /** Counts a request to the source against its limit per minute. */
  takeRequest(sourceId: string, limit: number): Promise<RateLimitState>;
  /** The event that was accepted with the dedup key within the window; null: none, or one still undecided. Claims nothing. */
  accepted(claim: Pick<EventClaim, 'org' | 'windowMs'> & { mark: string }): Promise<string | null>;
  /** How many messages the event may have; one whose messages are counted already as many as there may be in a month. Counts nothing. */
  remainder(claim: UncountedClaim): Promise<MonthRemainder>;
  /** Before the event is accepted: it may be a duplicate, or one too many. */
  claim(claim: EventClaim): Promise<ClaimOutcome>;
  /**
   * After it was accepted under `eventId`, by any process, or not. `failed`: no reply confirms that it is stored; whether it is, is looked up. What
   * this does not record, because the process dies, the next one that claims it finds out.
   */
  settle(claim: EventClaim, outcome: 'stored' | 'failed'): Promise<void>;
  /** Counts a repeated event for the analytics; `eventId`: the first one. */
  countDuplicate(org: string, sourceId: string, eventId: string): Promise<void>;
}

/** When the month (UTC) of a time ends. */
export function endOfMonthMs(ms: number): number {
  const at = new Date(ms);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1);
}

/** The error of one message too many: to be tried again in the next month (UTC). */
export function quotaExceeded(nowMs: number, monthlyMessages: number): PosthornError {
  return new PosthornError(
    'QUOTA_EXCEEDED',
    `This would exceed the ${monthlyMessages} messages that the organization may queue in a month (UTC)`,
    {
      retryAfterSeconds: (endOfMonthMs(nowMs) - nowMs) / 1000,
    },
  );
}

const claimScript = new Script(new URL('./intake-claim.lua', import.meta.url));
const knownScript = new Script(new URL('./intake-known.lua', import.meta.url));
const remainderScript = new Script(new URL('./intake-remainder.lua', import.meta.url));
const duplicateScript = new ShardScript(new URL('./count-duplicate.lua', import.meta.url));
const settleScript = new Script(new URL('./intake-settle.lua', import.meta.url));

const claimReply = z.union([
  z.tuple([z.literal('store'), z.string(), z.string()]).rest(z.number()),
  z.tuple([z.literal('duplicate'), z.string()]),
  z.tuple([z.literal('quota')]).rest(z.number()),
]);

const leftReply = z.tuple([z.number()]).rest(z.number());

const knownReply = z.union([z.tuple([]), z.tuple([z.enum(['c', 'r', 'a']), z.string()])]);

interface RedisIntakeOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  /** Absent: no event is published. */
  quotaSteps?: Pick<QuotaSteps, 'reached'>;
}

/**
 * The dedup keys and counts of an organization have a slot of their own: claim first, which names the event; accept second, in the
 * event's shard. Accepting the same id twice stores once, so that everybody who meets a claim may complete it.
 */
export class RedisIntake implements Intake {
  readonly #options: RedisIntakeOptions;

  constructor(options: RedisIntakeOptions) {
    this.#options = options;
  }

  async takeRequest(sourceId: string, limit: number): Promise<RateLimitState> {
    return await takeRequest(this.#options, sourceId, limit).catch(throwUnavailable);
  }

  async accepted({ org, mark, windowMs }: Pick<EventClaim, 'org' | 'windowMs'> & { mark: string }): Promise<string | null> {
    const { redis, prefix } = this.#options;
    const reply = await knownScript.run(redis, intakeKeys(prefix, org).declared, [mark, windowMs]).catch(throwUnavailable);
    const [state, eventId] = knownReply.parse(reply);
    if (eventId === undefined) return null;
    return state === 'a' || (await this.#isStored(eventId)) ? eventId : null;
  }

  async remainder({ org, mark, windowMs, receivedAtMs, monthlyMessages }: UncountedClaim): Promise<MonthRemainder> {
    const { redis, prefix } = this.#options;
    const args = [mark ?? '', windowMs, monthOf(receivedAtMs), monthlyMessages];
    const reply = await remainderScript.run(redis, intakeKeys(prefix, org).declared, args).catch(throwUnavailable);
    const [messages, ...step] = leftReply.parse(reply);
    return { messages, refused: () => this.#reached(step, { org, receivedAtMs, monthlyMessages }) };
  }

  async claim(claim: EventClaim): Promise<ClaimOutcome> {
    const { monthlyMessages } = claim;
    const limit = monthlyMessages === null ? '' : String(monthlyMessages);
    const reply = claimReply.parse(await this.#run(claimScript, claim, [limit]));
    switch (reply[0]) {
      case 'store': {
        const [, eventId, earlier, ...step] = reply;
        this.#reached(step, claim);
        return { outcome: 'store', eventId, duplicateOf: earlier === '' ? null : earlier };
      }
      case 'duplicate':
        return { outcome: 'duplicate', eventId: reply[1] };
      case 'quota': {
        const [, ...step] = reply;
        this.#reached(step, claim);
        return { outcome: 'quotaExceeded' };
      }
      default:
        return reply satisfies never;
    }
  }

  #reached(
    step: readonly number[],
    { org, receivedAtMs, monthlyMessages }: Pick<EventClaim, 'org' | 'receivedAtMs' | 'monthlyMessages'>,
  ): void {
    void this.#options.quotaSteps?.reached(quotaStep(step, { org, month: monthOf(receivedAtMs), limit: monthlyMessages }));
  }

  async settle(claim: EventClaim, outcome: 'stored' | 'failed'): Promise<void> {
    const known = outcome === 'failed' && (await this.#isStored(claim.eventId)) ? 'stored' : outcome;
    await this.#run(settleScript, claim, [claim.monthlyMessages === null ? '0' : '1', known]);
  }

  /** On the connection over which it was to be stored this comes after that, also when the answer was lost. */
  async #isStored(eventId: string): Promise<boolean> {
    const { redis, prefix } = this.#options;
    const shard = homeShard(eventId);
    const key = shard === null ? null : recordKey(eventId, shard);
    if (shard === null || key === null) return false;
    try {
      return (await redis.exists(shardKeys(prefix, shard).event(key))) === 1;
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  async countDuplicate(org: string, sourceId: string, eventId: string): Promise<void> {
    const { redis, prefix } = this.#options;
    try {
      await duplicateScript.run(redis, shardKeys(prefix, homeShard(eventId) ?? 0).declared, [org, sourceId]);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  async #run(script: Script, claim: EventClaim, more: readonly string[]): Promise<unknown> {
    const { redis, prefix } = this.#options;
    const { org, eventId, marks, windowMs, receivedAtMs, messages } = claim;
    return await script
      .run(redis, intakeKeys(prefix, org).declared, [eventId, marks.join(' '), windowMs, monthOf(receivedAtMs), messages, ...more])
      .catch(throwUnavailable);
  }
}

/** As messages are counted: `YYYY-MM`, in UTC. */
export function monthOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 7);
}
