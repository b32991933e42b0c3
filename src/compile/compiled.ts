/** Why a resource that the API server took cannot be put in force; becomes its condition Accepted=False. */
export interface Refusal {
  /** CamelCase, stable. */
  reason: string;
  message: string;
}

/** What compiling a resource gives: the record to publish, or why there is none. */
export type Compiled<Record> = { record: Record; refusal?: undefined } | { record?: undefined; refusal: Refusal };

export function refuse(reason: string, message: string): { refusal: Refusal } {
  return { refusal: { reason, message } };
}
