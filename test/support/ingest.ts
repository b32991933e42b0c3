import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { largestPayloadBytes } from '../../src/core/payload-sizes.ts';
import type { PayloadSchemaRecord, RouteRecord, SourceRecord } from '../../src/core/records.ts';
import { Keyring } from '../../src/core/sealing.ts';
import { recordSealingContext } from '../../src/core/sealing-contexts.ts';
import { type Intake, RedisIntake } from '../../src/data/intake/intake.ts';
import { SignatureFailureLog } from '../../src/data/intake/signature-failure-log.ts';
import { changeStreamBlockMs } from '../../src/data/registry/change-stream.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { RedisRegistryReader } from '../../src/data/registry/registry-reader.ts';
import type { MessageAcceptor, NewEvent } from '../../src/data/shard/messages.ts';
import { createIngestHandler, type IngestHandlerOptions } from '../../src/ingest/handler.ts';
import type { IngestLimits } from '../../src/ingest/limits.ts';
import { isIngestTarget } from '../../src/ingest/path.ts';
import { blockingConnection, commandConnection, type RedisClient } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { Sandbox } from '../../src/sandbox/sandbox.ts';
import { eventually } from './eventually.ts';
import { lenientBy } from './lenient-clock.ts';
import { silentLogger } from './logger.ts';
import { type PacedRequest, sendPaced } from './paced-sender.ts';
import { patientServer } from './patient-server.ts';
import { routeRecord, sourceRecord } from './records.ts';
import { type RedisServer, startRedis } from './redis.ts';

/** Long enough for a machine that is blocked for a while; tests of a deadline set their own. */
const patientLimits = {
  planDeadlineMs: 30_000,
  bodyDeadlineMs: 60_000,
  checkDeadlineMs: 60_000,
  storeDeadlineMs: 30_000,
  storeLargeDeadlineMs: 30_000,
  drainDeadlineMs: 30_000,
};

export const keyPrefix = 'test:';
export const signingSecret = "It's a Secret to Everybody";

/** Keeps each event once; `hold` lets it be slow or fail. */
export class KeptEvents implements MessageAcceptor {
  readonly events: NewEvent[] = [];
  hold: () => Promise<void> = async () => {};

  async accept(event: NewEvent): Promise<boolean> {
    await this.hold();
    if (this.events.some(({ id }) => id === event.id)) return false;
    // Ingest frees the memory of large payloads once they are stored.
    this.events.push({ ...event, payload: Buffer.from(event.payload) });
    return true;
  }
}

type ServingOptions = Pick<
  Partial<IngestHandlerOptions>,
  'trustedProxies' | 'publicUrl' | 'intake' | 'maxPayloadBytes' | 'signatureFailures'
>;

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: { success?: boolean; eventId?: string; duplicate?: boolean; error?: string; message?: string; code?: string };
}

/** The ingest handler on a real server, with a registry in a real Redis that is empty at first. */
export class IngestUnderTest {
  readonly redis: RedisServer;
  readonly keyring: Keyring;
  readonly publisher: RedisRegistryPublisher;
  readonly registry: RedisRegistryReader;
  epoch = 0;
  kept = new KeptEvents();
  /** Requests that the handler has received. */
  heard = 0;
  metrics = new Registry();
  /** `close` writes what it has not written yet. */
  failures: SignatureFailureLog | null = null;
  readonly #sandbox = new Sandbox({ clock: lenientBy(3), processes: 1, maxPayloadBytes: largestPayloadBytes });
  #server: Server | null = null;
  #port = 0;

  readonly #client: RedisClient;
  readonly #ownsRedis: boolean;
  readonly #replicas = new Set<IngestUnderTest>();
  #leave: () => void = () => {};

