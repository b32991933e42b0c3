import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { withLongTimeouts } from './long-timeouts.ts';

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  atMs: number;
}

export interface Receiver {
  url: string;
  requests: ReceivedRequest[];
  /** Resolves with the requests once there are `count` of them; throws after `withinMs`. */
  arrived(count: number, withinMs?: number): Promise<ReceivedRequest[]>;
  close(): Promise<void>;
}

/** A real HTTP receiver on loopback that writes down what arrives; `answer` (default: 200) is given each request's number from 1. */
export async function startReceiver(
  answer: (response: ServerResponse, number: number, request: ReceivedRequest) => void = (response) => response.end('ok'),
  tls?: { key: string | Buffer; cert: string | Buffer },
): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const received = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks),
        atMs: Date.now(),
      };
      requests.push(received);
      answer(response, requests.length, received);
    });
  };
  const server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  withLongTimeouts(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    requests,
    arrived: async (count, withinMs = 30_000) => {
      for (let waited = 0; requests.length < count; waited += 10) {
        if (waited > withinMs) throw new Error(`${requests.length} of ${count} requests arrived within ${withinMs} ms`);
        await sleep(10);
      }
      return requests;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
