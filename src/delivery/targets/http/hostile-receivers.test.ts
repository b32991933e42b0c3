import { once } from 'node:events';
import { readFile, readFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Agent } from 'undici';
import { type CertificateAuthority, createCertificateAuthority } from '../../../../test/support/certificate-authority.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { SentSecrets } from '../sent-secrets.ts';
import { type ConnectionRules, Dispatchers } from './dispatchers.ts';
import { EgressPolicy, RefusedAddresses } from './egress-policy.ts';
import { errorType } from './error-type.ts';
import { guardedConnector } from './guarded-connector.ts';
import { exchange, type HttpResult } from './http-exchange.ts';

const posted = { path: '/', method: 'POST' as const, headers: [], body: Buffer.from('{}'), secrets: SentSecrets.none };
const egress = { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] };
const open: ConnectionRules = { egress, tls: null, usesProxy: false };
/** For those that are cut off; the others have time enough. */
const shortMs = 400;

let authority: CertificateAuthority;
let servers: { server: Server; sockets: Set<Socket> }[] = [];
let dispatchers: Dispatchers[] = [];

beforeAll(() => {
  authority = createCertificateAuthority();
});
afterAll(() => authority.remove());
afterEach(async () => {
  await Promise.all(dispatchers.map((each) => each.close()));
  for (const { server, sockets } of servers) {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
  servers = [];
  dispatchers = [];
});

/** A server that does as told with every connection, once the first bytes of a request are there; answers its port. */
async function listen(onRequest: (socket: Socket, request: string) => void, tls?: TlsOptions): Promise<number> {
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
  servers.push({ server, sockets });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function post(
  origin: string,
  { rules = open, proxyUrl, deadlineMs = 30_000 }: { rules?: ConnectionRules; proxyUrl?: string; deadlineMs?: number } = {},
): Promise<HttpResult> {
  const pools = new Dispatchers({ connections: 4, ...(proxyUrl !== undefined && { proxyUrl }) });
  dispatchers.push(pools);
  const request = { origin, ...posted };
  const signal = new AbortController().signal;
  return await exchange(pools.forRules(rules)(), request, { timeoutMs: deadlineMs, clock: systemClock, signal });
}

const kindOf = (result: HttpResult): string => (result.type === 'error' ? errorType(result.error) : String(result.status));

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
  ])('that %s is cut off by the one deadline', async (_, answer) => {
    const port = await listen((socket) => answer(socket));
    expect(kindOf(await post(`http://127.0.0.1:${port}`, { deadlineMs: shortMs }))).toBe('timeout');
  });

  test.each<[string, string | Buffer]>([
    ['has headers of 1 MB', `HTTP/1.1 200 OK\r\nx-big: ${'x'.repeat(1_048_576)}\r\n\r\n`],
    ['speaks something else', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['announces two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok'],
    ['announces a length that is none', 'HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nok'],
    ['sends a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['switches protocols', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'],
  ])('that %s has failed', async (_, bytes) => {
    const port = await listen((socket) => socket.end(bytes));
    expect(kindOf(await post(`http://127.0.0.1:${port}`))).toBe('network');
  });

  test('that closes or resets the connection has failed', async () => {
    const closing = await listen((socket) => socket.end());
    expect(kindOf(await post(`http://127.0.0.1:${closing}`))).toBe('network');
    const resetting = await listen((socket) => socket.resetAndDestroy());
    expect(kindOf(await post(`http://127.0.0.1:${resetting}`))).toBe('network');
  });

  test('with a body of 100 MB is read for 16 KiB', async () => {
    let written = 0;
    const port = await listen((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${100 * 1_048_576}\r\n\r\n`);
      const more = (): void => {
        for (let isFree = true; isFree && written < 100 * 1_048_576; written += 65_536) isFree = socket.write(Buffer.alloc(65_536));
      };
      socket.on('drain', more);
      more();
    });
    const result = await post(`http://127.0.0.1:${port}`);
    expect(result).toMatchObject({ type: 'response', status: 200 });
    expect(result.type === 'response' && result.body.length).toBe(16_384);
    expect(written).toBeLessThan(20 * 1_048_576);
  });

  test('with a gzip bomb gets nothing unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1_048_576));
    const port = await listen((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
      socket.write(bomb);
    });
    const before = process.memoryUsage().rss;
    const result = await post(`http://127.0.0.1:${port}`);
    expect(result.type === 'response' && result.body.equals(bomb.subarray(0, 16_384))).toBe(true);
    expect(process.memoryUsage().rss - before).toBeLessThan(40 * 1_048_576);
  });

  test('that redirects is not followed', async () => {
    let requests = 0;
    const port = await listen((socket) => {
      requests++;
      socket.end(`HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:${port}/other\r\ncontent-length: 0\r\n\r\n`);
    });
    expect(kindOf(await post(`http://127.0.0.1:${port}`))).toBe('307');
    expect(requests).toBe(1);
  });
});

