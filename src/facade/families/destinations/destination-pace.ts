import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { PosthornError } from '../../../core/errors.ts';
import { kinds, type SpecInputOf, type SpecOf } from '../../../resources/kinds.ts';
import { isPaidPlan } from '../../../resources/plan-gates.ts';
import type { Call } from '../../http/operation.ts';
import { shownField, specField, textOf } from '../../records/spec-field.ts';

/** How fast and how often a destination gets deliveries: `throttle` and `retryPolicy` of the API. */

type Spec = SpecOf<'Destination'>;
type SpecInput = SpecInputOf<'Destination'>;

const throttle = kinds.Destination.spec.shape.throttle.unwrap().shape;
const policySchema = kinds.Destination.spec.shape.retryPolicy.unwrap();
const policy = policySchema.shape;

export const throttleBody = z
  .strictObject({
    mode: specField(throttle.mode, 'What is limited: nothing (off), deliveries in a time (rate) or at one time (concurrency).'),
    rateLimit: throttle.rateLimit.unwrap().nullable().optional().describe(textOf(throttle.rateLimit)),
    rateUnit: throttle.rateUnit.unwrap().nullable().optional().describe(textOf(throttle.rateUnit)),
    strict: throttle.strict.unwrap().nullable().optional().describe(textOf(throttle.strict)),
    maxConcurrency: throttle.maxConcurrency.unwrap().nullable().optional().describe(textOf(throttle.maxConcurrency)),
    queueLimit: throttle.queueLimit.unwrap().nullable().optional().describe(textOf(throttle.queueLimit)),
  })
  .meta({
    id: 'ThrottleBody',
    description:
      'What is not sent stays. Without mode, only fields that the mode of the destination uses (off, when it is made) are taken.',
  });

export const throttleRecord = z
  .object({
    mode: shownField(throttle.mode),
    rateLimit: z.int().nullable().describe('Deliveries per rateUnit; null unless mode is rate.'),
    rateUnit: throttle.rateUnit.unwrap().nullable().describe('Unit of rateLimit; null unless mode is rate.'),
    strict: throttle.strict.unwrap().nullable().describe('Whether they go out evenly; null unless mode is rate.'),
    maxConcurrency: z.int().nullable().describe('Deliveries at one time; null unless mode is concurrency.'),
    queueLimit: z.int().nullable().describe('Deliveries that may wait or be under way; null: any number.'),
  })
  .meta({ id: 'Throttle', description: 'Rate at which deliveries are sent.' });

const usedBy = {
  off: [],
  rate: ['rateLimit', 'rateUnit', 'strict', 'queueLimit'],
  concurrency: ['maxConcurrency', 'queueLimit'],
} as const satisfies Record<Mode, LimitField[]>;
const neededBy = { off: [], rate: ['rateLimit', 'rateUnit'], concurrency: ['maxConcurrency'] } as const satisfies Record<
  Mode,
  LimitField[]
>;
const limitFields = ['rateLimit', 'rateUnit', 'strict', 'maxConcurrency', 'queueLimit'] as const;
type LimitField = (typeof limitFields)[number];
type Mode = z.output<typeof throttleRecord>['mode'];

function isUsed(field: LimitField, mode: Mode): boolean {
  const used: readonly LimitField[] = usedBy[mode];
  return used.includes(field);
}

/** Fields that the mode does not use are null. */
export function throttleToRecord(value: Spec['throttle']): z.input<typeof throttleRecord> {
  const mode = value?.mode ?? 'off';
  return {
    mode,
    rateLimit: isUsed('rateLimit', mode) ? (value?.rateLimit ?? null) : null,
    rateUnit: isUsed('rateUnit', mode) ? (value?.rateUnit ?? null) : null,
    strict: isUsed('strict', mode) ? (value?.strict ?? false) : null,
    maxConcurrency: isUsed('maxConcurrency', mode) ? (value?.maxConcurrency ?? null) : null,
    queueLimit: isUsed('queueLimit', mode) ? (value?.queueLimit ?? null) : null,
  };
}

/**
 * Merges sent fields over those of the record. VALIDATION_FAILED for a field that the mode needs and does not have, and for one that a
 * mode that was not sent does not use; FORBIDDEN on the free plan for any mode but off.
 */
