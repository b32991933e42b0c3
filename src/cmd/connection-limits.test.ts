import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { RequestListener, Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { expectShortTurns } from '../../test/support/short-work.ts';
import { createHttpServer, type HttpServerOptions } from './http-server.ts';
import { createOpsServer, opsHandler } from './ops-server.ts';
import { Readiness } from './readiness.ts';

const ok: RequestListener = (_request, response) => void response.end('ok');
const sockets: Socket[] = [];
let server: Server | null = null;

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.close();
  server?.closeAllConnections();
  server = null;
});

async function serve(options: HttpServerOptions, handler = ok): Promise<number> {
  server = createHttpServer(handler, options).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  socket.resume();
  return socket;
}

/** Whether the server closes it within the time. */
function isClosed(socket: Socket, withinMs: number): Promise<boolean> {
  if (socket.closed) return Promise.resolve(true);
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), withinMs);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

test('a connection that sends nothing is closed, and one that has made a request is kept for the next one', async () => {
  const port = await serve({ limits: { firstRequestMs: 3000 } });
  const used = await open(port);
  used.write(request);
  await once(used, 'data');
  const silent = await open(port);
  expect(await isClosed(silent, 30_000)).toBe(true);
  // It was opened before the other one.
  expect(await isClosed(used, 500)).toBe(false);
});

test('an answer that takes longer than the first request may is waited for', async () => {
  const port = await serve({ limits: { firstRequestMs: 2000 } }, (_request, response) => void setTimeout(() => response.end('late'), 3000));
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  expect(await answer.text()).toBe('late');
});

test('a connection on which nothing moves while its request is under way is closed', async () => {
  const port = await serve({ limits: { idleMs: 300 } }, () => undefined);
  const socket = await open(port);
  socket.write(request);
  expect(await isClosed(socket, 30_000)).toBe(true);
});

test('an address holds its share of the connections and no more, and gets another when one has ended', async () => {
  const port = await serve({ limits: { maxPerAddress: 2 } });
  const [first, second, third] = [await open(port), await open(port), await open(port)];
  expect(await isClosed(third, 30_000)).toBe(true);
  expect([first.closed, second.closed]).toEqual([false, false]);
  first.destroy();
  await once(first, 'close');
  await eventually('another connection', 30_000, async () => {
    const next = await open(port);
    next.write(request);
    return (await isClosed(next, 300)) ? undefined : true;
  });
});

test('a trusted proxy has the connections of many clients', async () => {
  const port = await serve({ limits: { maxPerAddress: 1 }, trustedProxies: ['127.0.0.0/8'] });
  const connections = [await open(port), await open(port), await open(port)];
  expect(await Promise.all(connections.map((each) => isClosed(each, 200)))).toEqual([false, false, false]);
});

test('a process has as many connections as it may, and closes further ones', async () => {
  const port = await serve({ limits: { maxConnections: 2 } });
  const connections = [await open(port), await open(port), await open(port)];
  expect(await isClosed(connections[2] as Socket, 30_000)).toBe(true);
  expect(await Promise.all(connections.map((each) => isClosed(each, 200)))).toEqual([false, false, true]);
});

test('1,000 connections that say nothing, and 1,000 that send their headers slowly, do not delay the requests of others', async () => {
  const port = await serve({});
  const slow: Socket[] = [];
  // No more at once than the system holds for a server before it takes them.
  while (slow.length < 2000) slow.push(...(await Promise.all(Array.from({ length: 100 }, () => open(port)))));
  const trickling = slow.slice(0, 1000);
  for (const socket of trickling) socket.write('POST /ingest/a/b HTTP/1.1\r\n');
  const trickle = setInterval(() => {
    for (const socket of trickling) if (socket.writable) socket.write('X-A: b\r\n');
  }, 500);
  try {
    await expectShortTurns(50, async () => {
      for (let i = 0; i < 100; i++) {
        const answer = await fetch(`http://127.0.0.1:${port}/`);
        expect(await answer.text()).toBe('ok');
      }
    });
    expect((await Promise.all(slow.map((each) => isClosed(each, 60_000)))).filter(Boolean)).toHaveLength(2000);
  } finally {
    clearInterval(trickle);
  }
}, 180_000);

test('concurrent requests for metrics share one computation', async () => {
  let [requests, computations] = [0, 0];
  const metrics = async () => {
    computations += 1;
    await eventually('all to have asked', 30_000, () => requests >= 8);
    return { contentType: new Registry().contentType, text: 'up 1\n' };
  };
  server = createOpsServer(opsHandler({ readiness: new Readiness([]), logger: silentLogger, metrics })).listen(0, '127.0.0.1');
  server.on('request', () => {
    requests += 1;
  });
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
  const texts = await Promise.all(Array.from({ length: 8 }, async () => (await fetch(url)).text()));
  expect([new Set(texts), computations]).toEqual([new Set(['up 1\n']), 1]);
  await (await fetch(url)).text();
  expect(computations).toBe(2);
});

test('every server of the program is made by one function', () => {
  const source = join(import.meta.dirname, '..');
  const makers = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .filter((file) => /\bcreateServer\(/.test(readFileSync(join(source, file), 'utf8')));
  expect(makers).toEqual(['cmd/http-server.ts']);
});