describe('a connection that is kept for the next request', () => {
  /** Answers one request on each connection, and does as it is told then; in a thread of its own, for it has to go on while this one stands still. */
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
    pools = new Dispatchers({ connections: 1 });
    dispatchers.push(pools);
    expect(kindOf(await send())).toBe('200');
  });
  afterEach(() => thread.terminate());

  const send = (): Promise<HttpResult> => {
    const request = { origin: `http://127.0.0.1:${port}`, ...posted };
    return exchange(pools.forRules(open)(), request, { timeoutMs: 60_000, clock: systemClock, signal: new AbortController().signal });
  };
  const count = async (): Promise<unknown> => {
    thread.postMessage('count');
    return (await once(thread, 'message'))[0];
  };
  /** Whether this side's end of a connection to the receiver still stands, as the kernel knows it. */
  const stands = (): boolean => {
    const remote = port.toString(16).toUpperCase().padStart(4, '0');
    return new RegExp(` [0-9A-F]{8}:${remote} 01 `).test(readFileSync('/proc/net/tcp', 'utf8'));
  };
  /** While this thread does nothing else: when it goes on, its event loop has not heard of it. */
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
  /** Answers the first request with `leftover` after the answer, in the same segment, and others alone. */
  const start = async (
    answer: string,
    leftover: string,
  ): Promise<{ send: (method?: 'GET' | 'POST') => Promise<string>; asked: () => number }> => {
    let asked = 0;
    const port = await listen((socket) => socket.write(asked++ === 0 ? answer + leftover : ok));
    const pools = new Dispatchers({ connections: 1 });
    dispatchers.push(pools);
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
      return kindOf(await exchange(pools.forRules(open)(), request, options));
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

  test.each(['GET', 'POST'] as const)('gives it to no attempt that waits for the connection, made with %s', async (method) => {
    const { send, asked } = await start(ok, 'HTTP/1.1 299 Leftover\r\ncontent-length: 2\r\n\r\nno'.repeat(3));
    expect(await Promise.all([send(method), send(method), send(method)])).toEqual(['200', '200', '200']);
    expect(asked()).toBe(3);
  });
});

describe('TLS', () => {
  const answer = (socket: Socket): unknown => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  const trusting = (own: Partial<NonNullable<ConnectionRules['tls']>> = {}): ConnectionRules => ({
    ...open,
    tls: { ca: authority.text, cert: null, key: null, ...own },
  });

  test('an authority of the destination is trusted, and no other then', async () => {
    const port = await listen(answer, authority.issue(['127.0.0.1']));
    expect(kindOf(await post(`https://127.0.0.1:${port}`, { rules: trusting() }))).toBe('200');
    expect(kindOf(await post(`https://127.0.0.1:${port}`))).toBe('tls');
    const other = createCertificateAuthority();
    expect(kindOf(await post(`https://127.0.0.1:${port}`, { rules: trusting({ ca: other.text }) }))).toBe('tls');
    other.remove();
  });

  test.each<[string, () => TlsOptions]>([
    ['an expired certificate', () => authority.issue(['127.0.0.1'], -1)],
    ['a certificate of another host', () => authority.issue(['127.0.0.2'])],
    [
      'an old protocol',
      () => ({ ...authority.issue(['127.0.0.1']), maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }),
    ],
  ])('%s is refused', async (_, options) => {
    const port = await listen(answer, options());
    expect(kindOf(await post(`https://127.0.0.1:${port}`, { rules: trusting() }))).toBe('tls');
  });

  test('a certificate is shown to a receiver that asks for one', async () => {
    const shown: string[] = [];
    const server = { ...authority.issue(['127.0.0.1']), ca: authority.text, requestCert: true, rejectUnauthorized: true };
    const port = await listen((socket) => {
      if ('getPeerCertificate' in socket && typeof socket.getPeerCertificate === 'function')
        shown.push(socket.getPeerCertificate().subject.CN);
      answer(socket);
    }, server);
    const own = authority.issue(['10.0.0.1']);
    const rules = trusting({ cert: own.cert.toString(), key: own.key.toString() });
    expect(kindOf(await post(`https://127.0.0.1:${port}`, { rules }))).toBe('200');
    expect(shown).toEqual([expect.stringMatching(/^server-/)]);
    expect((await post(`https://127.0.0.1:${port}`, { rules: trusting() })).type).toBe('error');
  });
});

