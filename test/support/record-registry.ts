import {
  type HttpDestinationRecord,
  type ObjectStoreRecord,
  type OrganizationRecord,
  type OwnedRecordKind,
  type RecordByKind,
  type RecordKind,
  type RouteRecord,
  recordLayoutVersion,
  type WarehouseDestinationRecord,
  type WarehouseRecord,
} from '../../src/core/records.ts';
import type { RegistryReader, RootRecordKind } from '../../src/data/registry/registry.ts';

/** Records in memory, for tests of what reads them. `put` and `remove` tell the listeners, as a change stream does. */
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

  async derive<T>(key: string, make: () => Promise<{ value: T; dependsOn: string[] }>): Promise<T> {
    if (!this.#derived.has(key)) this.#derived.set(key, (await make()).value);
    return this.#derived.get(key) as T;
  }

  onChange(listener: (changeKey: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  sourceIdBySlug = async (): Promise<null> => null;
  routeIdsOfSource = async (): Promise<string[]> => [];
  channelIdsOfOrganization = async (org: string): Promise<string[]> =>
    [...this.#records.values()].flatMap((record) => ('channel' in record && record.org === org ? [record.id] : []));
  archivingOrganizations = async (): Promise<string[]> =>
    [...this.#records.values()].flatMap((record) => ('archive' in record && record.archive !== undefined ? [record.id] : []));
  eventTypeIdByName = async (): Promise<null> => null;
  apiKeyIdByHash = async (): Promise<null> => null;
  organizationIdBySlug = async (): Promise<null> => null;

  #changed(changeKey: string): void {
    this.#derived.clear();
    for (const listener of this.#listeners) listener(changeKey);
  }
}

export function organizationRecord(changes: Partial<OrganizationRecord> = {}): OrganizationRecord {
  return {
    v: recordLayoutVersion,
    id: 'org_a',
    slug: 'a',
    namespace: 'a',
    plan: 'enterprise',
    payloadLimitBytes: 1_048_576,
    egress: { allowedCidrs: ['127.0.0.0/8', '::1/128'], allowedHosts: [] },
    generation: 1,
    ...changes,
  };
}

export function routeRecord(changes: Partial<RouteRecord> = {}): RouteRecord {
  return {
    v: recordLayoutVersion,
    id: 'rte_a',
    org: 'org_a',
    slug: 'a',
    name: 'a',
    sourceId: 'src_a',
    priority: 0,
    enabled: true,
    filter: null,
    destinations: [{ id: 'dst_a', shard: 0 }],
    expectedResponse: null,
    failover: { destinations: [], afterAttempts: 3 },
    circuit: { failureThreshold: 5, cooldownSeconds: 300, probeSuccessThreshold: 2 },
    generation: 1,
    ...changes,
  };
}

/** A bucket or container as destination `dst_a`. */
export function warehouseRecord(
  store: ObjectStoreRecord,
  warehouse: Partial<WarehouseRecord> = {},
  changes: Partial<Pick<WarehouseDestinationRecord, 'id' | 'org' | 'generation' | 'throttle' | 'retryPolicy' | 'enabled'>> = {},
): WarehouseDestinationRecord {
  const { http: _, type: __, ...common } = destinationRecord({ url: 'https://unused.example' });
  return {
    ...common,
    ...store,
    warehouse: { prefix: '', fileFormat: 'jsonl', partitionBy: 'date', fieldMapping: null, ...warehouse },
    ...changes,
  };
}

export function destinationRecord(
  http: Partial<HttpDestinationRecord['http']> & { url: string },
  changes: Partial<HttpDestinationRecord> = {},
): HttpDestinationRecord {
  return {
    v: recordLayoutVersion,
    id: 'dst_a',
    org: 'org_a',
    slug: 'a',
    name: 'a',
    type: 'http',
    enabled: true,
    shard: 0,
    http: { method: 'POST', headers: [], auth: { type: 'none' }, timeoutMs: 30_000, signingSecrets: [], ...http },
    throttle: { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null },
    retryPolicy: { maxRetries: 3, initialDelayMs: 100, maxDelayMs: 1000, backoffMultiplier: 2 },
    generation: 1,
    ...changes,
  };
}
