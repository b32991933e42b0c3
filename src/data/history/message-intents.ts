import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { monthOf, quotaExceeded } from '../intake/intake.ts';
import { intakeKeys, unfinishedIntentsKey } from '../intake/intake-keys.ts';
import { type QuotaSteps, quotaStep } from '../intake/quota-steps.ts';
import { RecoveryScanner } from '../locks/recovery-scanner.ts';

/** A planned operation on messages, which may lie in several shards. */
export interface Intent {
  /** Two intents with the same id are the same one, whatever else they contain: the first counts. */
  id: string;
  action: 'replay' | 'archive';
  beganAtMs: number;
  /** Its outcome is read again: it is kept for a day. */
  isAskedAgain: boolean;
  /** The messages by the shard where it is done to them. */
  messages: [shard: number, ids: string[]][];
}

/** Outcome of an intent that was carried out: the messages to which it was done. */
type IntentOutcome = Pick<Intent, 'id' | 'beganAtMs'> & { done: string[] };

const beginScript = new Script(new URL('./intent-begin.lua', import.meta.url));
const readScript = new Script(new URL('./intent-read.lua', import.meta.url));
const endScript = new Script(new URL('./intent-end.lua', import.meta.url));
const maxAtATime = 1000;
const maxOutcomes = 10_000;

const storedIntent = z.object({
  action: z.enum(['replay', 'archive']),
  beganAtMs: z.number(),
  isAskedAgain: z.boolean(),
  messages: z.array(z.tuple([z.number(), z.array(z.string())])),
});
const storedOutcome = z.object({ beganAtMs: z.number(), done: z.array(z.string()) });
const readReply = z.union([z.tuple([]), z.tuple([z.enum(['begun', 'ended']), z.string()])]);
const beginReply = z.union([
  z.tuple([z.enum(['begun', 'ended']), z.string()]).rest(z.number()),
  z.tuple([z.literal('quota')]).rest(z.number()),
  z.tuple([z.literal('many')]),
]);

interface MessageIntentsOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  /** Absent: intents publish no steps of the month. */
  quotaSteps?: Pick<QuotaSteps, 'reached'>;
}

/**
 * Bulk operations on messages, recorded before they begin, so that any process that finds one finishes it; and counted against the month in the
 * same step, so that the count is exact after a crash at any point. Each in the slot of its organization. Rejects with UNAVAILABLE when Redis does not answer.
 */
export class MessageIntents {
  readonly #options: MessageIntentsOptions;
  readonly #unfinished: RecoveryScanner;

  constructor(options: MessageIntentsOptions) {
    this.#options = options;
    this.#unfinished = new RecoveryScanner({ ...options, key: unfinishedIntentsKey(options.prefix) });
  }

  /** To be called before `begin`: recovery searches there. */
  announce(account: string): Promise<void> {
    return this.#unfinished.announce(account);
  }

  /** State of an intent; null: unknown. */
  async find(account: string, id: string): Promise<{ intent: Intent } | { outcome: IntentOutcome } | null> {
    const [state, text] = readReply.parse(await this.#run(readScript, account, [id]));
    return text === undefined ? null : known(id, state, text);
  }

  /**
   * Records it and counts its messages, unless it exists. QUOTA_EXCEEDED when they exceed the month's limit: `monthlyMessages`, null for any
   * number; then nothing is recorded. UNAVAILABLE while very many are open.
   */
  async begin(
    account: string,
    { id, ...rest }: Intent,
    monthlyMessages: number | null,
  ): Promise<{ intent: Intent } | { outcome: IntentOutcome }> {
    const nowMs = this.#options.clock.now();
    const count = rest.action === 'replay' ? rest.messages.reduce((sum, [, ids]) => sum + ids.length, 0) : 0;
    const month = monthOf(nowMs);
    const what = JSON.stringify(rest);
    const begun = namedArgument({ intent: id, what, month, messages: count, limit: monthlyMessages, maxOpen: maxAtATime });
    const reply = beginReply.parse(await this.#run(beginScript, account, [begun]));
    const reached = (step: readonly number[]): void =>
      void this.#options.quotaSteps?.reached(quotaStep(step, { org: account, month, limit: monthlyMessages }));
    switch (reply[0]) {
      case 'many':
        throw new PosthornError('UNAVAILABLE', 'Too much is under way for this organization.', { retryAfterSeconds: 1 });
      case 'quota': {
        const [, ...step] = reply;
        reached(step);
        throw quotaExceeded(nowMs, monthlyMessages ?? 0);
      }
      default: {
        const [state, text, ...step] = reply;
        reached(step);
        return known(id, state, text);
      }
    }
  }

  /** After it was carried out. What was counted for messages to which nothing was done is given back, once. */
  async end(account: string, { id, isAskedAgain, beganAtMs }: Intent, done: readonly string[]): Promise<void> {
    const outcome = isAskedAgain && done.length > 0 ? JSON.stringify({ beganAtMs, done }) : null;
    await this.#run(endScript, account, [namedArgument({ id, made: done.length, outcome, maxOutcomes })]);
  }

  /** Pending intents. */
  async open(account: string): Promise<string[]> {
    const { redis, prefix } = this.#options;
    return await redis.hkeys(intakeKeys(prefix, account).intents).catch(throwUnavailable);
  }

  async #run(script: Script, account: string, args: readonly (string | number)[]): Promise<unknown> {
    const { redis, prefix } = this.#options;
    return await script.run(redis, intakeKeys(prefix, account).declared, args).catch(throwUnavailable);
  }
}

function known(id: string, state: string | undefined, text: string): { intent: Intent } | { outcome: IntentOutcome } {
  const content: unknown = parsePlainJson(text);
  return state === 'ended' ? { outcome: { id, ...storedOutcome.parse(content) } } : { intent: { id, ...storedIntent.parse(content) } };
}
