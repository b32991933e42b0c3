import type { Zone } from '../ui/time.tsx';

/** When an event is delivered, as it is typed. */
export interface DeliveryTime {
  kind: 'now' | 'delay' | 'at';
  amount: string;
  unit: 'seconds' | 'minutes' | 'hours' | 'days';
  /** As a field of the browser has it, in the zone of the reader. */
  at: string;
}

export const deliveredNow: DeliveryTime = { kind: 'now', amount: '1', unit: 'hours', at: '' };

export const secondsOf = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 };

/** Maximum of the API. */
export const longestDelaySeconds = 7 * secondsOf.days;

/** As the API takes it; null: it is not complete. */
export function sentTime({ kind, amount, unit, at }: DeliveryTime, zone: Zone): { delaySeconds?: number; deliverAt?: string } | null {
  if (kind === 'now') return {};
  if (kind === 'delay') return /^\d{1,9}$/.test(amount) ? { delaySeconds: Number(amount) * secondsOf[unit] } : null;
  const time = new Date(zone === 'UTC' ? `${at}Z` : at);
  return Number.isNaN(time.getTime()) ? null : { deliverAt: time.toISOString() };
}
