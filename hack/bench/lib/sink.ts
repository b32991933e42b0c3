import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

/** A receiver that writes down each event: how often it came, and after how many ms. */
export interface Sink {
  origin: string;
  arrivals: Map<number, number>;
  latenciesMs: number[];
  /** The webhook-ids under which each event came. */
  webhookIds: Map<number, Set<string>>;
  /** When each request came, in ms of `performance.now()`. */
  times: number[];
  reset(): void;
  close(): void;
}

/** `number`: of the event that came. */
export type Behaviour = (request: IncomingMessage, response: ServerResponse, number: number) => void;

const answerAtOnce: Behaviour = (_, response) => void response.end();

export const behaviours = {
  hang: () => {},
  reset: (request) => void request.socket.resetAndDestroy(),
  /** A byte of the headers every 100 ms. */
  drip: (request) => {
    const { socket } = request;
    socket.write('HTTP/1.1 200 OK\r\nx-slow: ');
    const timer = setInterval(() => (socket.writable ? socket.write('x') : clearInterval(timer)), 100);
    socket.on('close', () => clearInterval(timer));
    socket.on('error', () => clearInterval(timer));
  },
  fail: (_, response) => {
    response.statusCode = 500;
    response.end();
  },
} satisfies Record<string, Behaviour>;

/** `address`: of this machine, where it listens. */
export async function startSink(behaviour: Behaviour = answerAtOnce, address = '127.0.0.1'): Promise<Sink> {
  const arrivals = new Map<number, number>();
  const latenciesMs: number[] = [];
  const times: number[] = [];
  const webhookIds = new Map<number, Set<string>>();
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const now = performance.now();
      const [, digits, sent] = /"number":(\d+),"sent":([\d.]+)/.exec(Buffer.concat(chunks).toString('latin1')) ?? [];
      const number = Number(digits);
      arrivals.set(number, (arrivals.get(number) ?? 0) + 1);
      const ids = webhookIds.get(number) ?? new Set();
      webhookIds.set(number, ids.add(String(request.headers['webhook-id'])));
      latenciesMs.push(now - Number(sent));
      times.push(now);
      behaviour(request, response, number);
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const bound = server.address();
  return {
    origin: `http://${address}:${typeof bound === 'object' ? bound?.port : 0}`,
    arrivals,
    latenciesMs,
    times,
    webhookIds,
    reset: () => {
      arrivals.clear();
      webhookIds.clear();
      latenciesMs.length = 0;
      times.length = 0;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** How often events came to a receiver beyond the first time. */
export function repeatedArrivals(sinks: readonly Pick<Sink, 'arrivals'>[]): number {
  return sinks.flatMap(({ arrivals }) => [...arrivals.values()]).reduce((sum, times) => sum + times - 1, 0);
}

/** How many events that were not sent came, counted at each receiver. */
export function unexpectedArrivals(sinks: readonly Pick<Sink, 'arrivals'>[], sent: ReadonlySet<number>): number {
  return sinks.flatMap(({ arrivals }) => [...arrivals.keys()]).filter((number) => !sent.has(number)).length;
}

/** How many events came under more than one webhook-id, counted at each receiver. */
export function changedWebhookIds(sinks: readonly Sink[]): number {
  return sinks.flatMap(({ webhookIds }) => [...webhookIds.values()]).filter((ids) => ids.size > 1).length;
}
