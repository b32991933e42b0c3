import type { ReplayRequest } from '../../../data/shard/messages.ts';
import type { Call } from '../../http/operation.ts';

/** Returns the options of a replay: it runs once per Idempotency-Key, and counts against the monthly quota. */
export function replayRequest({ caller, idempotency }: Pick<Call, 'caller' | 'idempotency'>): ReplayRequest {
  return { monthlyMessages: caller.organization.monthlyMessages, mark: idempotency?.mark ?? null };
}
