import { createHash } from 'node:crypto';
import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import { idempotentAnswerSealingContext } from '../../core/sealing-contexts.ts';
import type { IdempotencyClaim } from '../../data/intake/idempotent-answers.ts';
import type { Caller } from './caller.ts';
import { toPosthornError } from './error-response.ts';
import type { FacadeServices } from './services.ts';

/** An answer as it is sent, apart from headers that every answer has of its own. */
export interface Answer {
  status: number;
  headers: Record<string, string | string[]>;
  /** null: none. */
  body: string | null;
}

/** The context of an operation that is carried out under an idempotency key. */
export interface Idempotency {
  /** Left on what is made, the same for equal requests with the same key. */
  mark: string;
  /** An equal request was begun before and aborted: its objects carry the mark. */
  isTakenOver: boolean;
}

const keptAnswer = z.object({
  status: z.int(),
  headers: z.record(z.string(), z.union([z.string(), z.array(z.string())])),
  body: z.string().nullable(),
});

interface KeyedRequest {
  services: FacadeServices;
  caller: Caller;
  key: string;
  request: string;
  /** See `OperationDefinition`. */
  answersAgain: boolean;
}

const keyPattern = /^[\x21-\x7e]{1,255}$/;
const largestAnswer = 1024 * 1024;
const tooLarge = '';

/**
 * The answer of `perform`, which runs once per key and organization in 24 h: later equal requests get its answer, sealed
 * meanwhile. Only answers of success are kept: what failed may be tried again with the same key, and what is not known to have changed nothing is then completed.
 * With `answersAgain`, `perform` gives the first answer whenever it runs again; where that is not kept, it does.
 * IDEMPOTENCY_CONFLICT for another request with the key, and while the first is under way; RATE_LIMITED for a new key where no more can be kept;
 * UNAVAILABLE without Redis.
 */
export async function answerOnce(
  { services, caller, key, request, answersAgain }: KeyedRequest,
  perform: (idempotency: Idempotency) => Promise<Answer>,
): Promise<Answer> {
  if (!keyPattern.test(key)) throw new PosthornError('VALIDATION_FAILED', 'Idempotency-Key must be 1 to 255 visible ASCII characters.');
  const { idempotentAnswers, keyring, logger } = services;
  const org = caller.organization.id;
  const context = idempotentAnswerSealingContext(org, key);
  const mark = createHash('sha256')
    .update(JSON.stringify([key, request]))
    .digest('base64url');
  const opened = (sealed: string): string | null => {
    try {
      return keyring.open(sealed, context);
    } catch (error) {
      logger.warn({ err: error }, 'the stored response of an Idempotency-Key cannot be decrypted');
      return null;
    }
  };
  const outcome = await idempotentAnswers.claim(org, key, request, caller.credential.id);
  switch (outcome.state) {
    case 'answered': {
      const text = outcome.answer === tooLarge ? null : opened(outcome.answer);
      if (text !== null) return replayed(keptAnswer.parse(parsePlainJson(text)));
      if (answersAgain) return replayed(await perform({ mark, isTakenOver: true }));
      const why = outcome.answer === tooLarge ? 'is too large to be kept' : 'does not open with the encryption keys that there are';
      throw conflict(`The request was carried out, but its answer ${why}.`);
    }
    case 'underWay':
      throw conflict('The first request with this Idempotency-Key is still under way.', 1);
    case 'other':
      throw conflict('This Idempotency-Key was used for another request.');
    case 'full':
      if (answersAgain) return await perform({ mark, isTakenOver: false });
      throw new PosthornError(
        'RATE_LIMITED',
        'No more answers can be kept for Idempotency-Keys of the credential, or of its organization, in 24 hours: send the request later, or without one.',
        { retryAfterSeconds: Math.ceil(outcome.endsInMs / 1000) },
      );
    case 'claimed':
  }
  const { claim, isTakenOver } = outcome;
  const stopRenewing = keepRenewing(claim, services);
  try {
    const answer = await perform({ mark, isTakenOver });
    const text = JSON.stringify(answer satisfies z.input<typeof keptAnswer>);
    // Without it the claim runs out: the answer itself is no worse for that.
    const kept = text.length > largestAnswer ? tooLarge : keyring.seal(text, context);
    await claim.keep(kept, { isSpare: answersAgain }).catch((error: unknown) => {
      logger.warn({ err: error }, 'the response to a request with an Idempotency-Key was not stored');
    });
    return answer;
  } catch (error) {
    const hasChangedNothing = toPosthornError(error).status < 500;
    await (hasChangedNothing ? claim.release() : claim.abandon()).catch(() => {});
    throw error;
  } finally {
    stopRenewing();
  }
}

function replayed(answer: Answer): Answer {
  return { ...answer, headers: { ...answer.headers, 'Idempotent-Replayed': 'true' } };
}

function conflict(message: string, retryAfterSeconds?: number): PosthornError {
  return new PosthornError('IDEMPOTENCY_CONFLICT', message, { retryAfterSeconds });
}

/** Imports may take longer than a claim holds. */
function keepRenewing(claim: IdempotencyClaim, { clock, idempotentAnswers: { claimMs } }: FacadeServices): () => void {
  let stop = (): void => {};
  const schedule = (): void => {
    stop = clock.after(claimMs / 3, () => {
      schedule();
      claim.renew(claimMs).catch(() => {});
    });
  };
  schedule();
  return () => stop();
}
