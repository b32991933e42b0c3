import type { OrganizationRecord } from '../core/records.ts';

export type RetainedRecord = OrganizationRecord & Required<Pick<OrganizationRecord, 'retained'>>;

/**
 * Organizations that were deleted and whose data is kept, as the registry has them: read once by a leader, and noted with each change. What is in
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
