import { once } from 'node:events';
import { readFile, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { kindOf, openRules, posted, RawReceivers } from '../../../../test/support/raw-receivers.ts';
import { systemClock } from '../../../runtime/system-clock.ts';
import { attemptRecord } from '../../attempts/attempt-outcome.ts';
import { Transport } from '../warehouse/transport.ts';
import { Dispatchers } from './dispatchers.ts';
import { errorMessage } from './error-type.ts';
import { exchange, type HttpResult } from './http-exchange.ts';
import { SentSecrets } from './sent-secrets.ts';

/** For those that are cut off; the others have time enough. */
const shortMs = 400;

const receivers = new RawReceivers();
afterEach(() => receivers.close());

/** Writes a beginning, and then the same again and again until the socket is closed. */
function drip(socket: Socket, text: string, everyMs: number, beginning = ''): void {
  socket.write(beginning);
  const timer = setInterval(() => socket.write(text), everyMs);
  socket.on('close', () => clearInterval(timer));
}

describe('a receiver', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['says nothing', () => {}],
    ['sends its headers byte by byte', (socket) => drip(socket, 'x', 20, 'HTTP/1.1 200 OK\r\nx-name-without-end')],
    ['never ends its headers', (socket) => drip(socket, 'x-a: b\r\n', 20, 'HTTP/1.1 200 OK\r\n')],
    ['sends 1xx answers without end', (socket) => drip(socket, 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n', 5)],
    ['drips its body', (socket) => drip(socket, 'x', 20, 'HTTP/1.1 200 OK\r\ncontent-length: 10000\r\n\r\n')],
    ['sends less than it announced', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort')],
    ['begins a chunk and stops', (socket) => socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffff\r\nx')],
  ])('a receiver that %s is cut off by the one deadline', async (_, answer) => {
    const port = await receivers.listen((socket) => answer(socket));
    expect(kindOf(await receivers.post(`http://127.0.0.1:${port}`, { deadlineMs: shortMs }))).toBe('timeout');
  });

  test.each<[string, string | Buffer]>([
    ['has headers of 1 MB', `HTTP/1.1 200 OK\r\nx-big: ${'x'.repeat(1_048_576)}\r\n\r\n`],
    ['speaks something else', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['announces two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok'],
    ['announces a length that is none', 'HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nok'],
    ['sends a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['switches protocols', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'],
  ])('a receiver that %s has failed', async (_, bytes) => {
    const port = await receivers.listen((socket) => socket.end(bytes));
    expect(kindOf(await receivers.post(`http://127.0.0.1:${port}`))).toBe('network');
  });

  test('a receiver whose status is below 100 has failed, and the error says why in the words of HTTP', async () => {
    const port = await receivers.listen((socket) => socket.end('HTTP/1.1 000 Odd\r\ncontent-length: 0\r\n\r\n'));
    const result = await receivers.post(`http://127.0.0.1:${port}`);
    expect(attemptRecord(result, { expectedResponse: null }, { startedAtMs: 0, endedAtMs: 1 })).toMatchObject({
      errorType: 'network',
      errorMessage: 'Response does not match the HTTP/1.1 protocol',
    });
  });

  const policies = (count: number): string => Array.from({ length: count }, (_, i) => `x-policy-${i}: ${'x'.repeat(1000)}\r\n`).join('');
  test.each([
    ['one header of 17 KiB', `x-big: ${'x'.repeat(17 * 1024)}\r\n`],
    ['one header of 63 KiB', `x-big: ${'x'.repeat(63 * 1024)}\r\n`],
    ['60 headers of 1 KB', policies(60)],
    ['5000 headers', 'x-a: b\r\n'.repeat(5000)],
    ['30 KiB of early hints, and 40 KiB of headers', `link: ${'x'.repeat(30 * 1024)}\r\n\r\nHTTP/1.1 200 OK\r\n${policies(40)}`],
  ])('a receiver that answers with %s is understood', async (what, headers) => {
    const first = what.includes('hints') ? '103 Early Hints' : '200 OK';
    const port = await receivers.listen((socket) =>
      socket.end(`HTTP/1.1 ${first}\r\n${headers}retry-after: 7\r\ncontent-length: 2\r\n\r\nok`),
    );
    expect(await receivers.post(`http://127.0.0.1:${port}`)).toMatchObject({ status: 200, retryAfter: '7', body: Buffer.from('ok') });
  });

  test.each([
    ['one header of 64 KiB', `x-big: ${'x'.repeat(64 * 1024)}\r\n`],
    ['70 headers of 1 KB', policies(70)],
    ['a header without end', `x-big: ${'x'.repeat(1_048_576)}`],
  ])('a receiver that answers with %s has failed, and the error says why', async (_, headers) => {
    const port = await receivers.listen((socket) => socket.write(`HTTP/1.1 200 OK\r\n${headers}\r\n`));
    const result = await receivers.post(`http://127.0.0.1:${port}`);
    expect(attemptRecord(result, { expectedResponse: null }, { startedAtMs: 0, endedAtMs: 1 })).toMatchObject({
      errorType: 'network',
      errorMessage: 'the headers of the response are larger than 64 KiB',
    });
  });

  test('a receiver that is an object store may answer with large headers, too, and beyond the bound the error says why', async () => {
    const pools = new Dispatchers({ connections: 4, clock: systemClock });
    receivers.closeAfterwards(pools);
    const port = await receivers.listen((socket, request) => {
      const size = request.includes('/larger') ? 65 : 60;
      socket.write(`HTTP/1.1 200 OK\r\nx-big: ${'x'.repeat(size * 1024)}\r\ncontent-length: 0\r\n\r\n`);
    });
    const put = async (path: string, how: 'send' | 'fetch'): Promise<number> => {
      const transport = new Transport(pools.forRules(openRules)(), new AbortController().signal);
      const url = `http://127.0.0.1:${port}${path}`;
      const sent =
        how === 'send'
          ? transport.send({ url, method: 'PUT', headers: {}, body: 'x' })
          : transport.fetch(url, { method: 'PUT', body: 'x' });
      const { status } = await sent.catch(() => {
        throw transport.error;
      });
      return status;
    };
    for (const how of ['send', 'fetch'] as const) {
      expect(await put('/', how)).toBe(200);
      const error = await put('/larger', how).then(String, (thrown: Error) => errorMessage(thrown));
      expect(error).toBe('the headers of the response are larger than 64 KiB');
    }
  });

  test('a receiver that is an object store may answer with 32 KiB, which its SDK reads in one piece, and with more it has failed', async () => {
    const pools = new Dispatchers({ connections: 4, clock: systemClock });
    receivers.closeAfterwards(pools);
    const port = await receivers.listen((socket, request) => {
      const body = ' '.repeat(request.includes('/larger') ? 32 * 1024 + 1 : 32 * 1024);
      socket.end(`HTTP/1.1 403 Forbidden\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    });
    const transport = new Transport(pools.forRules(openRules)(), new AbortController().signal);
    const put = async (path: string): Promise<number> =>
      (await transport.send({ url: `http://127.0.0.1:${port}${path}`, method: 'PUT', headers: {}, body: 'x' })).status;
    expect(await put('/')).toBe(403);
    await expect(put('/larger')).rejects.toThrow('the answer of the store is too large');
  });

  test.each(['100 Continue', '103 Early Hints'])(
    'a receiver may send a hundred interim responses %s, and has failed with more',
    async (head) => {
      const answering = (count: number): Promise<number> =>
        receivers.listen((socket) => {
          socket.write(`HTTP/1.1 ${head}\r\n\r\n`.repeat(count));
          socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
        });
      expect(kindOf(await receivers.post(`http://127.0.0.1:${await answering(100)}`))).toBe('200');
      const result = await receivers.post(`http://127.0.0.1:${await answering(101)}`);
      expect([kindOf(result), result.type === 'error' && result.error.message]).toEqual([
        'network',
        'the response has more than 100 interim responses',
      ]);
    },
  );

  test('a receiver that closes or resets the connection has failed', async () => {
    const closing = await receivers.listen((socket) => socket.end());
    expect(kindOf(await receivers.post(`http://127.0.0.1:${closing}`))).toBe('network');
    const resetting = await receivers.listen((socket) => socket.resetAndDestroy());
    expect(kindOf(await receivers.post(`http://127.0.0.1:${resetting}`))).toBe('network');
  });

  test('a receiver with a body of 100 MB is read for 16 KiB', async () => {
    let written = 0;
    const port = await receivers.listen((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${100 * 1_048_576}\r\n\r\n`);
      const more = (): void => {
        for (let isFree = true; isFree && written < 100 * 1_048_576; written += 65_536) isFree = socket.write(Buffer.alloc(65_536));
      };
      socket.on('drain', more);
      more();
    });
    const result = await receivers.post(`http://127.0.0.1:${port}`);
    expect(result).toMatchObject({ type: 'response', status: 200 });
    expect(result.type === 'response' && result.body.length).toBe(16_384);
    expect(written).toBeLessThan(20 * 1_048_576);
  });

  test('a receiver with a gzip bomb gets nothing unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1_048_576));
    const port = await receivers.listen((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
      socket.write(bomb);
    });
    const before = process.memoryUsage().rss;
    const result = await receivers.post(`http://127.0.0.1:${port}`);
    expect(result.type === 'response' && result.body.equals(bomb.subarray(0, 16_384))).toBe(true);
    expect(process.memoryUsage().rss - before).toBeLessThan(40 * 1_048_576);
  });

  test('a receiver that redirects is not followed', async () => {
    let requests = 0;
    const port = await receivers.listen((socket) => {
      requests++;
      socket.end(`HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:${port}/other\r\ncontent-length: 0\r\n\r\n`);
    });
    expect(kindOf(await receivers.post(`http://127.0.0.1:${port}`))).toBe('307');
    expect(requests).toBe(1);
  });
});

test('an exchange whose signal is aborted before it begins sends nothing, and ends at once', async () => {
  const texts: string[] = [];
  const port = await receivers.listen((_, request) => texts.push(request));
  const pools = new Dispatchers({ connections: 1, clock: systemClock });
  receivers.closeAfterwards(pools);
  const request = { origin: `http://127.0.0.1:${port}`, ...posted };
  const options = { timeoutMs: 600_000, clock: systemClock, signal: AbortSignal.abort() };
  const result = await exchange(pools.forRules(openRules)(), request, options);
  expect(result).toMatchObject({ type: 'error', error: { message: 'the worker stops' } });
  expect(texts).toEqual([]);
});

describe('a connection that is kept for the next request', () => {
  /** Answers one request on each connection, then runs a command; in a thread of its own, because it must run while this one is blocked. */
  const threadText = `
    const { parentPort } = require('node:worker_threads');
    const sockets = new Set();
    let requests = 0;
    const server = require('node:net').createServer((socket) => {
      sockets.add(socket);
      let isFirst = true;
      socket.on('error', () => {}).on('data', () => {
        requests++;
        if (isFirst) socket.write('HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok');
        else socket.destroy();
        isFirst = false;
      });
    });
    const orders = {
      close: () => sockets.forEach((socket) => socket.destroy()),
      reset: () => sockets.forEach((socket) => socket.resetAndDestroy()),
      answer: () => sockets.forEach((socket) => socket.end('HTTP/1.1 299 Unasked\\r\\ncontent-length: 2\\r\\n\\r\\nno')),
      complain: () => sockets.forEach((socket) => socket.end('HTTP/1.1 408 Request Timeout\\r\\nconnection: close\\r\\n\\r\\n')),
      count: () => parentPort.postMessage({ connections: sockets.size, requests }),
    };
    parentPort.on('message', (order) => orders[order]());
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
  `;
  let thread: Worker;
  let port: number;
  let pools: Dispatchers;

  beforeEach(async () => {
    thread = new Worker(threadText, { eval: true });
    [port] = (await once(thread, 'message')) as [number];
    pools = new Dispatchers({ connections: 1, clock: systemClock });
    receivers.closeAfterwards(pools);
    expect(kindOf(await send())).toBe('200');
  });
  afterEach(() => thread.terminate());

  const send = (): Promise<HttpResult> => {
    const request = { origin: `http://127.0.0.1:${port}`, ...posted };
    return exchange(pools.forRules(openRules)(), request, { timeoutMs: 60_000, clock: systemClock, signal: new AbortController().signal });
  };
  const count = async (): Promise<unknown> => {
    thread.postMessage('count');
    return (await once(thread, 'message'))[0];
  };
  /** Whether the kernel still has this side's end of a connection to the receiver. */
  const stands = (): boolean => {
    const remote = port.toString(16).toUpperCase().padStart(4, '0');
    return new RegExp(` [0-9A-F]{8}:${remote} 01 `).test(readFileSync('/proc/net/tcp', 'utf8'));
  };
  /** While this thread is blocked: its event loop learns of nothing meanwhile. */
  const standStillUntilClosed = (): void => {
    const sleeper = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < 6000 && stands(); i++) Atomics.wait(sleeper, 0, 0, 5);
    expect(stands()).toBe(false);
  };

  describe.each(['close', 'reset', 'answer', 'complain'])('and ends by %s', (order) => {
    test.each<[string, (callback: () => void) => void]>([
      ['a callback of I/O', (callback) => readFile(import.meta.filename, callback)],
      ['a timer', (callback) => setTimeout(callback, 1)],
      ['a turn of its own', (callback) => setImmediate(callback)],
    ])('is not used by an attempt that begins later, in %s', async (_, later) => {
      const result = await new Promise<HttpResult>((resolve) => {
        later(() => {
          thread.postMessage(order);
          standStillUntilClosed();
          resolve(send());
        });
      });
      expect(kindOf(result)).toBe('200');
      expect(await count()).toEqual({ connections: 2, requests: 2 });
    });
  });

  test('and closes when the request has been written fails the attempt: it is not sent twice', async () => {
    expect(kindOf(await send())).toBe('network');
    expect(await count()).toEqual({ connections: 1, requests: 2 });
  });
});

describe('a connection on which more came than was announced', () => {
  const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
  /** Returns the first request with `leftover` after the answer, in the same segment, and others alone. */
  const start = async (
    answer: string,
    leftover: string,
  ): Promise<{ send: (method?: 'GET' | 'POST') => Promise<string>; asked: () => number }> => {
    let asked = 0;
    const port = await receivers.listen((socket) => socket.write(asked++ === 0 ? answer + leftover : ok));
    const pools = new Dispatchers({ connections: 1, clock: systemClock });
    receivers.closeAfterwards(pools);
    const send = async (method: 'GET' | 'POST' = 'POST'): Promise<string> => {
      const request = {
        origin: `http://127.0.0.1:${port}`,
        path: '/',
        method,
        headers: [],
        body: method === 'GET' ? null : Buffer.from('{}'),
        secrets: SentSecrets.none,
      };
      const options = { timeoutMs: 60_000, clock: systemClock, signal: new AbortController().signal };
      return kindOf(await exchange(pools.forRules(openRules)(), request, options));
    };
    return { send, asked: () => asked };
  };

  describe.each([
    ['of a length', ok],
    ['in chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
    ['without a body', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ])('after an answer %s', (_, answer) => {
    test.each([
      ['a whole answer', 'HTTP/1.1 299 Leftover\r\ncontent-length: 2\r\n\r\nno'],
      ['a line and an answer', '\r\nHTTP/1.1 299 Leftover\r\ncontent-length: 0\r\n\r\n'],
      ['the beginning of an answer', 'HTTP/1.1 299 Left'],
      ['what is no HTTP', 'and more'],
    ])('gives %s to no later attempt', async (__, leftover) => {
      const { send, asked } = await start(answer, leftover);
      expect(await send()).toMatch(/^20[04]$/);
      expect(await send()).toBe('200');
      expect(await send()).toBe('200');
      expect(asked()).toBe(3);
    });
  });

  test.each(['GET', 'POST'] as const)(
    'a connection on which more came than was announced gives it to no attempt that waits for the connection, made with %s',
    async (method) => {
      const { send, asked } = await start(ok, 'HTTP/1.1 299 Leftover\r\ncontent-length: 2\r\n\r\nno'.repeat(3));
      expect(await Promise.all([send(method), send(method), send(method)])).toEqual(['200', '200', '200']);
      expect(asked()).toBe(3);
    },
  );
});
