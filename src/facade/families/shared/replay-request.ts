import type { ReplayRequest } from '../../../data/shard/messages.ts';
import type { Call } from '../../http/operation.ts';

/** What a replay call needs: once per Idempotency-Key, within what the organization may queue in a month. */
export function replayRequest({ caller, idempotency }: Pick<Call, 'caller' | 'idempotency'>): ReplayRequest {
  return { monthlyMessages: caller.organization.monthlyMessages, mark: idempotency?.mark ?? null };
}
