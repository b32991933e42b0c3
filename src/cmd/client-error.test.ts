import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { answerClientError } from './client-error.ts';

test.each([
  ['a request line of 100 KB', `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ['a header of 1 MB', `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(1_000_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ['what is no HTTP', 'hello\r\n\r\n', 400, 'BAD_REQUEST'],
])('%s is answered in the form of all errors', async (_, sent, status, code) => {
  const server = createServer((_request, response) => response.end('ok'))
    .on('clientError', answerClientError)
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(sent);
    const answer = await text(socket);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toContain(`X-Error-Code: ${code}`);
    expect(JSON.parse(answer.slice(answer.indexOf('{')))).toEqual({ error: expect.any(String), message: expect.any(String), code });
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
