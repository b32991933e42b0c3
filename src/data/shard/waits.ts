/** Why a target is paused, or does not serve: by its letter in Redis (`configure.lua`). */
const pauseLetters = {
  route_disabled: 'r',
  destination_disabled: 'd',
  destination_suspended: 's',
  destination_missing: 'm',
  transform_missing: 't',
  endpoint_disabled: 'e',
  application_disabled: 'a',
} as const;

/** Further waits of a message: by its token in Redis (`includes/wait.lua`). */
const otherTokens = {
  circuit_open: '!',
  scheduled: 'at',
  retry: 'due',
  rate_limit: 'rate',
  concurrency: 'lease',
  application_rate_limit: 'shared',
  batch: 'batch',
  earlier_message: 'order',
  capacity: 'cap',
  queue: 'queue',
} as const;

export const pauseReasons = keysOf(pauseLetters);
export type PauseReason = keyof typeof pauseLetters;
export type WaitReason = PauseReason | keyof typeof otherTokens;

/** All of them, as the API documents them. */
export const waitReasons = [...keysOf(pauseLetters), ...keysOf(otherTokens)] as const;

/** Waits of messages to webhook endpoints. */
export const webhookWaitReasons = [
  'endpoint_disabled',
  'application_disabled',
  'circuit_open',
  'scheduled',
  'retry',
  'rate_limit',
  'application_rate_limit',
  'earlier_message',
  'capacity',
  'queue',
] as const satisfies readonly WaitReason[];

export type WebhookWaitReason = (typeof webhookWaitReasons)[number];

/** Wait of a message; `untilMs` null: it is unknown for how long. */
export interface Wait {
  reason: WaitReason;
  untilMs: number | null;
}

export function pauseLetter(reason: PauseReason | null): string {
  return reason === null ? '' : pauseLetters[reason];
}

const reasonsByToken: ReadonlyMap<string, WaitReason> = new Map([
  ...keysOf(pauseLetters).map((reason) => [`p${pauseLetters[reason]}`, reason] as const),
  ...keysOf(otherTokens).map((reason) => [otherTokens[reason], reason] as const),
]);

/** Parses a token. Returns null for `''`: the message does not wait. `isForWebhook` decides the meaning of a pause without a recorded reason. */
export function waitOf(token: string, untilText: string, isForWebhook: boolean): Wait | null {
  if (token === '') return null;
  const unknown = isForWebhook ? 'endpoint_disabled' : 'destination_disabled';
  const reason = reasonsByToken.get(token) ?? (token === 'p' ? unknown : 'queue');
  return { reason, untilMs: untilText === '' ? null : Number(untilText) };
}

/** Waits of an endpoint's message. */
export function webhookWaitReason(reason: WaitReason): WebhookWaitReason {
  for (const each of webhookWaitReasons) if (each === reason) return each;
  return 'queue';
}

function keysOf<T extends Record<string, string>>(of: T): (keyof T & string)[] {
  return Object.keys(of);
}
