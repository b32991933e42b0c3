import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { type CertificateAuthority, createCertificateAuthority } from '../../../../test/support/certificate-authority.ts';
import { kindOf, openRules, posted, RawReceivers } from '../../../../test/support/raw-receivers.ts';
import { systemClock } from '../../../runtime/system-clock.ts';
import { Transport } from '../warehouse/transport.ts';
import { Dispatchers } from './dispatchers.ts';
import { exchange, type HttpResult } from './http-exchange.ts';

const receivers = new RawReceivers();
let authority: CertificateAuthority;
beforeAll(() => {
  authority = createCertificateAuthority();
});
afterAll(() => authority.remove());
afterEach(() => receivers.close());

const hundred = 'HTTP/1.1 100 Continue\r\n\r\n';
const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const answered: [string, string][] = [
  ['nothing', ok],
  ['100', hundred + ok],
  ['100 three times', hundred.repeat(3) + ok],
  ['100 of HTTP/1.0', hundred.replace('1.1', '1.0') + ok],
  ['100 without a reason', `HTTP/1.1 100\r\n\r\n${ok}`],
  ['100 with headers', `HTTP/1.1 100 Continue\r\nx-a: b\r\nx-b: ${'c'.repeat(10_000)}\r\n\r\n${ok}`],
  ['103', hints + ok],
  ['103, 100 and 103', hints + hundred + hints + ok],
  ['a folded header', 'HTTP/1.1 200 OK\r\nx-a: b\r\n  c\r\n\td\r\ncontent-length: 2\r\n\r\nok'],
  ['103 and a folded length', `${hints}HTTP/1.1 200 OK\r\ncontent-length:\r\n 2\r\n\r\nok`],
  ['lines without a carriage return', ok.replaceAll('\r\n', '\n')],
  ['100 without carriage returns', (hundred + ok).replaceAll('\r\n', '\n')],
  ['some lines without a carriage return', 'HTTP/1.1 200 OK\nx-a: b\r\ncontent-length: 2\n\r\nok'],
  ['a length that comes twice', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx-a: b\r\ncontent-length: 2\r\n\r\nok'],
  ['a list of one length', 'HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nok'],
];

async function write(socket: Socket, text: string, pieceLength: number): Promise<void> {
  socket.setNoDelay(true);
  for (let at = 0; at < text.length; at += pieceLength) {
    socket.write(text.slice(at, at + pieceLength));
    if (pieceLength < text.length) await sleep(1);
  }
}

describe.each(answered)('a response after, or with, %s is taken', (_, text) => {
  test('as a whole', async () => {
    const port = await receivers.listen((socket) => void socket.write(text));
    expect(await receivers.post(`http://127.0.0.1:${port}`)).toMatchObject({ status: 200, body: Buffer.from('ok') });
  });

  test.each(text.length < 1000 ? [1, 7] : [997])('in pieces of %i bytes', async (pieceLength) => {
    const port = await receivers.listen((socket) => void write(socket, text, pieceLength));
    expect(await receivers.post(`http://127.0.0.1:${port}`)).toMatchObject({ status: 200, body: Buffer.from('ok') });
  });

  test('over TLS', async () => {
    const port = await receivers.listen((socket) => void socket.write(text), authority.issue(['127.0.0.1']));
    const rules = { ...openRules, tls: { ca: authority.text, cert: null, key: null } };
    expect(await receivers.post(`https://127.0.0.1:${port}`, { rules })).toMatchObject({ status: 200, body: Buffer.from('ok') });
  });

  test.each(['send', 'fetch'] as const)('by the %s of warehouses', async (how) => {
    const port = await receivers.listen((socket) => void socket.write(text));
    const pools = new Dispatchers({ connections: 1, clock: systemClock });
    receivers.closeAfterwards(pools);
    const transport = new Transport(pools.forRules(openRules)(), new AbortController().signal);
    const [url, method, body] = [`http://127.0.0.1:${port}/`, 'PUT', 'x'];
    const { status } = await (how === 'send' ? transport.send({ url, method, headers: {}, body }) : transport.fetch(url, { method, body }));
    expect(status).toBe(200);
  });
});

test('a body that looks like an interim response stays, and the connection serves further requests', async () => {
  let connections = 0;
  const body = `${hundred}${hints}`;
  const port = await receivers.listen((socket) => {
    if (socket.listenerCount('drain') === 0) {
      connections++;
      socket.on('drain', () => {});
    }
    socket.write(`${hundred}HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`);
    setTimeout(() => socket.write(body), 20);
  });
  const pools = new Dispatchers({ connections: 1, clock: systemClock });
  receivers.closeAfterwards(pools);
  const post = (): Promise<HttpResult> =>
    exchange(
      pools.forRules(openRules)(),
      { origin: `http://127.0.0.1:${port}`, ...posted },
      { timeoutMs: 30_000, clock: systemClock, signal: new AbortController().signal },
    );
  for (let i = 0; i < 3; i++) expect(await post()).toMatchObject({ status: 200, body: Buffer.from(body) });
  expect(connections).toBe(1);
});

test.each<[string, string, string]>([
  ['switches protocols', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n', 'network'],
  ['ends after 100', hundred, 'network'],
  ['ends in the middle of 100', hundred.slice(0, 15), 'network'],
  ['sends 100 with headers of 20 KB', `HTTP/1.1 100 Continue\r\nx-a: ${'b'.repeat(20_000)}\r\n\r\n${ok}`, 'network'],
  ['speaks something else', 'HTTP/2.0 100 Continue\r\n\r\n', 'network'],
])('a receiver that %s has failed', async (_, text, kind) => {
  const port = await receivers.listen((socket) => socket.end(text));
  expect(kindOf(await receivers.post(`http://127.0.0.1:${port}`))).toBe(kind);
});

test('a receiver that sends 100 without end is cut off by the deadline', async () => {
  const port = await receivers.listen((socket) => {
    const timer = setInterval(() => socket.write(hundred), 5);
    socket.on('close', () => clearInterval(timer));
  });
  expect(kindOf(await receivers.post(`http://127.0.0.1:${port}`, { deadlineMs: 400 }))).toBe('timeout');
});
