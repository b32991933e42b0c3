import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { type ConnectedRole, processName } from '../data/membership/connected-processes.ts';
import { describeRedis, type RedisAddress } from '../redis/address.ts';
import { blockingConnection, commandConnection, type RedisClient } from '../redis/connection.ts';
import type { Readiness } from './readiness.ts';

/** The connections of one process. The first is watched: its state is logged when it changes, and decides readiness. */
export class RedisLink {
  readonly #address: RedisAddress;
  readonly #name: string;
  readonly #logger: Logger;
  readonly #clients = new Set<RedisClient>();
  #isClosing = false;
  readonly main: RedisClient;

  constructor(address: RedisAddress, options: { name: ConnectedRole; prefix: string; logger: Logger; readiness: Readiness }) {
    this.#address = address;
    this.#name = options.name;
    this.#logger = options.logger;
    this.main = this.#commands(processName(options.name, options.prefix));
    this.#watch(options.readiness);
  }

  /** A connection for commands and scripts, connecting in the background. */
  command(purpose: string, options: { commandTimeoutMs?: number } = {}): RedisClient {
    return this.#commands(`posthorn-${this.#name}-${purpose}`, options);
  }

  /** A connection for one reader that blocks for at most `blockMs`; the reader connects it. */
  blocking(purpose: string, blockMs: number): RedisClient {
    return this.#open(blockingConnection(this.#address, { blockMs, name: `posthorn-${this.#name}-${purpose}` }));
  }

  /** Waits until every connection for commands stands; false when the signal aborts before. */
  async waitUntilReachable(clock: Clock, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      if ([...this.#clients].every(({ status }) => status === 'ready' || status === 'wait')) return true;
      await clock.sleep(50, signal);
    }
    return false;
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
    // The reason is told by the main connection; the commands that fail have an error of their own.
    client.on('error', () => {});
    return client;
  }

  #watch(readiness: Readiness): void {
    let state: 'starting' | 'reachable' | 'unreachable' = 'starting';
    let reason = 'the connection was closed';
    const where = describeRedis(this.#address.url);
    this.main.on('error', (error: Error) => {
      reason = error.message;
    });
    this.main.on('ready', () => {
      if (state === 'unreachable') this.#logger.info({ redis: where }, 'Redis is reachable again');
      state = 'reachable';
      reason = 'the connection was closed';
      readiness.set('redis', { ok: true });
    });
    this.main.on('close', () => {
      if (this.#isClosing) return;
      if (state !== 'unreachable') this.#logger.warn({ redis: where, reason }, 'Redis is unreachable; retrying');
      state = 'unreachable';
      readiness.set('redis', { ok: false, detail: `${where} is unreachable: ${reason}` });
    });
    this.main.on('end', () => readiness.set('redis', { ok: false, detail: 'closed' }));
  }
}
