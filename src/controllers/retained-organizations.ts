import type { OrganizationRecord, RecordKind } from '../core/records.ts';
import { kinds, type PosthornKind } from '../resources/kinds.ts';

export type RetainedRecord = OrganizationRecord & Required<Pick<OrganizationRecord, 'retained'>>;

/** By these events come in, requests are made, and jobs and replays are run: their records go as soon as the organization does. */
const withdrawn: ReadonlySet<RecordKind> = new Set(['source', 'apiKey', 'cronJob', 'replay']);

export function isWithdrawn(recordKind: RecordKind): boolean {
  return withdrawn.has(recordKind);
}

/** Whether records of the kind stay while their organization is retained. */
export function staysWhileRetained(kind: PosthornKind): boolean {
  const { recordKind } = kinds[kind];
  return recordKind === null || !isWithdrawn(recordKind);
}

/**
 * Organizations that were deleted and whose data is kept, as the registry has them: read once by a leader, and updated with each change. What is in
 * their namespaces keeps its records.
 */
export class RetainedOrganizations {
  readonly #byId = new Map<string, RetainedRecord>();

  note(record: OrganizationRecord): void {
    if (isRetained(record)) this.#byId.set(record.id, record);
    else this.#byId.delete(record.id);
  }

  forget(id: string): void {
    this.#byId.delete(id);
  }

  get(id: string): RetainedRecord | undefined {
    return this.#byId.get(id);
  }

  /** Whether the namespace is that of such an organization. */
  isIn(namespace: string): boolean {
    return this.#byId.values().some((record) => record.namespace === namespace);
  }

  /** The one of this name and namespace that was retained last. */
  find(slug: string, namespace: string): RetainedRecord | undefined {
    return this.#byId
      .values()
      .filter((record) => record.slug === slug && record.namespace === namespace)
      .reduce<RetainedRecord | undefined>(
        (last, each) => (last === undefined || each.retained.atMs > last.retained.atMs ? each : last),
        undefined,
      );
  }
}

export function isRetained(record: OrganizationRecord): record is RetainedRecord {
  return record.retained !== undefined;
}
