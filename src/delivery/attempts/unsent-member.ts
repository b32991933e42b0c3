import type { BatchMember, UnsentMember } from '../../data/queue/delivery-queue.ts';
import type { StoredEvent } from '../../data/shard/event-text.ts';
import type { Unsent } from './transformed-event.ts';

/** Why an event is not written to a warehouse; null: it is. */
export function tooLargeToWrite({ chunks }: Pick<StoredEvent, 'chunks'>): Unsent | null {
  if (chunks === undefined) return null;
  const reason = `the payload has ${chunks.bytes} bytes, and warehouses take up to 1 MiB`;
  return { type: 'unsent', status: 'transform_failed', reason, tookMs: 0 };
}

/** How a member of a batch ends that has come to nothing; null: its payload is gone. */
export function unsentMember({ messageKey }: BatchMember, unsent: Unsent | null): UnsentMember {
  if (unsent?.type === 'unsent') return { messageKey, status: unsent.status, reason: unsent.reason };
  return { messageKey, status: 'dlq', reason: unsent?.reason ?? 'payload_not_found' };
}
