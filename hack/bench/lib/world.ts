import { createHash } from 'node:crypto';
import { hashApiKey, newApiKey } from '../../../src/core/api-key-hash.ts';
import { base32 } from '../../../src/core/ids.ts';
import {
  type FilterCondition,
  type HttpDestinationRecord,
  type RouteRecord,
  recordLayoutVersion,
  type SourceRecord,
} from '../../../src/core/records.ts';
import { Keyring } from '../../../src/core/sealing.ts';
import { recordSealingContext } from '../../../src/core/sealing-contexts.ts';
import { RedisRegistryPublisher } from '../../../src/data/registry/registry-publisher.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { freePort } from '../../../test/support/ports.ts';
import { type Program, startProgram } from '../../../test/support/program.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { buildProgram, builtProgram } from '../../lib/built-program.ts';
import { meterProcessor, type ProcessorMeter } from './processes.ts';
import { withAof } from './redis-options.ts';

/** That seals secrets. */
export const encryptionKey = Buffer.alloc(32, 1);
const { key: apiKey } = newApiKey();
const prefix = 'posthorn:';

/** One source with a route of its own to destinations of its own; deliveries are signed. */
export interface Lane {
  slug: string;
  urls: readonly string[];
  destination?: Partial<Omit<HttpDestinationRecord, 'http'>>;
  timeoutMs?: number;
  circuit?: Partial<RouteRecord['circuit']>;
  source?: Partial<SourceRecord>;
  /** So many more routes of the source, whose filters let no event through. */
  filteringRoutes?: number;
  /** Whose it is; default: `org_a`, slug `acme`. */
  organization?: { id: string; slug: string };
}

const acme = { id: 'org_a', slug: 'acme' };

export interface World {
  redis: RedisServer;
  prefix: string;
  shards: number;
  /** Origin of the REST API. */
  api: string;
  /** Origin of `/ingest/`. */
  ingest: string;
  programs: { api: Program; ingest: Program; deliveries: Program[] };
  path(slug: string): string;
  /** Headers of a request to the API. */
  credentials: readonly [string, string];
  /** Restarts the api process; returns when it was started, in ms of `performance.now()`. */
  restartApi(): Promise<number>;
  /** Process ids of all its programs and its Redis. */
  pids(): number[];
  meterProcessor(): ProcessorMeter;
  startDelivery(): Promise<Program>;
  stop(): Promise<void>;
}

/** Real api, ingest and delivery processes of the built program, on a Redis of their own with AOF everysec. */
export async function startWorld(options: {
  lanes: readonly Lane[];
  /** Names of event types, whose ids are `etp_<name>`. */
  eventTypes?: readonly string[];
  workers?: number;
  redisArguments?: string[];
  environment?: Record<string, string>;
}): Promise<World> {
  // What is measured is what the image holds.
  buildProgram();
  const redis = await startRedis(options.redisArguments ?? withAof);
  await publish(new RedisRegistryPublisher(redis.client, prefix), options.lanes, options.eventTypes ?? []);
  const environment = {
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: `k1:${encryptionKey.toString('base64')}`,
    POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
    POSTHORN_REDIS_MEMORY_LIMIT: '4gb',
    POSTHORN_SHARDS: '1',
    POSTHORN_LOG_LEVEL: process.env['POSTHORN_BENCH_LOG'] ?? 'warn',
    POSTHORN_HOST: '127.0.0.1',
    ...options.environment,
  };
  const start = (role: string, own: Record<string, string>): Program =>
    startProgram([role], { ...environment, ...own, POSTHORN_OPS_PORT: '0' }, builtProgram);
  const ports = { api: await freePort(), ingest: await freePort() };
  const originOf = (role: 'api' | 'ingest'): string => `http://127.0.0.1:${ports[role]}`;
  const startApi = (): Program => start('api', { POSTHORN_PORT: String(ports.api) });
  const programs: World['programs'] = { api: startApi(), ingest: start('ingest', { POSTHORN_PORT: String(ports.ingest) }), deliveries: [] };
  const startDelivery = async (): Promise<Program> => {
    const program = start('delivery', {});
    programs.deliveries.push(program);
    return program;
  };
  for (let i = 0; i < (options.workers ?? 1); i++) await startDelivery();
  // A process that still starts takes its share of the cores.
  await eventually('ingest and the api to be up', 30_000, async () => {
    const answers = [
      fetch(`${originOf('ingest')}/ingest/acme/nobody`, { method: 'POST', body: '{}' }),
      fetch(`${originOf('api')}/api/nothing`, { headers: { authorization: `Bearer ${apiKey}` } }),
    ];
    const statuses = await Promise.all(answers.map((answer) => answer.then(({ status }) => status).catch(() => null)));
    return statuses.every((status) => status === 404);
  });
  const pids = (): number[] => [redis.pid, ...[programs.api, programs.ingest, ...programs.deliveries].map(({ pid }) => pid)];
  return {
    redis,
    prefix,
    shards: Number(environment.POSTHORN_SHARDS),
    api: originOf('api'),
    ingest: originOf('ingest'),
    programs,
    path: (slug) => `/ingest/${(options.lanes.find((lane) => lane.slug === slug)?.organization ?? acme).slug}/${slug}`,
    credentials: ['authorization', `Bearer ${apiKey}`],
    restartApi: async () => {
      await programs.api.stop();
      const startedAt = performance.now();
      programs.api = startApi();
      return startedAt;
    },
    startDelivery,
    pids,
    meterProcessor: () => meterProcessor(pids),
    stop: async () => {
      for (const program of [programs.api, programs.ingest, ...programs.deliveries]) await program?.stop();
      await redis.stop();
    },
  };
}

