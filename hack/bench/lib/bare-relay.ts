// A relay that only moves bytes: the ceiling for one over Redis on this machine. As in Posthorn, one process writes the bodies of requests to Redis, and another
// one reads them and sends them to the receivers. It has no signatures, scripts or retries.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { Redis } from 'ioredis';
import { Agent } from 'undici';
import { setUncopied } from '../../../src/redis/uncopied-set.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { withLargeAof } from './redis-options.ts';

export interface BareRelay {
  origin: string;
  pids: number[];
  stop(): Promise<void>;
}

const pieceBytes = 524_288;
const piecesUnderWay = 4;
const queue = 'queue';

/** Relays what comes to `/<name>` to the receiver of that name, over a Redis of its own with AOF everysec. */
export async function startBareRelay(receivers: Record<string, string>): Promise<BareRelay> {
  const redis = await startRedis(withLargeAof);
  const start = (role: 'ingest' | 'delivery'): ChildProcess =>
    fork(new URL(import.meta.url).pathname, [role, redis.url, JSON.stringify(receivers)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  const children = [start('ingest'), start('delivery')];
  const [[port]] = (await Promise.all(children.map((child) => once(child, 'message')))) as [[number], [number]];
  return {
    origin: `http://127.0.0.1:${port}`,
    pids: [redis.pid, ...children.map(({ pid = 0 }) => pid)],
    stop: async () => {
      for (const child of children) child.kill();
      await redis.stop();
    },
  };
}

async function inPieces(bytes: number, work: (k: number) => Promise<unknown>): Promise<void> {
  const count = Math.ceil(bytes / pieceBytes);
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: piecesUnderWay }, one));
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const body = Buffer.allocUnsafeSlow(Number(request.headers['content-length']));
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) size += chunk.copy(body, size);
  return body;
}

async function take(redis: Redis, request: IncomingMessage, id: string): Promise<void> {
  const body = await bodyOf(request);
  await inPieces(body.length, (k) => setUncopied(redis, `${id}:${k}`, body.subarray(k * pieceBytes, (k + 1) * pieceBytes), []));
  await redis.rpush(queue, JSON.stringify({ id, bytes: body.length, receiver: request.url?.slice(1) }));
}

function startIngest(redis: Redis, say: (port: number) => void): void {
  let taken = 0;
  const server = createServer((request, response) => {
    void take(redis, request, String(taken++)).then(() => response.end('ok'));
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    say(typeof address === 'object' && address !== null ? address.port : 0);
  });
}

async function deliver(redis: Redis, waiting: Redis, receivers: Record<string, string>): Promise<void> {
  const agent = new Agent();
  const send = async (entry: string): Promise<void> => {
    const { id, bytes, receiver } = JSON.parse(entry);
    const body = Buffer.allocUnsafeSlow(bytes);
    await inPieces(bytes, async (k) => (await redis.getBuffer(`${id}:${k}`))?.copy(body, k * pieceBytes));
    const { body: answer } = await agent.request({ origin: receivers[receiver] ?? '', path: '/', method: 'POST', body });
    await answer.dump();
    await inPieces(bytes, (k) => redis.unlink(`${id}:${k}`));
  };
  for (;;) {
    const [, entry = ''] = (await waiting.blpop(queue, 0)) ?? [];
    void send(entry);
  }
}

const [role, url = '', receivers = '{}'] = process.argv.slice(2);
if (process.send !== undefined && (role === 'ingest' || role === 'delivery')) {
  const say = (port: number): void => void process.send?.(port);
  process.on('disconnect', () => process.exit());
  if (role === 'ingest') startIngest(new Redis(url), say);
  else {
    say(0);
    void deliver(new Redis(url), new Redis(url), JSON.parse(receivers));
  }
}
