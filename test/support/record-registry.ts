import type { OwnedRecordKind, RecordByKind, RecordKind, SourceRecord } from '../../src/core/records.ts';
import type { RegistryReader, RootRecordKind } from '../../src/data/registry/registry.ts';

/** Records in memory, for tests of their readers. `put` and `remove` notify the listeners, as a change stream does. */
export class RecordRegistry implements RegistryReader {
  readonly #records = new Map<string, RecordByKind[RecordKind]>();
  readonly #derived = new Map<string, unknown>();
  readonly #listeners = new Set<(changeKey: string) => void>();

  put<K extends RecordKind>(kind: K, record: RecordByKind[K]): void {
    this.#records.set(`${kind}:${record.id}`, record);
    this.#changed(`${kind}:${record.id}`);
  }

  remove(kind: RecordKind, id: string): void {
    this.#records.delete(`${kind}:${id}`);
    this.#changed(`${kind}:${id}`);
  }

  /** As a reader that may have missed changes. */
  flush(): void {
    this.#changed('*');
  }

  async get<K extends RootRecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null> {
    return this.#record(kind, id);
  }

  async getOf<K extends OwnedRecordKind>(org: string, kind: K, id: string): Promise<RecordByKind[K] | null> {
    const record = this.#record(kind, id);
    return record?.org === org ? record : null;
  }

  async getOfAny<K extends OwnedRecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null> {
    return this.#record(kind, id);
  }

  #record<K extends RecordKind>(kind: K, id: string): RecordByKind[K] | null {
    // The key names the kind, so the record is of that kind.
    return (this.#records.get(`${kind}:${id}`) as RecordByKind[K] | undefined) ?? null;
  }

  async ownerOf(id: string): Promise<string | null> {
    const found = [...this.#records.values()].find((record) => record.id === id);
    return found === undefined || !('org' in found) ? null : found.org;
  }

  async derive<T>(key: string, make: () => Promise<{ value: T; dependsOn: string[] }>): Promise<T> {
    if (!this.#derived.has(key)) this.#derived.set(key, (await make()).value);
    return this.#derived.get(key) as T;
  }

  onChange(listener: (changeKey: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  sourceIdBySlug = async (orgSlug: string, slug: string): Promise<string | null> =>
    this.#sources().find((record) => record.orgSlug === orgSlug && record.slug === slug)?.id ?? null;
  routeIdsOfSource = async (sourceId: string): Promise<string[]> =>
    [...this.#records.values()].flatMap((record) => ('failover' in record && record.sourceId === sourceId ? [record.id] : []));
  channelIdsOfOrganization = async (org: string): Promise<string[]> =>
    [...this.#records.values()].flatMap((record) => ('channel' in record && record.org === org ? [record.id] : []));
  ownSourceIdsOfOrganization = async (org: string): Promise<string[]> =>
    this.#sources().flatMap((record) => (record.org === org && record.provider === 'posthorn' && record.enabled ? [record.id] : []));
  archivingOrganizations = async (): Promise<string[]> =>
    [...this.#records.values()].flatMap((record) => ('archive' in record && record.archive !== undefined ? [record.id] : []));
  eventTypeIdByName = async (): Promise<null> => null;
  apiKeyIdByHash = async (): Promise<null> => null;
  organizationIdBySlug = async (): Promise<null> => null;
  organizationSlugs = async (): Promise<string[]> => [];

  #sources(): SourceRecord[] {
    return [...this.#records.values()].filter((record) => 'provider' in record);
  }

  #changed(changeKey: string): void {
    this.#derived.clear();
    for (const listener of this.#listeners) listener(changeKey);
  }
}
