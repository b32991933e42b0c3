import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, type RequestListener, request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { sendPaced } from '../../test/support/paced-sender.ts';
import { patientServer } from '../../test/support/patient-server.ts';
import { type ApiProxy, apiProxy } from './api-proxy.ts';
import { listenOnSocket } from './listen.ts';

let directory: string;
let socketPath: string;
let proxy: ApiProxy;
let front: Server;
let api: Server | null = null;
let port: number;
const clients: Socket[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-proxy-'));
  socketPath = join(directory, 'api', 'api.sock');
  proxy = apiProxy(socketPath, { logger: silentLogger });
  front = patientServer(proxy.listener, { takesHalfClosed: true }).listen(0, '127.0.0.1');
  await once(front, 'listening');
  port = (front.address() as AddressInfo).port;
});
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
  for (const server of [front, api]) {
    server?.close();
    server?.closeAllConnections();
  }
  api = null;
  proxy.close();
  rmSync(directory, { recursive: true });
});

async function serve(handler: RequestListener): Promise<void> {
  api = patientServer(handler);
  await listenOnSocket(api, socketPath);
}

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage['headers'];
  body: string;
}

/** Starts an API that records each request and answers `ok`. */
async function noteRequests(): Promise<Seen[]> {
  const seen: Seen[] = [];
  await serve((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    void text(incoming).then((body) => {
      seen.push({ method, url, headers, body });
      outgoing.end('ok');
    });
  });
  return seen;
}

/** All that comes back for these bytes until the connection ends. */
async function sendRaw(sent: string): Promise<string> {
  const client = connect(port, '127.0.0.1');
  clients.push(client);
  client.write(sent);
  return await text(client);
}

const close = 'Host: a\r\nConnection: close\r\n';

test('a request arrives with its method, path, headers and body, and with the address of the client behind those that it names itself', async () => {
  const seen = await noteRequests();
  const answer = await sendRaw(
    `PATCH /api/a%20b?q=1&q=2 HTTP/1.1\r\nHost: hooks.example\r\nConnection: close\r\nX-Forwarded-For: 203.0.113.9\r\nX-Twice: 1\r\nX-Twice: 2\r\nContent-Length: 5\r\n\r\nhello`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*ok$/);
  expect(seen).toMatchObject([
    {
      method: 'PATCH',
      url: '/api/a%20b?q=1&q=2',
      headers: { host: 'hooks.example', 'x-twice': '1, 2', 'content-length': '5', 'x-forwarded-for': '203.0.113.9, 127.0.0.1' },
      body: 'hello',
    },
  ]);
});

