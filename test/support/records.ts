import type { DestinationRecord, HttpDestinationRecord, RouteRecord, SourceRecord } from '../../src/core/records.ts';

/** A source `acme/github` without a secret. */
export function sourceRecord(fields: Partial<SourceRecord> = {}): SourceRecord {
  return {
    v: 1,
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

/** A route of that source to one destination, without a filter. */
export function routeRecord(fields: Partial<RouteRecord> = {}): RouteRecord {
  return {
    v: 1,
    id: 'rte_a',
    org: 'org_a',
    slug: 'all',
    name: 'All',
    sourceId: 'src_a',
    priority: 0,
    enabled: true,
    filter: null,
    destinations: [{ id: 'dst_a', shard: 0 }],
    expectedResponse: null,
    failover: { destinations: [], afterAttempts: 3 },
    circuit: { failureThreshold: 5, cooldownSeconds: 300, probeSuccessThreshold: 2 },
    generation: 1,
    ...fields,
  };
}

/** That destination. */
export function destinationRecord(fields: Partial<HttpDestinationRecord> = {}): HttpDestinationRecord {
  return {
    v: 1,
    id: 'dst_a',
    org: 'org_a',
    slug: 'a',
    name: 'A',
    type: 'http',
    enabled: true,
    shard: 0,
    http: { url: 'https://example.com/', method: 'POST', headers: [], auth: { type: 'none' }, timeoutMs: 30_000, signingSecrets: [] },
    throttle: { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null },
    retryPolicy: { maxRetries: 10, initialDelayMs: 1000, maxDelayMs: 3_600_000, backoffMultiplier: 4 },
    generation: 1,
    ...fields,
  };
}

/** The settings of an HTTP destination's record. Throws for any other. */
export function httpSettings(record: DestinationRecord | null | undefined): HttpDestinationRecord['http'] {
  if (record?.type !== 'http') throw new Error('there is no record of an HTTP destination');
  return record.http;
}
