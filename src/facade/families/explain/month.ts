import { endOfMonthMs, monthOf } from '../../../data/intake/intake.ts';
import type { Call } from '../../http/operation.ts';
import { isoTime } from '../../records/record-fields.ts';
import { type Advice, counted, holds, type Step } from './explanation.ts';

/** Remaining messages of the organization in this month; null: it may queue any number. */
export async function monthOfOrganization({ services, caller }: Call): Promise<{ step: Step; advice: Advice[] } | null> {
  const { id: org, monthlyMessages } = caller.organization;
  if (monthlyMessages === null) return null;
  const nowMs = services.clock.now();
  const { messages: left } = await services.intake.remainder({ org, receivedAtMs: nowMs, mark: null, windowMs: 0, monthlyMessages });
  const month = monthOf(nowMs);
  const endsAt = isoTime(endOfMonthMs(nowMs));
  const data = { month, monthlyMessages, left, endsAt };
  const text = `The organization may still queue ${counted(left, 'message')} in the month ${month} (UTC), of ${counted(monthlyMessages, 'message')}.`;
  if (left > 0) return { step: holds('month', text, data), advice: [] };
  return {
    step: holds('month', `${text} Events that make messages are refused until ${endsAt}.`, data),
    advice: [{ text: `Raise spec.limits.monthlyMessages of the Organization, or its plan, or wait until ${endsAt}.` }],
  };
}