test.each([
  ['a DELETE with a body in chunks', `DELETE /api/x HTTP/1.1\r\n${close}Transfer-Encoding: chunked\r\n\r\n`, 'DELETE'],
  ['a GET with a body in chunks', `GET /api/x HTTP/1.1\r\n${close}Transfer-Encoding: chunked\r\n\r\n`, 'GET'],
  [
    'a DELETE whose client names Transfer-Encoding in Connection',
    'DELETE /api/x HTTP/1.1\r\nHost: a\r\nConnection: close, transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n',
    'DELETE',
  ],
  [
    'a DELETE whose client names Content-Length in Connection',
    'DELETE /api/x HTTP/1.1\r\nHost: a\r\nConnection: close, content-length\r\nContent-Length: 36\r\n\r\n',
    'DELETE',
  ],
])('%s is one request to the API, whatever the body says', async (_, head, method) => {
  const seen = await noteRequests();
  const hidden = 'GET /api/hidden HTTP/1.1\r\nHost: a\r\n\r\n'.slice(0, 36);
  const body = head.includes('Content-Length: 36') ? hidden : `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
  await sendRaw(head + body);
  await sendRaw(`GET /api/next HTTP/1.1\r\n${close}\r\n`);
  expect(seen.map(({ method: each, url, body: text }) => [each, url, text])).toEqual([
    [method, '/api/x', hidden],
    ['GET', '/api/next', ''],
  ]);
});

test.each([
  ['closes its connection', `HTTP/1.1\r\n${close}`, 100_000],
  ['closes its connection', `HTTP/1.1\r\n${close}`, 3_000_000],
  ['speaks HTTP/1.0', 'HTTP/1.0\r\n', 3_000_000],
])(
  'a client that %s and reads nothing before all is written gets the answer to a body that the API refuses: %#',
  async (_, rest, bytes) => {
    await serve((_incoming, outgoing) => void outgoing.writeHead(401).end('who are you?'));
    const answer = await sendPaced(port, { head: `POST /api/x ${rest}Content-Length: ${bytes}\r\n\r\n`, bytes });
    expect(answer).toMatch(/^HTTP\/1.1 401 [\s\S]*who are you\?/);
  },
);

test('the connection of a body that the API refuses serves the next request', async () => {
  await serve((incoming, outgoing) => void outgoing.writeHead(incoming.method === 'POST' ? 401 : 200).end('!'));
  const next = `GET /api/x HTTP/1.1\r\n${close}\r\n`;
  const answer = await sendRaw(`POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n${'x'.repeat(3_000_000)}${next}`);
  expect(answer.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 200']);
});

test.each(['GET', 'POST', 'DELETE'])('a %s without a body arrives without one', async (method) => {
  const seen = await noteRequests();
  expect(await sendRaw(`${method} /api/x HTTP/1.1\r\n${close}\r\n`)).toContain('200 OK');
  expect(seen).toMatchObject([{ method, body: '' }]);
});

test('an answer arrives with its status, headers and body, and what the client requests of its own connection is kept from the API', async () => {
  await serve((incoming, outgoing) => {
    outgoing.writeHead(
      207,
      'Mixed',
      [
        ['Set-Cookie', 'a=1'],
        ['Set-Cookie', 'b=2'],
        ['X-Upgrade', incoming.headers.upgrade ?? 'none'],
      ].flat(),
    );
    outgoing.end('two');
  });
  const answer = await sendRaw('GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n');
  expect(answer).toMatch(/^HTTP\/1\.1 207 Mixed\r\n/);
  for (const line of ['set-cookie: a=1', 'set-cookie: b=2', 'x-upgrade: none']) expect(answer).toContain(`${line}\r\n`);
  expect(answer).toContain('Connection: close\r\n');
  expect(answer).toMatch(/two\r\n0\r\n\r\n$/);
});

test('an answer streams: its beginning is there before its end is made', async () => {
  await serve((_, outgoing) => void outgoing.write('begun'));
  const answering = request({ port, host: '127.0.0.1' }).end();
  const [answer] = (await once(answering, 'response')) as [IncomingMessage];
  expect(String((await once(answer, 'data'))[0])).toBe('begun');
  answering.destroy();
});

test('the API is notified that a client has gone before its answer', async () => {
  let hasHeard = false;
  let isAsked = false;
  await serve((_, outgoing) => {
    isAsked = true;
    outgoing.once('close', () => {
      hasHeard = true;
    });
  });
  const client = connect(port, '127.0.0.1');
  client.write('GET /api/slow HTTP/1.1\r\nHost: a\r\n\r\n');
  await eventually('the request', 10_000, () => isAsked);
  client.destroy();
  await eventually('the API to hear of it', 10_000, () => hasHeard);
});

test('an answer that breaks off is no whole answer for the client', async () => {
  await serve((_, outgoing) => {
    outgoing.write('half of it', () => outgoing.destroy());
  });
  const answer = await sendRaw(`GET / HTTP/1.1\r\n${close}\r\n`);
  expect(answer).toContain('half of it');
  expect(answer).not.toMatch(/0\r\n\r\n$/);
});

test.each([
  ['/api/sources', { error: 'Service Unavailable', message: expect.any(String), code: 'UNAVAILABLE' }],
  ['/api/cron', { error: expect.any(String) }],
  ['/api/send-event', { error: 'Service unavailable', message: expect.any(String), details: {} }],
])('while the API is down %s is 503 in the form of its family, and says when to try again', async (path, body) => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: '{}' });
  expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('x-error-code')]).toEqual([503, '1', 'UNAVAILABLE']);
  expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
  expect(await answer.json()).toEqual(body);
});

test('an API that ends without an answer is 503, and the next one on the same socket serves again', async () => {
  await serve((incoming) => void incoming.socket.destroy());
  expect((await fetch(`http://127.0.0.1:${port}/api/sources`)).status).toBe(503);
  api?.close();
  api?.closeAllConnections();
  await noteRequests();
  expect((await fetch(`http://127.0.0.1:${port}/api/sources`)).status).toBe(200);
});

