import type { ServedKind } from '../http/services.ts';

/** Records a write under the lock of the organization: the next holder waits until its caches show it (`withOrganizationLock`). */
export type RecordWrite = (
  object: { kind: ServedKind; metadata: { namespace?: string; name: string; uid: string; generation?: number } },
  isDeleted?: boolean,
) => void;
