import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { type ConnectedRole, processName } from '../data/membership/connected-processes.ts';
import { describeRedis, type RedisAddress } from '../redis/address.ts';
import { blockingConnection, commandConnection, type RedisClient, watchNodes } from '../redis/connection.ts';
import { type ConnectionCheck, gateConnection } from '../redis/connection-gate.ts';
import type { Readiness } from './readiness.ts';
import { version } from './version.ts';

const closed = 'the connection was closed';
/** Most reasons of one outage in the log. */
const maxReasons = 20;

/** The connections of one process. The first is watched: its state is logged when it changes, and decides readiness. */
export class RedisLink {
  readonly #address: RedisAddress;
  readonly #name: string;
  readonly #logger: Logger;
  readonly #clients = new Set<RedisClient>();
  readonly #check: ConnectionCheck | undefined;
  readonly #doubts = new Set<() => void>();
  #isClosing = false;
  readonly main: RedisClient;

  /** `check`: what each connection must pass before it carries anything. */
  constructor(
    address: RedisAddress,
    options: { name: ConnectedRole; prefix: string; logger: Logger; readiness: Readiness; check?: ConnectionCheck },
  ) {
    this.#address = address;
    this.#name = options.name;
    this.#logger = options.logger;
    this.#check = options.check;
    this.main = this.#commands(processName({ role: options.name, prefix: options.prefix, version }));
    this.#watch(options.readiness);
    this.#watchNodes(options.readiness);
  }

  /** A connection for commands and scripts, connecting in the background. */
  command(purpose: string, options: { commandTimeoutMs?: number } = {}): RedisClient {
    return this.#commands(`posthorn-${this.#name}-${purpose}`, options);
  }

  /** A connection for one reader that blocks for at most `blockMs`; the reader connects it. */
  blocking(purpose: string, blockMs: number): RedisClient {
    return this.#open(blockingConnection(this.#address, { blockMs, name: `posthorn-${this.#name}-${purpose}` }));
  }

  /** Waits until every connection for commands is open; false when the signal aborts before. */
  async waitUntilReachable(clock: Clock, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      if ([...this.#clients].every(({ status }) => status === 'ready' || status === 'wait')) return true;
      await clock.sleep(50, signal);
    }
    return false;
  }

  /** Holds back what is sent from now on until the connections have passed their check again. */
  doubt(): void {
    for (const doubt of this.#doubts) doubt();
  }

  close(): void {
    this.#isClosing = true;
    for (const client of this.#clients) client.disconnect();
  }

  #commands(name: string, options: { commandTimeoutMs?: number } = {}): RedisClient {
    const client = this.#open(commandConnection(this.#address, { ...options, name }));
    client.connect().catch(() => {});
    return client;
  }

  #open(client: RedisClient): RedisClient {
    this.#clients.add(client);
    client.once('end', () => this.#clients.delete(client));
    if (this.#check !== undefined) {
      const doubt = gateConnection(client, this.#check);
      this.#doubts.add(doubt);
      client.once('end', () => this.#doubts.delete(doubt));
    }
    // The main connection reports the reason; the commands that fail have an error of their own.
    client.on('error', () => {});
    return client;
  }

  #watch(readiness: Readiness): void {
    let state: 'starting' | 'reachable' | 'unreachable' = 'starting';
    let reason = closed;
    /** Reasons of this outage that the log has. */
    const told = new Set<string>();
    const where = describeRedis(this.#address.url);
    this.main.on('error', (error: Error) => {
      reason = reasonOf(error);
    });
    this.main.on('ready', () => {
      if (state === 'unreachable') this.#logger.info({ redis: where }, 'Redis is reachable again');
      state = 'reachable';
      reason = closed;
      told.clear();
      readiness.set('redis', { ok: true });
    });
    this.main.on('close', () => {
      if (this.#isClosing) return;
      if (!told.has(reason) && told.size < maxReasons) this.#logger.warn({ redis: where, reason }, 'Redis is unreachable; retrying');
      told.add(reason);
      state = 'unreachable';
      readiness.set('redis', { ok: false, detail: `${where} is unreachable: ${reason}` });
    });
    this.main.on('end', () => readiness.set('redis', { ok: false, detail: 'closed' }));
  }

  /** The connection to a Cluster stays while those to its nodes break and are reopened. */
  #watchNodes(readiness: Readiness): void {
    const told = new Set<string>();
    watchNodes(this.main, {
      onError: (node, error, isServed) => {
        if (this.#isClosing || this.main.status !== 'ready') return;
        const reason = reasonOf(error);
        const what = `${node} ${reason}`;
        if (!told.has(what) && told.size < maxReasons)
          this.#logger.warn({ redis: node, reason }, 'a node of Redis is unreachable; retrying');
        told.add(what);
        if (!isServed) readiness.set('redis', { ok: false, detail: `${node} is unreachable: ${reason}` });
      },
      onReady: (node) => {
        const reasons = [...told].filter((what) => what.startsWith(`${node} `));
        for (const what of reasons) told.delete(what);
        if (reasons.length > 0) this.#logger.info({ redis: node }, 'a node of Redis is reachable again');
        if (this.main.status === 'ready') readiness.set('redis', { ok: true });
      },
    });
  }
}

/** A Cluster's error only reports that no node will do, a Sentinel's only the delay of the next query. */
function reasonOf(error: Error & { lastNodeError?: Error | null }): string {
  return (error.lastNodeError ?? error).message.replace(/ Retrying from scratch after \d+ms\./, '');
}
