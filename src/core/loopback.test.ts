import { once } from 'node:events';
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from '@jest/globals';
import { patientServer } from '../../test/support/patient-server.ts';
import { isFromLoopback } from './loopback.ts';

const open: (Server | TcpServer)[] = [];
afterEach(() => {
  for (const server of open.splice(0)) server.close();
});

/** Starts a server that responds with the result of `isFromLoopback`. Returns its port. */
async function listen(host: string): Promise<number> {
  const server = createServer((incoming, outgoing) => {
    const address = server.address() as AddressInfo;
    outgoing.setHeader('Connection', 'close').end(String(isFromLoopback(incoming, address.address)));
  });
  return await portOf(server, host);
}

async function portOf(server: Server | TcpServer, host = '127.0.0.1'): Promise<number> {
  open.push(server);
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const ofBrowser = (port: number): OutgoingHttpHeaders => ({ host: `localhost:${port}`, 'sec-fetch-site': 'same-origin' });

async function ask(port: number, headers: OutgoingHttpHeaders, hostname = '127.0.0.1'): Promise<string> {
  const sent = request({ hostname, port, path: '/api/sessions/current', headers, agent: false }).end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return await text(answer);
}

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['127.0.0.9', '127.0.0.9'],
  ['::1', '::1'],
])('a browser on the machine of a server that listens on %s is from loopback', async (host, hostname) => {
  const port = await listen(host);
  expect(await ask(port, ofBrowser(port), hostname)).toBe('true');
});

test.each(['localhost', 'LOCALHOST', 'localhost:8080', '127.0.0.1', '127.0.0.1:80', '[::1]', '[::1]:8080'])(
  'a request with the Host %s is from loopback',
  async (host) => {
    expect(await ask(await listen('127.0.0.1'), { host, 'sec-fetch-site': 'none' })).toBe('true');
  },
);

test.each([
  'posthorn.example.com',
  'localhost.example.com',
  'example.com:8080',
  'localhost:8080.example.com',
  '127.0.0.1.nip.io',
  '192.168.1.5:8080',
  '0.0.0.0:8080',
  'localhost.',
  '::1',
  '[::2]',
  'localhost@example.com',
])('a request with the Host %s, which a name of a stranger may lead here, is not', async (host) => {
  expect(await ask(await listen('127.0.0.1'), { host, 'sec-fetch-site': 'same-origin' })).toBe('false');
});

test.each(['0.0.0.0', '::'])('a server that listens on %s, which others reach, has no request from loopback', async (host) => {
  const port = await listen(host);
  expect(await ask(port, ofBrowser(port))).toBe('false');
});

test('a server that listens on an address of the network has no request from loopback', async () => {
  const [own] = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal);
  if (own === undefined) return;
  const port = await listen(own.address);
  expect(await ask(port, ofBrowser(port), own.address)).toBe('false');
});

test('a connection from elsewhere, or one whose address is not known, is not from loopback', () => {
  const headers = { host: 'localhost', 'sec-fetch-site': 'none' };
  const from = (remoteAddress: string | undefined) =>
    isFromLoopback(
      { headers, headersDistinct: { host: ['localhost'] }, httpVersion: '1.1', socket: { remoteAddress } as IncomingMessage['socket'] },
      '127.0.0.1',
    );
  expect(['127.0.0.1', '::1', '::ffff:127.0.0.1', '192.0.2.1', '::ffff:192.0.2.1', '', undefined].map(from)).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});

test('a server on a unix socket has no request from loopback', () => {
  const headers = { host: 'localhost', 'sec-fetch-site': 'none' };
  const socket = { remoteAddress: '127.0.0.1' } as IncomingMessage['socket'];
  expect(isFromLoopback({ headers, headersDistinct: { host: ['localhost'] }, httpVersion: '1.1', socket }, null)).toBe(false);
});

test.each([
  ['Forwarded', 'for=192.0.2.1'],
  ['X-Forwarded-For', '192.0.2.1'],
  ['X-Forwarded-For', ''],
  ['X-Forwarded-Host', 'posthorn.example.com'],
  ['X-Forwarded-Proto', 'https'],
  ['X-Forwarded-Port', '443'],
  ['X-Forwarded-Anything', 'x'],
  ['X-Real-IP', '192.0.2.1'],
  ['Via', '1.1 proxy'],
  ['X-Forwarded', 'for=192.0.2.1'],
  ['CF-Connecting-IP', '192.0.2.1'],
  ['True-Client-IP', '192.0.2.1'],
  ['X-Posthorn-Attempt', '1'],
  ['X-Posthorn-Cron-Job', 'x'],
  ['Webhook-Id', 'msg_1'],
  ['Origin', 'https://posthorn.example.com'],
  ['Origin', 'null'],
  ['Referer', 'https://posthorn.example.com/console/'],
])('a request with the header %s: %s is not from loopback', async (name, value) => {
  const port = await listen('127.0.0.1');
  expect(await ask(port, { ...ofBrowser(port), [name]: value })).toBe('false');
});

