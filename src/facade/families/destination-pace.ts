import { z } from 'zod';
import { canonicalJson } from '../../core/canonical-json.ts';
import { PosthornError } from '../../core/errors.ts';
import { kinds, type SpecInputOf, type SpecOf } from '../../resources/kinds.ts';
import type { Call } from '../operation.ts';

/** How fast and how often a destination gets deliveries: `throttle` and `retryPolicy` of the API. */

type Spec = SpecOf<'Destination'>;
type SpecInput = SpecInputOf<'Destination'>;

const throttle = kinds.Destination.spec.shape.throttle.unwrap().shape;
const policySchema = kinds.Destination.spec.shape.retryPolicy.unwrap();
const policy = policySchema.shape;

export const throttleBody = z.strictObject({
  mode: throttle.mode.unwrap().optional(),
  rateLimit: throttle.rateLimit.unwrap().nullable().optional(),
  rateUnit: throttle.rateUnit.unwrap().nullable().optional(),
  maxConcurrency: throttle.maxConcurrency.unwrap().nullable().optional(),
  queueLimit: throttle.queueLimit.unwrap().nullable().optional(),
});

export const throttleRecord = z.object({
  mode: throttle.mode.unwrap(),
  rateLimit: z.int().nullable(),
  rateUnit: throttle.rateUnit.unwrap().nullable(),
  maxConcurrency: z.int().nullable(),
  queueLimit: z.int().nullable(),
});

/** Fields that the mode does not use are null (API document, "Throttle"). */
export function throttleToRecord(value: Spec['throttle']): z.input<typeof throttleRecord> {
  const mode = value?.mode ?? 'off';
  return {
    mode,
    rateLimit: mode === 'rate' ? (value?.rateLimit ?? null) : null,
    rateUnit: mode === 'rate' ? (value?.rateUnit ?? null) : null,
    maxConcurrency: mode === 'concurrency' ? (value?.maxConcurrency ?? null) : null,
    queueLimit: mode === 'off' ? null : (value?.queueLimit ?? null),
  };
}

/** The whole object is replaced. FORBIDDEN on the free plan for any mode but off. */
export function throttleToSpec(
  sent: z.output<typeof throttleBody> | undefined,
  current: Spec['throttle'],
  call: Call,
): SpecInput['throttle'] {
  if (sent === undefined) return current;
  const mode = sent.mode ?? 'off';
  if (mode === 'off' && current === undefined) return undefined;
  if (mode !== 'off' && mode !== current?.mode && call.caller.organization.plan === 'free') {
    throw new PosthornError('FORBIDDEN', `Throttle mode ${mode} needs a paid plan.`);
  }
  for (const field of neededBy[mode]) {
    if (sent[field] === undefined || sent[field] === null)
      throw new PosthornError('VALIDATION_FAILED', `throttle.${field} is required with mode ${mode}.`);
  }
  return {
    mode,
    rateLimit: sent.rateLimit ?? undefined,
    rateUnit: sent.rateUnit ?? undefined,
    maxConcurrency: sent.maxConcurrency ?? undefined,
    queueLimit: sent.queueLimit ?? undefined,
  };
}

const neededBy = { off: [], rate: ['rateLimit', 'rateUnit'], concurrency: ['maxConcurrency'] } as const;

export const retryPolicyBody = z
  .strictObject({
    maxRetries: policy.maxRetries.unwrap().optional(),
    initialDelay: policy.initialDelayMs.unwrap().optional(),
    maxDelay: policy.maxDelayMs.unwrap().optional(),
    backoffMultiplier: policy.backoffMultiplier.unwrap().optional(),
  })
  .describe('Delays in milliseconds. What is not sent stays.');

export const retryPolicyRecord = z.object({ maxRetries: z.int(), initialDelay: z.int(), maxDelay: z.int(), backoffMultiplier: z.number() });

export function retryPolicyToRecord(value: Spec['retryPolicy']): z.input<typeof retryPolicyRecord> {
  const { maxRetries, initialDelayMs, maxDelayMs, backoffMultiplier } = value ?? policySchema.parse({});
  return { maxRetries, initialDelay: initialDelayMs, maxDelay: maxDelayMs, backoffMultiplier };
}

export function retryPolicyToSpec(
  sent: z.output<typeof retryPolicyBody> | undefined,
  current: Spec['retryPolicy'],
): SpecInput['retryPolicy'] {
  if (sent === undefined) return current;
  const before = current ?? policySchema.parse({});
  const after = {
    maxRetries: sent.maxRetries ?? before.maxRetries,
    initialDelayMs: sent.initialDelay ?? before.initialDelayMs,
    maxDelayMs: sent.maxDelay ?? before.maxDelayMs,
    backoffMultiplier: sent.backoffMultiplier ?? before.backoffMultiplier,
  };
  if (after.maxDelayMs < after.initialDelayMs)
    throw new PosthornError('VALIDATION_FAILED', 'retryPolicy.maxDelay must be at least initialDelay.');
  const isAsBefore = canonicalJson(after) === canonicalJson(before);
  return isAsBefore ? current : after;
}