export function throttleToSpec(
  sent: z.output<typeof throttleBody> | undefined,
  current: Spec['throttle'],
  call: Call,
): SpecInput['throttle'] {
  if (sent === undefined) return current;
  const before = throttleToRecord(current);
  const mode = sent.mode ?? before.mode;
  const unused = limitFields.find((field) => (sent[field] ?? null) !== null && !isUsed(field, mode));
  if (sent.mode === undefined && unused !== undefined)
    throw new PosthornError('VALIDATION_FAILED', `throttle.${unused} is not used with mode ${mode}: send throttle.mode with it.`);
  if (mode !== 'off' && mode !== before.mode && !isPaidPlan(call.caller.organization.plan)) {
    throw new PosthornError('FORBIDDEN', `Throttle mode ${mode} needs a paid plan.`);
  }
  const wanted = {
    mode,
    rateLimit: sent.rateLimit === undefined ? before.rateLimit : sent.rateLimit,
    rateUnit: sent.rateUnit === undefined ? before.rateUnit : sent.rateUnit,
    strict: (sent.strict === undefined ? before.strict : sent.strict) || null,
    maxConcurrency: sent.maxConcurrency === undefined ? before.maxConcurrency : sent.maxConcurrency,
    queueLimit: sent.queueLimit === undefined ? before.queueLimit : sent.queueLimit,
  };
  for (const field of neededBy[mode])
    if (wanted[field] === null) throw new PosthornError('VALIDATION_FAILED', `throttle.${field} is required with mode ${mode}.`);
  const used = limitFields.filter((field) => isUsed(field, mode)).map((field) => [field, wanted[field] ?? undefined]);
  const after = { ...(mode === current?.mode && current), mode, ...Object.fromEntries(used) };
  const isAsBefore = canonicalJson(throttleToRecord(after)) === canonicalJson(before);
  return isAsBefore ? current : after;
}

export const retryPolicyBody = z
  .strictObject({
    maxRetries: specField(policy.maxRetries),
    initialDelay: specField(policy.initialDelayMs),
    maxDelay: specField(policy.maxDelayMs),
    backoffMultiplier: specField(policy.backoffMultiplier),
    delays: policy.delaysMs
      .unwrap()
      .nullable()
      .optional()
      .describe(`${textOf(policy.delaysMs)} Null: the other fields are used.`),
  })
  .meta({
    id: 'RetryPolicyBody',
    description:
      'When failed deliveries are tried again. What is not sent stays. A policy with all of the other fields, one of them changed, and without delays removes the delays. While there are delays, a change of fewer fields is refused.',
  });

export const retryPolicyRecord = z
  .object({
    maxRetries: z.int().describe(textOf(policy.maxRetries)),
    initialDelay: z.int().describe(textOf(policy.initialDelayMs)),
    maxDelay: z.int().describe(textOf(policy.maxDelayMs)),
    backoffMultiplier: z.number().describe(textOf(policy.backoffMultiplier)),
    delays: z
      .array(z.int())
      .nullable()
      .describe(`${textOf(policy.delaysMs)} Null: the other fields are used.`),
  })
  .meta({ id: 'RetryPolicy', description: 'When failed deliveries are tried again.' });

const growingFields = ['maxRetries', 'initialDelay', 'maxDelay', 'backoffMultiplier'] as const;

export function retryPolicyToRecord(value: Spec['retryPolicy']): z.input<typeof retryPolicyRecord> {
  const { maxRetries, initialDelayMs, maxDelayMs, backoffMultiplier, delaysMs = null } = value ?? policySchema.parse({});
  return { maxRetries, initialDelay: initialDelayMs, maxDelay: maxDelayMs, backoffMultiplier, delays: delaysMs };
}

/** Merges what is sent into the current policy. VALIDATION_FAILED for a change of a field that the delays, which stay, make ineffective. */
export function retryPolicyToSpec(
  sent: z.output<typeof retryPolicyBody> | undefined,
  current: Spec['retryPolicy'],
): SpecInput['retryPolicy'] {
  if (sent === undefined) return current;
  const before = current ?? policySchema.parse({});
  const shown = retryPolicyToRecord(before);
  const unused = growingFields.find((field) => sent[field] !== undefined && sent[field] !== shown[field]);
  // A client, or an export, without delays sends the whole policy.
  const isOther = unused !== undefined && growingFields.every((field) => sent[field] !== undefined);
  const keepsDelays = sent.delays === undefined && !isOther;
  const delaysMs = keepsDelays ? before.delaysMs : (sent.delays ?? undefined);
  if (keepsDelays && delaysMs !== undefined && unused !== undefined)
    throw new PosthornError(
      'VALIDATION_FAILED',
      `retryPolicy.${unused} is not used beside retryPolicy.delays: send delays, or null, with it.`,
    );
  const after = {
    maxRetries: sent.maxRetries ?? before.maxRetries,
    initialDelayMs: sent.initialDelay ?? before.initialDelayMs,
    maxDelayMs: sent.maxDelay ?? before.maxDelayMs,
    backoffMultiplier: sent.backoffMultiplier ?? before.backoffMultiplier,
    ...(delaysMs !== undefined && { delaysMs }),
  };
  if (delaysMs === undefined && after.maxDelayMs < after.initialDelayMs)
    throw new PosthornError('VALIDATION_FAILED', 'retryPolicy.maxDelay must be at least initialDelay.');
  const isAsBefore = canonicalJson(after) === canonicalJson(before);
  return isAsBefore ? current : after;
}

const expiry = kinds.Destination.spec.shape.expiresAfterSeconds;

export const expiryRecord = expiry
  .unwrap()
  .nullable()
  .describe(`${textOf(expiry)} Null: never.`);
export const expiryBody = expiryRecord.optional();
