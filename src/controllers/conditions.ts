import type { Condition } from '../resources/metadata.ts';
import { disabledReason } from './disabled.ts';

/** A condition without its times. */
export interface Finding {
  status: Condition['status'];
  /** CamelCase, stable. */
  reason: string;
  message: string;
}

export interface Verdict {
  accepted: Finding;
  resolvedRefs: Finding;
  programmed: Finding;
  /** Who disabled the object, and when; absent: it is enabled. */
  disabled?: string;
  /** Although ResolvedRefs is not True, the object does its work without what that names. */
  isPartial?: boolean;
  /** Why the object has no effect although it is accepted and programmed; only Ready has it. */
  ineffective?: Finding | undefined;
  /** Nothing but an edit of this very object can help; otherwise an object that is not ready is still being worked on. */
  isStalled: boolean;
}

/** Inputs of the conditions of an object. */
export interface ConditionInputs {
  /** By the type of their condition. */
  findings: readonly (readonly [string, Finding])[];
  ready: Finding;
  /** Warnings about an object that is programmed, by condition type. Such a condition exists only while its warning holds. */
  warnings?: readonly (readonly [string, Finding])[];
  /** As in `Verdict`. */
  isStalled: boolean;
}

/** The conditions that `posthorn-status` owns; any other has another owner. */
export const ownedConditions: ReadonlySet<string> = new Set([
  'Accepted',
  'ResolvedRefs',
  'Programmed',
  'Available',
  'Progressing',
  'Autoscaling',
  'Ready',
  'Stalled',
  'Reconciling',
  'CredentialInClear',
]);

/** The conjunction: the first finding that is not True has the reason. */
export function readiness(findings: readonly Finding[], ready: Finding): Finding {
  return findings.find(({ status }) => status !== 'True') ?? ready;
}

/** The warning about an object whose spec holds credentials in clear; `paths` of their fields. */
export function credentialWarnings(paths: readonly string[]): NonNullable<ConditionInputs['warnings']> {
  if (paths.length === 0) return [];
  const message = `a credential is in clear text in ${paths.join(', ')}: put it into a Secret, and name that in valueSecretRef in place of value`;
  return [['CredentialInClear', { status: 'True', reason: 'LiteralValue', message }]];
}

/** Reason of Ready: the object works, but not with all that it refers to. */
export const partiallyInForce = 'PartiallyInForce';

/** The verdict on a configuration kind. */
export function conditionInputs({
  accepted,
  resolvedRefs,
  programmed,
  disabled,
  ineffective,
  isPartial = false,
  isStalled,
}: Verdict): ConditionInputs {
  const reason = isPartial ? partiallyInForce : 'Ready';
  const message = `the current generation is programmed${isPartial ? `, but not with all that it refers to: ${resolvedRefs.message}` : ''}`;
  const inForce: Finding =
    disabled === undefined
      ? { status: 'True', reason, message }
      : { status: 'True', reason: disabledReason, message: `${disabled}; ${message}` };
  const needed = isPartial ? [accepted, programmed] : [accepted, resolvedRefs, programmed];
  return {
    findings: [
      ['Accepted', accepted],
      ['ResolvedRefs', resolvedRefs],
      ['Programmed', programmed],
    ],
    ready: readiness(ineffective === undefined ? needed : [...needed, ineffective], inForce),
    isStalled,
  };
}

/**
 * The conditions of an object. `lastTransitionTime` stays that of `before` unless the status flips. Stalled,
 * Reconciling and advice are there only while they hold, as kstatus expects.
 */
export function conditionsOf(
  { findings, ready, isStalled, warnings = [] }: ConditionInputs,
  before: readonly Condition[],
  generation: number,
  nowMs: number,
): Condition[] {
  const all: (readonly [string, Finding])[] = [...findings, ['Ready', ready]];
  if (ready.status !== 'True') all.push([isStalled ? 'Stalled' : 'Reconciling', { ...ready, status: 'True' }]);
  all.push(...warnings);
  return all.map(([type, { status, reason, message }]) => {
    const last = before.find((condition) => condition.type === type);
    const lastTransitionTime = last?.status === status ? last.lastTransitionTime : timestamp(nowMs);
    return { type, status, reason, message, lastTransitionTime, observedGeneration: generation };
  });
}

/** RFC 3339 in seconds, as the API server's own conditions. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
