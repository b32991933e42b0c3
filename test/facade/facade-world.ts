import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Logger as PinoLogger, pino } from 'pino';
import { Registry } from 'prom-client';
import { boundAddress } from '../../src/cmd/listen.ts';
import { facadeCaches, wireApi } from '../../src/cmd/wire-api.ts';
import { newApiKey } from '../../src/core/api-key-hash.ts';
import type { Clock } from '../../src/core/clock.ts';
import { isFromLoopback } from '../../src/core/loopback.ts';
import type { Plan, Role, Scope } from '../../src/core/records.ts';
import type { Keyring } from '../../src/core/sealing.ts';
import { feedBlockMs } from '../../src/data/feed/feed-reader.ts';
import type { OrganizationLock } from '../../src/data/locks/organization-lock.ts';
import type { WriteAheadLog } from '../../src/data/locks/write-ahead-log.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { changeStreamBlockMs } from '../../src/data/registry/change-stream.ts';
import { RedisRegistryReader } from '../../src/data/registry/registry-reader.ts';
import { taskBlockSeconds } from '../../src/data/tasks/task-kind.ts';
import type { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import type { WebhookMessages } from '../../src/data/webhooks/webhook-messages.ts';
import { type WebhookSending, webhookSending } from '../../src/data/webhooks/webhook-sending.ts';
import type { Delivery, DeliveryOptions } from '../../src/delivery/start-delivery.ts';
import { createFacade, type FacadeOptions } from '../../src/facade/app.ts';
import { KubernetesCallers } from '../../src/facade/http/kubernetes-callers.ts';
import { recoverPendingWrites } from '../../src/facade/records/write-transaction.ts';
import { blockingConnection } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { Sandbox } from '../../src/sandbox/sandbox.ts';
import type { KubernetesAccess } from '../../src/store/kubernetes/kubernetes-access.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { createStoreMetrics } from '../../src/store/metrics.ts';
import type { CompleteStore, ResourceStore } from '../../src/store/store.ts';
import { startControllers, testKeyring } from '../support/controllers.ts';
import { eventually } from '../support/eventually.ts';
import { lenientBy, lenientClock } from '../support/lenient-clock.ts';
import { patientServer } from '../support/patient-server.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { startTestDelivery } from '../support/test-delivery.ts';

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any JSON
  body: any;
  text: string;
}

export interface RequestOptions {
  key?: string | null;
  headers?: Record<string, string>;
  body?: unknown;
  /** Sent as it is. */
  rawBody?: string | Buffer;
}

export interface FacadeWorld {
  readonly store: CompleteStore;
  readonly redis: RedisServer;
  readonly baseUrl: string;
  readonly acceptor: RedisMessageAcceptor;
  readonly registry: RedisRegistryReader;
  readonly webhooks: RedisWebhookStore;
  /** The one that all replicas share. */
  readonly sending: WebhookSending;
  /** Admin key of the organization `acme`. */
  readonly admin: string;
  /** Everything the facade logged. */
  readonly logLines: string[];
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  /** Makes a record, in `acme` unless the key differs, with a name of its own unless the body has one; returns it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any JSON
  create(collection: string, body?: object, key?: string): Promise<any>;
  /** One look of the facade for what was begun and not ended. */
  finishBegun(): Promise<void>;
  /** Another facade on the same store and Redis; it ends with the world. Returns its client. */
  startReplica(options?: {
    inForceTimeoutMs?: number;
    webhookMessages?: WebhookMessages;
    keyring?: Keyring;
    store?: ResourceStore;
    organizationLock?: OrganizationLock;
    writeAheadLog?: WriteAheadLog;
    kubernetesCallers?: KubernetesCallers;
    takesSessions?: boolean;
    hasPublicUrl?: boolean;
  }): Promise<FacadeWorld['request']>;
  /** A delivery worker on the same Redis, which may reach loopback; stopped with the world when not before. */
  startWorker(options?: Partial<DeliveryOptions>): Promise<Delivery>;
  /** Makes an organization with its namespace of the same name. */
  addOrganization(slug: string, plan?: Plan): Promise<void>;
  /** API id of an organization. */
  organizationId(slug: string): Promise<string>;
  /** A key that is accepted from now on. */
  addKey(organization: string, options?: { role?: Role; scopes?: Scope[]; expiresAt?: string }): Promise<string>;
  stop(): Promise<void>;
}

