/** Why a resource that the API server took cannot be put in force; becomes its condition Accepted=False. */
export interface Refusal {
  /** CamelCase, stable. */
  reason: string;
  message: string;
}

/** Result of compiling a resource: the record to publish, or why there is none. */
export type Compiled<Record> = { record: Record; refusal?: undefined } | { record?: undefined; refusal: Refusal };

/** A record may come with a refusal: what the plan does not have is suspended, and nothing of it is enabled. */
export type CompiledByPlan<Record extends { enabled: boolean }> = Compiled<Record> | { record: Record; refusal: Refusal };

/** `beyondPlan`: what the plan does not have; null: nothing. */
export function suspendable<Record extends { enabled: boolean }>(record: Record, beyondPlan: string | null): CompiledByPlan<Record> {
  if (beyondPlan === null) return { record };
  return { record: { ...record, enabled: false }, ...refuse('PlanTooLow', beyondPlan) };
}

export function refuse(reason: string, message: string): { refusal: Refusal } {
  return { refusal: { reason, message } };
}
