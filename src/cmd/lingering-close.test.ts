import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { type PacedRequest, sendPaced } from '../../test/support/paced-sender.ts';
import { patientServer } from '../../test/support/patient-server.ts';
import type { HttpServerOptions } from './http-server.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

const refuse: RequestListener = (_request, response) => {
  response.writeHead(404, { 'Content-Type': 'text/plain' }).end('nothing here');
};

async function serve(handler: RequestListener, lingering?: NonNullable<HttpServerOptions['limits']>['lingering']): Promise<number> {
  const server = patientServer(handler, { limits: { lingering } });
  server.listen(0, '127.0.0.1');
  ends.push(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const heads = {
  'that says Connection: close': (bytes: number) => `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`,
  'of HTTP/1.0': (bytes: number) => `POST / HTTP/1.0\r\nContent-Length: ${bytes}\r\n\r\n`,
  'without a Host header': (bytes: number) => `POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`,
};
const closing = heads['that says Connection: close'];
const chunked = 'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
const outcome = (port: number, request: PacedRequest): Promise<string> =>
  sendPaced(port, request).then(
    (answer) => answer.slice(0, 'HTTP/1.1 404'.length),
    () => 'cut',
  );

describe('a refused body is read to its end', () => {
  test.each(Object.entries(heads).flatMap(([name, head]) => [100_000, 300_000, 3_000_000].map((bytes) => [name, bytes, head] as const)))(
    'of a request %s with %i bytes',
    async (_, bytes, head) => {
      const answer = await sendPaced(await serve(refuse), { head: head(bytes), bytes });
      expect(answer).toMatch(head === heads['without a Host header'] ? /^HTTP\/1.1 400 / : /^HTTP\/1.1 404 [\s\S]*nothing here/);
    },
  );

  test.each<[string, RequestListener]>([
    ['has read a part of it', (request, response) => request.once('data', () => response.writeHead(404).end())],
    [
      'has stopped reading it',
      (request, response) => {
        request.once('data', () => {
          request.pause();
          response.writeHead(404).end();
        });
      },
    ],
    ['ends the connection itself', (_, response) => response.writeHead(404, { Connection: 'close' }).end()],
  ])('a refused body is read to its end when the handler %s', async (_, handler) => {
    expect(await outcome(await serve(handler), { head: closing(1_000_000), bytes: 1_000_000 })).toBe('HTTP/1.1 404');
  });

  test('a refused body that a client sends in chunks is read to its end', async () => {
    const socket = connect(await serve(refuse), '127.0.0.1');
    ends.push(() => socket.destroy());
    socket.write(chunked);
    for (let i = 0; i < 20; i++) {
      socket.write(`4000\r\n${'x'.repeat(0x4000)}\r\n`);
      await sleep(2);
    }
    socket.write('0\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1.1 404 /);
  });
});

describe('a connection is cut', () => {
  /** Milliseconds from the request to the end of the connection, for a client that never ends its body. */
  async function cutAfter(port: number, head: string, more?: Buffer): Promise<number> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
    ends.push(() => socket.destroy());
    const startedMs = performance.now();
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume().write(head);
    const timer = setInterval(() => socket.write(more ?? 'x'), 5);
    await closed;
    clearInterval(timer);
    return performance.now() - startedMs;
  }

  test('a connection is cut when the body does not end in time', async () => {
    const passedMs = await cutAfter(await serve(refuse, { maxMs: 300 }), closing(1_000_000));
    expect(passedMs).toBeGreaterThan(250);
    expect(passedMs).toBeLessThan(30_000);
  });

  test('a connection is cut when the body is larger than the bound', async () => {
    const port = await serve(refuse, { maxBytes: 200_000 });
    expect(await cutAfter(port, closing(1_000_000_000), Buffer.alloc(10_000))).toBeLessThan(30_000);
  });

  test.each(['maxConnections', 'maxPerAddress'] as const)(
    'a connection is cut when there are as many as %s already, until one of them ends',
    async (limit) => {
      const port = await serve(refuse, { [limit]: 1 });
      const held = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      ends.push(() => held.destroy());
      held.write(closing(10));
      await once(held, 'data');
      const request = { head: closing(3_000_000), bytes: 3_000_000 };
      expect(await outcome(port, request)).toBe('cut');
      held.end('x'.repeat(10));
      await once(held, 'close');
      expect(await outcome(port, request)).toBe('HTTP/1.1 404');
    },
  );

  test('a connection is cut at once when the whole body was read before the answer', async () => {
    const port = await serve((request, response) => request.resume().once('end', () => response.end('ok')), { maxMs: 60_000 });
    const startedMs = performance.now();
    expect(await sendPaced(port, { head: closing(10), bytes: 10 })).toContain('ok');
    expect(performance.now() - startedMs).toBeLessThan(30_000);
  });
});