test('more requests than the API is to have at once are 503 until others have ended', async () => {
  const held: (() => void)[] = [];
  await serve((_, outgoing) => void held.push(() => outgoing.end('ok')));
  const open = Array.from({ length: 1024 }, () => {
    const client = connect(port, '127.0.0.1');
    clients.push(client);
    client.write('GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n');
    client.resume();
    return client;
  });
  await eventually('all to be under way', 30_000, () => held.length === open.length);
  expect((await fetch(`http://127.0.0.1:${port}/api/sources`)).status).toBe(503);
  held.shift()?.();
  const again = await eventually('the next to be passed on', 60_000, async () => {
    const asked = sendRaw(`GET /api/sources HTTP/1.1\r\n${close}\r\n`);
    await eventually('it', 5000, () => held.length === open.length);
    held.at(-1)?.();
    return await asked;
  });
  expect(again).toContain('200 OK');
});

test('a client that has a thousand requests under way leaves places to others, also behind a trusted proxy', async () => {
  const behind = apiProxy(socketPath, { logger: silentLogger, trustedProxies: ['127.0.0.0/8'] });
  const server = patientServer(behind.listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    let held = 0;
    await serve((incoming, outgoing) => {
      if (incoming.url === '/api/held') held++;
      else outgoing.end('ok');
    });
    const { port: proxied } = server.address() as AddressInfo;
    for (let i = 0; i < 1100; i++) {
      const client = connect(proxied, '127.0.0.1');
      clients.push(client);
      client.on('error', () => undefined);
      client.write('GET /api/held HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n');
      client.resume();
    }
    await eventually('the share to be under way', 30_000, () => held === 1024);
    const statusOf = async (address: string) =>
      (await fetch(`http://127.0.0.1:${proxied}/api/sources`, { headers: { 'x-forwarded-for': address } })).status;
    expect([await statusOf('192.0.2.1'), await statusOf('192.0.2.2')]).toEqual([503, 200]);
    expect(held).toBe(1024);
  } finally {
    server.close();
    server.closeAllConnections();
    behind.close();
  }
});

test('clients that hang up while the API responds end nothing but their own requests', async () => {
  const leaving = new Map<string, Socket>();
  await serve(({ url = '' }, outgoing) => {
    // The proxy reads the end of the connection and the response in one turn of its event loop.
    leaving.get(url)?.destroy();
    outgoing.end('ok');
  });
  const hangUp = async (url: string): Promise<void> => {
    const client = connect(port, '127.0.0.1');
    clients.push(client);
    leaving.set(url, client);
    await once(client, 'connect');
    client.resume().write(`GET ${url} HTTP/1.1\r\nHost: h\r\n\r\n`);
    await once(client, 'close');
  };
  await Promise.all(Array.from({ length: 100 }, (_, i) => hangUp(`/api/routes/${i}`)));
  expect(await sendRaw('GET /api/routes HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')).toMatch(/^HTTP\/1.1 200 [\s\S]*ok/);
});

test('what the API sends of an answer that stays open arrives at once, and the API is notified when the client has gone', async () => {
  let gone = false;
  await serve((_incoming, outgoing) => {
    outgoing.writeHead(200, { 'Content-Type': 'text/event-stream' });
    outgoing.write('data: 1\n\n');
    outgoing.once('close', () => {
      gone = true;
    });
  });
  const asked = request({ port, host: '127.0.0.1', agent: false }).end();
  asked.on('error', () => {});
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  const [first] = await once(answer, 'data');
  expect(String(first)).toBe('data: 1\n\n');
  asked.destroy();
  await eventually(() => expect(gone).toBe(true));
});
