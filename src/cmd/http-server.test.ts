import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { createHttpServer } from './http-server.ts';

const wantsClose = 'Host: a\r\nConnection: close\r\n\r\n';

/** Reply of a server, by default one that answers all requests with `ok`. */
async function answerTo(sent: string, handler: RequestListener = (_request, response) => response.end('ok')): Promise<string> {
  const server = createHttpServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(sent);
    return await text(socket);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

test.each([
  ['a request line of 100 KB', `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ['a header of 1 MB', `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(1_000_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ['what is no HTTP', 'hello\r\n\r\n', 400, 'BAD_REQUEST'],
  ['a request without a Host header', 'GET / HTTP/1.1\r\n\r\n', 400, 'BAD_REQUEST'],
  ['a request with two Host headers', 'GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n', 400, 'BAD_REQUEST'],
  ['a request of HTTP/1.0 with two Host headers', 'GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n', 400, 'BAD_REQUEST'],
  ['a body in a transfer coding', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 400, 'BAD_REQUEST'],
])('%s is answered in the form of all errors, with a request id', async (_, sent, status, code) => {
  const answer = await answerTo(sent);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(answer).toContain(`X-Error-Code: ${code}`);
  expect(answer).toMatch(/^X-Request-Id: req_[a-z2-7]+\r$/m);
  expect(JSON.parse(answer.slice(answer.indexOf('{')))).toEqual({
    error: expect.any(String),
    message: expect.any(String),
    code,
    details: {},
  });
});

test('the id of a request without a Host header is echoed', async () => {
  expect(await answerTo('GET / HTTP/1.1\r\nX-Request-Id: mine-1\r\n\r\n')).toContain('X-Request-Id: mine-1\r\n');
});

test.each([
  ['of HTTP/1.0 without a Host header', 'GET / HTTP/1.0\r\n\r\n'],
  ['with an expectation that nobody knows', `GET / HTTP/1.1\r\nExpect: the-best\r\n${wantsClose}`],
  ['that expects 100-continue', `GET / HTTP/1.1\r\nExpect: 100-continue\r\n${wantsClose}`],
])('a request %s is taken', async (_, sent) => {
  const answer = await answerTo(sent);
  expect(answer).toContain('HTTP/1.1 200 OK\r\n');
  expect(answer).toContain('ok');
});

test.each([
  ['of HTTP/1.0', 'POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}'],
  ['of HTTP/1.1', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}'],
  ['in chunks', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
])('a client that ends its side after a request %s gets its answer where half-closed connections are taken', async (_, sent) => {
  const ended = Promise.withResolvers<void>();
  const server = createHttpServer(
    (request, response) => {
      request.resume().socket.once('end', () => {
        response.end('ok');
        ended.resolve();
      });
    },
    { takesHalfClosed: true },
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.end(sent);
  expect(await text(socket)).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*ok/);
  await ended.promise;
  server.close();
});

test('a handler may set the headers of its answers itself', async () => {
  const server = createHttpServer((_request, response) => void response.writeHead(200, ['X-Own', '1']).end(), {
    setsAnswerHeaders: (target) => target === '/own',
  }).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const namesOf = async (path: string): Promise<string[]> => [...(await fetch(`http://127.0.0.1:${port}${path}`)).headers.keys()];
    expect(await namesOf('/own')).not.toContain('cache-control');
    expect(await namesOf('/other')).toEqual(expect.arrayContaining(['cache-control', 'x-content-type-options', 'x-own']));
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test.each([
  ['of a handler', 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'],
  ['to a request without a Host header', 'GET / HTTP/1.1\r\n\r\n'],
  ['to what is no HTTP', 'hello\r\n\r\n'],
])('the answer %s is not kept by caches, and no browser guesses its type', async (_, sent) => {
  const answer = await answerTo(sent);
  expect(answer).toContain('X-Content-Type-Options: nosniff\r\n');
  expect(answer).toContain('Cache-Control: no-store\r\n');
});

test.each([
  ['POST', 'http://in.example/ingest/acme/shop', '/ingest/acme/shop', 'in.example'],
  ['POST', 'HTTPS://In.Example:8443/ingest?a=b?c', '/ingest?a=b?c', 'In.Example:8443'],
  ['GET', "http://[::1]:8080/%7Ea//b/../c?d='e'", "/%7Ea//b/../c?d='e'", '[::1]:8080'],
  ['GET', 'http://in.example', '/', 'in.example'],
  ['GET', 'http://in.example?a=1', '/?a=1', 'in.example'],
  ['GET', '/ingest/a?b=http://in.example/c', '/ingest/a?b=http://in.example/c', 'a'],
  ['GET', '//in.example/ingest', '//in.example/ingest', 'a'],
  ['OPTIONS', '*', '*', 'a'],
  ['GET', 'http://user@in.example/ingest', 'http://user@in.example/ingest', 'a'],
  ['GET', 'http:///ingest', 'http:///ingest', 'a'],
  ['GET', 'ftp://in.example/ingest', 'ftp://in.example/ingest', 'a'],
])('handlers see %s %s as %s of %s', async (method, target, seen, host) => {
  const answer = await answerTo(`${method} ${target} HTTP/1.1\r\n${wantsClose}`, (request, response) =>
    response.end(JSON.stringify([request.url, request.headers.host])),
  );
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  expect(JSON.parse(answer.slice(answer.indexOf('[')))).toEqual([seen, host]);
});
