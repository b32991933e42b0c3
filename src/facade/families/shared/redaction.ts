import { looksMasked } from '../../../core/masking.ts';

/** Placeholder in a portable document for a credential that it omits, and in an imported destination that waits for its own. */
export const redacted = '***REDACTED***' as const;

/** Whether the fields show that there is a credential, and not which. */
export function isRedacted(config: Readonly<Record<string, string | null | undefined>> | typeof redacted | null | undefined): boolean {
  if (config === redacted) return true;
  return Object.values(config ?? {}).some((value) => typeof value === 'string' && (value === redacted || looksMasked(value)));
}

/** Whether what is sent to the new URL goes in clear, and what was sent to the old one did not. */
export function losesTls(before: string | undefined, after: string): boolean {
  return URL.parse(before ?? '')?.protocol === 'https:' && URL.parse(after)?.protocol === 'http:';
}