async function publish(publisher: RedisRegistryPublisher, lanes: readonly Lane[], eventTypes: readonly string[]): Promise<void> {
  const keyring = new Keyring([{ id: 'k1', key: encryptionKey }]);
  const epoch = await publisher.mintEpoch();
  const organizations = new Map([acme, ...lanes.map(({ organization }) => organization ?? acme)].map((each) => [each.id, each]));
  for (const { id, slug } of organizations.values()) await publisher.publish(epoch, 'organization', organizationRecord({ id, slug }));
  await publisher.publish(epoch, 'apiKey', {
    v: recordLayoutVersion,
    id: 'key_a',
    org: 'org_a',
    orgSlug: 'acme',
    namespace: 'acme',
    name: 'bench',
    sha256: hashApiKey(apiKey),
    role: 'admin',
    scopes: ['read', 'write', 'delete'],
    expiresAtMs: null,
    generation: 1,
  });
  const eventType = {
    v: recordLayoutVersion,
    org: 'org_a',
    enabled: true,
    schema: null,
    schemaVersion: 1,
    deprecatedAtMs: null,
    generation: 1,
  };
  for (const name of eventTypes) await publisher.publish(epoch, 'eventType', { ...eventType, id: `etp_${name}`, name });
  for (const lane of lanes) {
    const { slug, urls, destination = {}, timeoutMs = 30_000, circuit = {}, source = {}, filteringRoutes = 0 } = lane;
    const { id: org, slug: orgSlug } = lane.organization ?? acme;
    const ids = urls.map((_, i) => `dst_${slug}${i}`);
    await publisher.publish(epoch, 'source', sourceRecord({ id: `src_${slug}`, org, orgSlug, slug, provider: 'generic', ...source }));
    for (const [i, url] of urls.entries()) {
      const id = ids[i] ?? '';
      const secret = keyring.seal(
        `whsec_${Buffer.alloc(32, 2).toString('base64')}`,
        recordSealingContext(org, 'destination', id, 'signingSecrets'),
      );
      const record = destinationRecord({ url, timeoutMs, signingSecrets: [secret] }, { id, org, slug: id, ...destination });
      await publisher.publish(epoch, 'destination', record);
    }
    const route = routeRecord({ id: `rte_${slug}`, org, slug, sourceId: `src_${slug}`, destinations: ids.map((id) => ({ id, shard: 0 })) });
    await publisher.publish(epoch, 'route', { ...route, circuit: { ...route.circuit, ...circuit } });
    for (let i = 0; i < filteringRoutes; i++) {
      const id = `rte_${base32(createHash('sha256').update(`${slug} ${i}`).digest().subarray(0, 16))}`;
      const conditions: FilterCondition[] = [
        { field: 'payload.n', operator: 'exists' },
        { field: 'payload.customer', operator: 'equals', value: `customer ${i}` },
      ];
      await publisher.publish(epoch, 'route', { ...route, id, slug: `${slug}${i}`, filter: { logic: 'AND', conditions } });
    }
  }
  await publisher.markComplete();
}
