import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { type ConnectionRules, Dispatchers } from '../../src/delivery/targets/http/dispatchers.ts';
import { errorType } from '../../src/delivery/targets/http/error-type.ts';
import { exchange, type HttpResult } from '../../src/delivery/targets/http/http-exchange.ts';
import { SentSecrets } from '../../src/delivery/targets/http/sent-secrets.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';

export const posted = { path: '/', method: 'POST' as const, headers: [], body: Buffer.from('{}'), secrets: SentSecrets.none };
export const localEgress = { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] };
/** Neither TLS of its own nor the egress proxy. */
export const openRules: ConnectionRules = { egress: localEgress, tls: null, usesProxy: false };

interface PostOptions {
  rules?: ConnectionRules;
  proxyUrl?: string;
  deadlineMs?: number;
}

/** Receivers that write to their sockets what they like, and the connections that attempts have made to them, until `close`. */
export class RawReceivers {
  #servers: { server: Server; sockets: Set<Socket> }[] = [];
  #dispatchers: Dispatchers[] = [];

  /** A server that runs a script on every connection, once the first bytes of a request are there; returns its port. */
  async listen(onRequest: (socket: Socket, request: string) => void, tls?: TlsOptions): Promise<number> {
    const sockets = new Set<Socket>();
    const onSocket = (socket: Socket): void => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => sockets.delete(socket));
      socket.on('data', (chunk) => onRequest(socket, chunk.toString()));
    };
    const server = tls === undefined ? createServer(onSocket) : createTlsServer(tls, onSocket);
    server.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#servers.push({ server, sockets });
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  async post(origin: string, { rules = openRules, proxyUrl, deadlineMs = 30_000 }: PostOptions = {}): Promise<HttpResult> {
    const pools = new Dispatchers({ connections: 4, clock: systemClock, ...(proxyUrl !== undefined && { proxyUrl }) });
    this.closeAfterwards(pools);
    const request = { origin, ...posted };
    const signal = new AbortController().signal;
    return await exchange(pools.forRules(rules)(), request, { timeoutMs: deadlineMs, clock: systemClock, signal });
  }

  closeAfterwards(dispatchers: Dispatchers): void {
    this.#dispatchers.push(dispatchers);
  }

  async close(): Promise<void> {
    await Promise.all(this.#dispatchers.map((each) => each.close()));
    for (const { server, sockets } of this.#servers) {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
    this.#servers = [];
    this.#dispatchers = [];
  }
}

/** The status of the answer, or the type of the error. */
export function kindOf(result: HttpResult): string {
  return result.type === 'error' ? errorType(result.error) : String(result.status);
}
