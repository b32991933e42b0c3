import type { BatchMember, UnsentMember } from '../data/delivery-queue.ts';
import type { Unsent } from './transformed-event.ts';

/** How a member of a batch ends that has come to nothing; null: its payload is gone. */
export function unsentMember({ messageKey }: BatchMember, unsent: Unsent | null): UnsentMember {
  if (unsent?.type === 'unsent') return { messageKey, status: unsent.status, reason: unsent.reason };
  return { messageKey, status: 'dlq', reason: unsent?.reason ?? 'payload_not_found' };
}
