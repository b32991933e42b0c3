import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { eventually } from './eventually.ts';
import { withLongTimeouts } from './long-timeouts.ts';

export interface TlsRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface TlsReceiver {
  readonly port: number;
  /** In the order of arrival. */
  readonly requests: readonly TlsRequest[];
  url(path?: string): string;
  /** Waits until so many requests have arrived; throws after the deadline. */
  waitForRequests(count: number, deadlineMs?: number): Promise<void>;
  /** Shows another certificate on new connections. */
  showCertificate(tls: { key: Buffer; cert: Buffer }): void;
  stop(): Promise<void>;
}

export interface TlsReceiverOptions {
  /** With `requestCert` the receiver refuses who shows no certificate of `ca`. */
  tls: { key: Buffer; cert: Buffer; ca?: string; requestCert?: boolean };
  /** Address that senders use and that the certificate names; the receiver listens on all. */
  address: string;
  /** Status to answer a request with, the first being number 1, now or later. Default 200. */
  respond?(request: TlsRequest, number: number): number | Promise<number>;
  /** Called for a request whose sender has gone before it was answered. */
  cutOff?(request: TlsRequest): void;
}

/** An HTTPS endpoint as a customer runs one, which keeps what it receives. */
export async function startTlsReceiver(options: TlsReceiverOptions): Promise<TlsReceiver> {
  const requests: TlsRequest[] = [];
  const server = createServer(options.tls, async (request, response) => {
    try {
      const received = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: await buffer(request),
      };
      requests.push(received);
      response.once('close', () => {
        if (!response.writableFinished) options.cutOff?.(received);
      });
      response.writeHead((await options.respond?.(received, requests.length)) ?? 200).end();
    } catch {
      response.destroy();
    }
  });
  withLongTimeouts(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '0.0.0.0', resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port,
    requests,
    url: (path = '/') => `https://${options.address}:${port}${path}`,
    waitForRequests: async (count, deadlineMs = 30_000) => {
      await eventually(`${count} requests, with ${requests.length} here`, deadlineMs, () => requests.length >= count);
    },
    showCertificate: (tls) => server.setSecureContext(tls),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