describe('the egress proxy', () => {
  const proxied: ConnectionRules = { ...open, usesProxy: true };

  /** A proxy that notes what it is asked for and passes everything to this port. */
  async function startProxy(target: number, asked: string[]): Promise<number> {
    return await listen((socket, request) => {
      asked.push(request);
      const through = connect(target, '127.0.0.1', () => {
        socket.removeAllListeners('data');
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        socket.pipe(through).pipe(socket);
      });
      through.on('error', () => socket.destroy());
      socket.on('close', () => through.destroy());
    });
  }

  test('carries plain and TLS deliveries to the address that was checked', async () => {
    const answer = (socket: Socket): unknown => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    const asked: string[] = [];
    const plain = await listen(answer);
    const proxyUrl = `http://me:se%3Acret@127.0.0.1:${await startProxy(plain, asked)}`;
    expect(
      kindOf(
        await post(`http://localhost:${plain}`, {
          rules: { ...proxied, egress: { ...egress, allowedCidrs: ['127.0.0.0/8', '::1/128'] } },
          proxyUrl,
        }),
      ),
    ).toBe('200');
    expect(asked[0]).toMatch(new RegExp(`^CONNECT (127\\.0\\.0\\.1|\\[::1\\]):${plain} HTTP/1.1\r\n`));
    expect(asked[0]?.toLowerCase()).toContain(`proxy-authorization: basic ${Buffer.from('me:se:cret').toString('base64').toLowerCase()}`);
    const secure = await listen(answer, authority.issue(['127.0.0.1']));
    const rules = { ...proxied, tls: { ca: authority.text, cert: null, key: null } };
    const secureProxy = `http://127.0.0.1:${await startProxy(secure, asked)}`;
    expect(kindOf(await post(`https://127.0.0.1:${secure}`, { rules, proxyUrl: secureProxy }))).toBe('200');
    expect(kindOf(await post(`https://127.0.0.1:${secure}`, { rules: proxied, proxyUrl: secureProxy }))).toBe('tls');
  });

  test('is asked for each address of a name in turn', async () => {
    const asked: string[] = [];
    const proxy = await listen((socket, request) => {
      asked.push(request.split('\r\n')[0] ?? '');
      if (request.includes('127.0.0.2')) socket.write('HTTP/1.1 200 OK\r\n\r\n');
      else if (request.startsWith('CONNECT')) socket.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n');
      else socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
    // biome-ignore lint/suspicious/noExplicitAny: the overloads of dns.lookup
    const lookup: any = (_: string, __: unknown, callback: (error: null, found: { address: string; family: number }[]) => void) =>
      callback(null, [
        { address: '::1', family: 6 },
        { address: '127.0.0.2', family: 4 },
      ]);
    const policy = new EgressPolicy({ ...egress, allowedCidrs: ['127.0.0.0/8', '::1/128'] }, new RefusedAddresses());
    const agent = new Agent({ connect: guardedConnector({ policy, tls: {}, proxy: new URL(`http://127.0.0.1:${proxy}`), lookup }) });
    const request = { origin: 'http://both.example:81', ...posted };
    const result = await exchange(agent, request, { timeoutMs: 30_000, clock: systemClock, signal: new AbortController().signal });
    expect(kindOf(result)).toBe('204');
    expect(asked).toEqual(['CONNECT [::1]:81 HTTP/1.1', 'CONNECT 127.0.0.2:81 HTTP/1.1', 'POST / HTTP/1.1']);
    await agent.destroy();
  });

  test('is not asked for an address that is not allowed', async () => {
    const asked: string[] = [];
    const proxyUrl = `http://127.0.0.1:${await startProxy(1, asked)}`;
    const rules = { ...proxied, egress: { ...egress, allowedCidrs: [] } };
    for (const host of ['127.0.0.1', 'localhost', '169.254.169.254', '[::1]'])
      expect(kindOf(await post(`http://${host}:80`, { rules, proxyUrl }))).toBe('blocked');
    expect(asked).toEqual([]);
  });

  test.each<[string, (socket: Socket) => void, string]>([
    ['refuses', (socket) => socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n'), 'network'],
    ['closes', (socket) => socket.end(), 'network'],
    ['says nothing', () => {}, 'timeout'],
  ])('that %s fails the attempt', async (_, answer, kind) => {
    const proxyUrl = `http://127.0.0.1:${await listen(answer)}`;
    const result = await post('http://127.0.0.1:9', { rules: proxied, proxyUrl, ...(kind === 'timeout' && { deadlineMs: shortMs }) });
    expect(kindOf(result)).toBe(kind);
  });

  test('that is not configured fails the attempt, and nothing goes around it', async () => {
    let requests = 0;
    const port = await listen(() => requests++);
    const result = await post(`http://127.0.0.1:${port}`, { rules: proxied });
    expect(result).toMatchObject({ type: 'error', error: { message: 'useStaticIp: this installation has no egress proxy' } });
    expect(requests).toBe(0);
  });
});
