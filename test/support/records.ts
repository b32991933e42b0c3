import {
  type DestinationRecord,
  type HttpDestinationRecord,
  type ObjectStoreRecord,
  type OrganizationRecord,
  type RouteRecord,
  recordLayoutVersion,
  type SourceRecord,
  type TransformRecord,
  type WarehouseDestinationRecord,
  type WarehouseRecord,
} from '../../src/core/records.ts';

/** A source `acme/github` without a secret. */
export function sourceRecord(fields: Partial<SourceRecord> = {}): SourceRecord {
  return {
    v: recordLayoutVersion,
    id: 'src_a',
    org: 'org_a',
    orgSlug: 'acme',
    slug: 'github',
    name: 'GitHub',
    provider: 'github',
    signingSecrets: [],
    rejectInvalidSignatures: false,
    allowedMethods: ['POST'],
    payloadLimitBytes: 256 * 1024,
    enabled: true,
    generation: 1,
    ...fields,
  };
}

/** The transform `trf_a` of `org_a`, by default in JSONata. */
export function transformRecord(code: string, changes: Partial<TransformRecord> = {}): TransformRecord {
  return { v: recordLayoutVersion, id: 'trf_a', org: 'org_a', type: 'jsonata', code, generation: 1, ...changes };
}

/** The organization `org_a`, whose receivers may be on loopback. */
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

/** The route `rte_a` of the source `src_a` to the destination `dst_a`, without a filter. */
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

/** The HTTP destination `dst_a`, with three retries within seconds. */
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

/** The settings of an HTTP destination's record. Throws for any other. */
export function httpSettings(record: DestinationRecord | null | undefined): HttpDestinationRecord['http'] {
  if (record?.type !== 'http') throw new Error('there is no record of an HTTP destination');
  return record.http;
}
