import type { ServedKind } from '../http/services.ts';

/** Notes what was written under the lock of the organization, so that its next holder waits until its caches show it (`exclusively`). */
export type NoteWrite = (
  object: { kind: ServedKind; metadata: { namespace?: string; name: string; uid: string; generation?: number } },
  isDeleted?: boolean,
) => void;