  private constructor(redis: RedisServer, first: IngestUnderTest | null) {
    this.redis = redis;
    this.#ownsRedis = first === null;
    this.#client = first === null ? redis.client : commandConnection(redis.url, { commandTimeoutMs: 10_000 });
    this.#client.on('error', () => {});
    this.keyring = first?.keyring ?? new Keyring([{ id: 'k1', key: randomBytes(32) }]);
    this.publisher = new RedisRegistryPublisher(redis.client, keyPrefix);
    const blocking = blockingConnection(redis.url, { blockMs: changeStreamBlockMs + 30_000 });
    blocking.on('error', () => {});
    this.registry = new RedisRegistryReader({ redis: this.#client, blocking, prefix: keyPrefix, clock: systemClock, logger: silentLogger });
  }

  static async start(): Promise<IngestUnderTest> {
    const started = new IngestUnderTest(await startRedis(), null);
    started.registry.start();
    await started.reset();
    return started;
  }

  /** Another api on the same Redis, with connections of its own. */
  async replica(parts?: (redis: RedisClient) => { acceptor: MessageAcceptor; intake?: Intake }): Promise<IngestUnderTest> {
    const replica = new IngestUnderTest(this.redis, this);
    await replica.#client.connect();
    replica.registry.start();
    this.#replicas.add(replica);
    replica.#leave = () => this.#replicas.delete(replica);
    const { acceptor = replica.kept, ...options } = parts?.(replica.#client) ?? {};
    await replica.#serve({}, acceptor, options);
    return replica;
  }

  /** Empties Redis, forgets what was kept, and serves with these limits. */
  async reset(limits: Partial<IngestLimits> = {}, acceptor?: MessageAcceptor, options: ServingOptions = {}): Promise<void> {
    await this.redis.client.flushall();
    const flushed = this.#allHear((changeKey) => changeKey === '*');
    this.epoch = await this.publisher.mintEpoch();
    await this.publisher.markComplete();
    await this.publishSource({ id: 'src_reset', slug: 'reset' });
    await flushed;
    this.kept = new KeptEvents();
    await this.#serve(limits, acceptor ?? this.kept, options);
  }

  async stop(): Promise<void> {
    this.#leave();
    await this.#stopServing();
    await this.registry.stop();
    this.#sandbox.close();
    if (this.#ownsRedis) await this.redis.stop();
    else this.#client.disconnect();
  }

  async publishSource(fields: Partial<SourceRecord> = {}): Promise<void> {
    await this.#heard(() => this.publisher.publish(this.epoch, 'source', sourceRecord(fields)));
  }

  /** A source with `signingSecret`. */
  async publishSignedSource(fields: Partial<SourceRecord> = {}): Promise<void> {
    const context = recordSealingContext('org_a', 'source', 'src_a', 'signingSecrets');
    await this.publishSource({ signingSecrets: [this.keyring.seal(signingSecret, context)], rejectInvalidSignatures: true, ...fields });
  }

  async publishRoute(fields: Partial<RouteRecord> = {}): Promise<void> {
    await this.#heard(() => this.publisher.publish(this.epoch, 'route', routeRecord(fields)));
  }

  async publishSchema(record: PayloadSchemaRecord): Promise<void> {
    await this.#heard(() => this.publisher.publish(this.epoch, 'payloadSchema', record));
  }

  /** Waits until ingest has received the change: it discards earlier results when it does. */
  async #heard(publish: () => Promise<unknown>): Promise<void> {
    const heard = this.#allHear(() => true);
    await publish();
    await heard;
  }

  /** Resolves once this one and every replica have received such a change. */
  async #allHear(isMeant: (changeKey: string) => boolean): Promise<void> {
    const hears = (registry: RedisRegistryReader): Promise<void> =>
      new Promise((resolve) => {
        const stop = registry.onChange((changeKey) => {
          if (!isMeant(changeKey)) return;
          stop();
          resolve();
        });
      });
    await Promise.all([this, ...this.#replicas].map(({ registry }) => hears(registry)));
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.#port}${path}`;
  }

  send(
    path: string,
    { method = 'POST', headers = {}, body = '{}' }: { method?: string; headers?: OutgoingHttpHeaders; body?: string | Buffer } = {},
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = httpRequest({ host: '127.0.0.1', port: this.#port, path, method, headers, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text === '' ? {} : JSON.parse(text) });
        });
      });
      request.on('error', reject);
      request.end(body);
    });
  }

  /** Writes the pieces to a bare socket, one per 20 ms; returns what came back until the other side closes, or it is enough. */
  async sendRaw(pieces: Iterable<string | Buffer>, isEnough: (received: string) => boolean = () => false): Promise<string> {
    const socket = connect(this.#port, '127.0.0.1');
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    await once(socket, 'connect');
    for (const piece of pieces) {
      if (!socket.writable) break;
      socket.write(piece);
      await sleep(20);
    }
    await eventually('the end', 60_000, () => socket.closed || isEnough(received)).finally(() => socket.destroy());
    return received;
  }

  /** Writes to a bare socket, ends its side, and answers what comes back. */
  async sendHalfClosed(sent: string): Promise<string> {
    const socket = connect(this.#port, '127.0.0.1');
    socket.end(sent);
    return await text(socket);
  }

  /** Sends a request as clients do that read nothing before all is written. */
  sendPaced(request: PacedRequest): Promise<string> {
    return sendPaced(this.#port, request);
  }

  /** Ends the minute of a source's rate limit. */
  async endMinuteOf(sourceId: string): Promise<void> {
    await this.redis.client.del(`${keyPrefix}{rate:${sourceId}}`);
  }

  /** Requests so far by outcome. */
  async outcomes(): Promise<Record<string, number>> {
    const metric = await this.metrics.getSingleMetric('posthorn_ingest_requests_total')?.get();
    return Object.fromEntries(
      (metric?.values ?? []).filter(({ value }) => value > 0).map(({ labels, value }) => [labels['outcome'], value]),
    );
  }

  async #serve(limits: Partial<IngestLimits>, acceptor: MessageAcceptor, options: ServingOptions): Promise<void> {
    await this.#stopServing();
    this.metrics = new Registry();
    const { registry, keyring, metrics } = this;
    this.failures = new SignatureFailureLog({ redis: this.#client, prefix: keyPrefix, clock: systemClock, logger: silentLogger });
    const intake = new RedisIntake({ redis: this.#client, prefix: keyPrefix, clock: systemClock });
    const common = {
      registry,
      acceptor,
      intake,
      signatureFailures: this.failures,
      keyring,
      sandbox: this.#sandbox,
      clock: systemClock,
      logger: silentLogger,
      metrics,
      limits: { ...patientLimits, ...limits },
    };
    const handle = createIngestHandler({ ...common, ...options });
    const listener: RequestListener = (request, response) => {
      this.heard += 1;
      if (!handle(request, response)) response.writeHead(421).end();
    };
    const server = patientServer(listener, { setsAnswerHeaders: isIngestTarget, takesHalfClosed: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  async #stopServing(): Promise<void> {
    if (this.#server === null) return;
    this.#server.closeAllConnections();
    await this.failures?.close();
    this.#server.close();
    await once(this.#server, 'close');
    this.#server = null;
  }
}