/** A facade over HTTP with the real controllers behind it, on a real Redis of its own and the given store. */
export async function startFacadeWorld(
  options: {
    store?: CompleteStore;
    /** The same resources as the facade reaches them; absent: as the controllers do. */
    storeOfFacade?: ResourceStore;
    clock?: Clock;
    /** `default`: the API's default. */
    inForceTimeoutMs?: number | 'default';
    allowsPlatformIdentity?: boolean;
    mailDomains?: readonly string[];
    requiresMailConfirmation?: boolean;
    requiresSecretConsent?: boolean;
    kubernetesAccess?: KubernetesAccess;
    trustedProxies?: readonly string[];
    /** Requests without credentials from this machine are of this organization; absent: there are none. */
    loopbackOrganization?: string;
  } = {},
): Promise<FacadeWorld> {
  const {
    store = new MemoryStore(systemClock),
    storeOfFacade = store,
    clock = systemClock,
    // A machine that is blocked for a while prevents nothing from being programmed in time.
    inForceTimeoutMs = 20_000,
    allowsPlatformIdentity = true,
    mailDomains = [],
    requiresMailConfirmation = false,
    requiresSecretConsent = false,
    kubernetesAccess,
    trustedProxies = [],
    loopbackOrganization,
  } = options;
  const redis = await startRedis();
  const prefix = 'test:';
  const logLines: string[] = [];
  const logger: PinoLogger = pino({ level: 'debug' }, { write: (line: string) => void logLines.push(line) });
  const sandbox = new Sandbox({ clock: lenientBy(3), processes: 1 });
  const ofControllers = { allowsPlatformIdentity, mailDomains, requiresSecretConsent, sandbox };
  const controllers = startControllers({ store, redis: redis.client, prefix, ...ofControllers });
  const blocking = blockingConnection(redis.url, { blockMs: changeStreamBlockMs + 30_000 });
  blocking.on('error', () => {});
  const registry = new RedisRegistryReader({ redis: redis.client, blocking, prefix, clock, logger });
  registry.start();
  await eventually(() => registry.apiKeyIdByHash('nobody'));
  const answers = blockingConnection(redis.url, { blockMs: taskBlockSeconds * 1000 + 30_000 });
  const feedReading = blockingConnection(redis.url, { blockMs: feedBlockMs + 30_000 });
  feedReading.on('error', () => {});
  const parts = wireApi({
    connections: { redis: redis.client, storing: redis.client, feed: feedReading, tasks: answers },
    prefix,
    clock,
    logger,
    metrics: new Registry(),
    registry,
    shards: () => 1,
    memoryLimitBytes: undefined,
    installation: {
      name: 'acme',
      mode: kubernetesAccess === undefined ? 'standalone' : 'cluster',
      namespace: kubernetesAccess === undefined ? null : 'posthorn-system',
    },
    maxAttempts: 8,
    requiresMailConfirmation,
  });
  const { webhooks } = parts;
  const services = {
    ...parts,
    // A busy machine has more time to match an event with subscriptions.
    sending: webhookSending({ redis: redis.client, prefix, clock: lenientBy(3), logger, store: webhooks, maxAttempts: 8 }),
    store: storeOfFacade,
    kubernetesCallers: kubernetesAccess === undefined ? null : new KubernetesCallers({ access: kubernetesAccess, registry }),
    objectEvents: null,
    allowsInsecureEndpoints: false,
    hasPublicUrl: true,
    sandbox,
    keyring: testKeyring,
    allowsPlatformIdentity,
    mailDomains,
    version: '0.0.0-test',
    trustedProxies,
    inForceTimeoutMs: inForceTimeoutMs === 'default' ? undefined : inForceTimeoutMs,
  };
  const first = await startReplica(services, loopbackOrganization);
  const replicas = [first];

  const requestTo = async (
    { baseUrl }: Replica,
    method: string,
    path: string,
    { key = world.admin, headers = {}, body, rawBody }: RequestOptions = {},
  ): Promise<Answer> => {
    const sent = rawBody ?? (body === undefined ? undefined : JSON.stringify(body));
    const response = await fetch(baseUrl + path, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent }),
    });
    const text = await textOf(response);
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null };
  };
  const request: FacadeWorld['request'] = (...args) => requestTo(first, ...args);
  let made = 0;
  const create: FacadeWorld['create'] = async (collection, body, key) => {
    const answer = await request('POST', `/api/${collection}`, { body: { name: `Made ${++made}`, ...body }, key });
    if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text} for ${JSON.stringify(body)}`);
    return answer.body;
  };
  const another: FacadeWorld['startReplica'] = async (own = {}) => {
    const replica = await startReplica({ ...services, ...own });
    replicas.push(replica);
    return (...args) => requestTo(replica, ...args);
  };
  const workers: Delivery[] = [];
  const startWorker: FacadeWorld['startWorker'] = async (more = {}) => {
    const worker = startTestDelivery(redis, {
      prefix,
      registry,
      logger,
      publicUrl: first.baseUrl,
      egress: { allowedCidrs: ['127.0.0.0/8'] },
      ...more,
    });
    workers.push(worker);
    await eventually(() => expectTrue(worker.isHealthy()));
    return worker;
  };
  const addOrganization: FacadeWorld['addOrganization'] = async (slug, plan = 'enterprise') => {
    await store.apply({ kind: 'Organization', metadata: { name: slug }, spec: { namespace: slug, plan } }, { manager: 'kubectl' });
    await eventually(async () => expectTrue((await registry.organizationIdBySlug(slug)) !== null));
    await eventually(() => store.get('Namespace', { name: slug }));
  };
  const organizationId = async (slug: string): Promise<string> => {
    const id = await registry.organizationIdBySlug(slug);
    if (id === null) throw new Error(`there is no organization ${slug}`);
    return id;
  };
  const addKey: FacadeWorld['addKey'] = async (organization, { role = 'admin', scopes, expiresAt } = {}) => {
    const { key, sha256, prefix: shown } = newApiKey();
    const name = `key-${sha256.slice(0, 12)}`;
    await store.apply(
      { kind: 'ApiKey', metadata: { name, namespace: organization }, spec: { sha256, prefix: shown, role, scopes, expiresAt } },
      { manager: 'kubectl' },
    );
    await eventually(async () => expectTrue((await registry.apiKeyIdByHash(sha256)) !== null));
    return key;
  };

  const world = {
    store,
    redis,
    baseUrl: first.baseUrl,
    acceptor: new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }),
    webhooks,
    sending: services.sending,
    admin: '',
    logLines,
    request,
    create,
    finishBegun: first.finishBegun,
    startReplica: another,
    startWorker,
    addOrganization,
    organizationId,
    registry,
    addKey,
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.stop(0)));
      sandbox.close();
      services.streams.close();
      await Promise.all([...replicas.map((replica) => replica.stop()), registry.stop(), controllers.stop()]);
      // One that was never used would keep the process for 2 s.
      if (answers.status !== 'wait') answers.disconnect();
      await redis.stop();
    },
  };
  await addOrganization('acme');
  world.admin = await addKey('acme');
  return world;
}

interface Replica {
  baseUrl: string;
  finishBegun(): Promise<void>;
  stop(): Promise<void>;
}

/** A facade with caches and a server of its own. */
async function startReplica(services: Omit<FacadeOptions, 'caches'>, organization?: string): Promise<Replica> {
  const { store, logger } = services;
  const following = new AbortController();
  const caches = facadeCaches({ store, clock: systemClock, logger, metrics: createStoreMetrics(new Registry()) });
  const followed = caches.run(following.signal);
  await caches.synced;
  const loopback =
    organization === undefined
      ? null
      : { organization, isFromHere: (request: IncomingMessage) => isFromLoopback(request, boundAddress(server)) };
  const facade = createFacade({ ...services, loopback, caches: caches.caches, metrics: new Registry() });
  const server = patientServer(facade);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    finishBegun: () => services.writeAheadLog.scanOnce((org) => recoverPendingWrites({ ...services, caches: caches.caches }, org)),
    stop: async () => {
      server.closeAllConnections();
      server.close();
      following.abort();
      await followed;
    },
  };
}

/** The beginning of a stream that stays open, and all of any other answer. */
async function textOf(response: Response): Promise<string> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true || response.body === null)
    return await response.text();
  const reader = response.body.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

function expectTrue(condition: boolean): void {
  if (!condition) throw new Error('not yet');
}
