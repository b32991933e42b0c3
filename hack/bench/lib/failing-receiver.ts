import { once } from 'node:events';
import { createServer } from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** A retry that came: its event, its webhook-id, and when, in ms since the epoch. */
type Retry = readonly [number: number, webhookId: string, atMs: number];

interface Told {
  /** Numbers of the events. */
  firstAttempts: readonly number[];
  retries: readonly Retry[];
}

export interface FailingReceiver {
  origin: string;
  firstAttempts(): number;
  retries(): number;
  /** All that has come. */
  told(): Promise<Told>;
  close(): Promise<void>;
}

/**
 * A receiver that answers every first attempt and every second retry with 500. It has a thread of its own: what it is busy with is not
 * to count as latency of a receiver that measures.
 */
export async function startFailingReceiver(): Promise<FailingReceiver> {
  const counters = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(new URL(import.meta.url), { workerData: counters });
  const said = async <T>(): Promise<T> => {
    const [message] = await once(worker, 'message');
    return message;
  };
  const origin = await said<string>();
  return {
    origin,
    firstAttempts: () => Atomics.load(counters, 0),
    retries: () => Atomics.load(counters, 1),
    told: () => {
      worker.postMessage('tell');
      return said<Told>();
    },
    close: async () => void (await worker.terminate()),
  };
}

function receive(counters: Int32Array): void {
  const firstAttempts: number[] = [];
  const retries: Retry[] = [];
  const server = createServer((request, response) => {
    const isFirst = request.headers['x-posthorn-attempt'] === '1';
    const before = Atomics.add(counters, isFirst ? 0 : 1, 1);
    const atMs = Date.now();
    // The number is at the beginning.
    request.once('data', (chunk: Buffer) => {
      const number = Number(/"number":(\d+),/.exec(chunk.toString('latin1', 0, 64))?.[1]);
      if (isFirst) firstAttempts.push(number);
      else retries.push([number, String(request.headers['webhook-id']), atMs]);
    });
    response.statusCode = isFirst || before % 2 === 0 ? 500 : 200;
    response.end();
  });
  server.keepAliveTimeout = 60_000;
  parentPort?.on('message', () => parentPort?.postMessage({ firstAttempts, retries } satisfies Told));
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    parentPort?.postMessage(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
  });
}

if (!isMainThread) receive(workerData);
