/** Why a target is paused, or does not serve, by its letter in Redis. */
const pauseLetters = {
  route_disabled: 'r',
  destination_disabled: 'd',
  destination_suspended: 's',
  destination_missing: 'm',
  destination_left_route: 'l',
  transform_missing: 't',
  endpoint_disabled: 'e',
  application_disabled: 'a',
} as const;

export type PauseReason = keyof typeof pauseLetters;

export function pauseLetter(reason: PauseReason | null): string {
  return reason === null ? '' : pauseLetters[reason];
}

export const pauseReasons = Object.keys(pauseLetters) as PauseReason[];

export function pauseReasonOf(letter: string): PauseReason | null {
  return pauseReasons.find((reason) => pauseLetters[reason] === letter) ?? null;
}