test('a request that names its own page is from loopback, as is one with the CSRF token', async () => {
  const port = await listen('127.0.0.1');
  const origin = `http://localhost:${port}`;
  expect(await ask(port, { ...ofBrowser(port), origin, referer: `${origin}/console/`, 'x-posthorn-csrf': 'token' })).toBe('true');
  expect(await ask(port, { ...ofBrowser(port), origin: `${origin}.example.com` })).toBe('false');
});

test('a request whose target has another host than its Host header, or of HTTP 1.0, is not from loopback', async () => {
  const server = patientServer((incoming, outgoing) => {
    const address = server.address() as AddressInfo;
    outgoing.setHeader('Connection', 'close').end(String(isFromLoopback(incoming, address.address)));
  });
  const port = await portOf(server);
  const said = async (start: string, host: string): Promise<string> => {
    const socket = connect(port, '127.0.0.1');
    socket.end(`${start}\r\nHost: ${host}\r\nSec-Fetch-Site: none\r\nConnection: close\r\n\r\n`);
    return (await text(socket)).split('\r\n').at(-1) ?? '';
  };
  expect(await said('GET http://localhost/api/routes HTTP/1.1', 'localhost')).toMatch(/true/);
  expect(await said('GET http://localhost/api/routes HTTP/1.1', 'tunnel.example.com')).toMatch(/false/);
  expect(await said('GET /api/routes HTTP/1.0', 'localhost')).toMatch(/false/);
});

test.each([
  ['none', 'true'],
  ['same-origin', 'true'],
  ['same-site', 'false'],
  ['cross-site', 'false'],
  ['', 'false'],
])('a request with Sec-Fetch-Site %s is from loopback: %s', async (site, expected) => {
  const port = await listen('127.0.0.1');
  expect(await ask(port, { host: 'localhost', 'sec-fetch-site': site })).toBe(expected);
});

test('a request without Sec-Fetch-Site, as programs send it, is not from loopback, and neither is one with two of them or without Host', async () => {
  const port = await listen('127.0.0.1');
  expect(await ask(port, { host: 'localhost' })).toBe('false');
  expect(await ask(port, { host: 'localhost', 'sec-fetch-site': ['none', 'cross-site'] })).toBe('false');
  const socket = connect(port, '127.0.0.1');
  socket.end('GET / HTTP/1.0\r\nSec-Fetch-Site: none\r\n\r\n');
  expect(await text(socket)).toMatch(/false$/);
});

/** A proxy on the same machine; `headersOf` changes the client's headers. */
function proxyTo(port: number, headersOf: (headers: IncomingMessage['headers']) => OutgoingHttpHeaders): Promise<number> {
  const server = createServer((incoming, outgoing) => {
    const { method, url: path } = incoming;
    request({ hostname: '127.0.0.1', port, method, path, headers: headersOf(incoming.headers), agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502);
      answer.pipe(outgoing);
    }).end();
  });
  return portOf(server);
}

test.each<[string, (headers: IncomingMessage['headers']) => OutgoingHttpHeaders]>([
  ['tells of its client', (headers) => ({ ...headers, 'x-forwarded-for': '192.0.2.1' })],
  ['tells of itself', (headers) => ({ ...headers, via: '1.1 proxy' })],
  ['tells nothing and keeps the Host', (headers) => headers],
  ['tells of its client and has a Host of its own', (headers) => ({ ...headers, host: 'localhost', 'x-real-ip': '192.0.2.1' })],
])('what comes through a proxy on the same machine that %s is not from loopback', async (_, headersOf) => {
  const port = await proxyTo(await listen('127.0.0.1'), headersOf);
  expect(await ask(port, { host: 'posthorn.example.com', 'sec-fetch-site': 'same-origin' })).toBe('false');
});

test('what comes through a tunnel of bytes, which adds nothing, is not from loopback under the name of the tunnel; under a loopback name it is', async () => {
  const port = await listen('127.0.0.1');
  const tunnel = createTcpServer((client) => void client.pipe(connect(port, '127.0.0.1')).pipe(client));
  const at = await portOf(tunnel);
  expect(await ask(at, { host: `tunnel.example.com:${at}`, 'sec-fetch-site': 'same-origin' })).toBe('false');
  expect(await ask(at, { host: `localhost:${at}`, 'sec-fetch-site': 'same-origin' })).toBe('true');
});
