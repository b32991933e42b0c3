import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { fetchOps } from './fetch-ops.ts';

const servers: Server[] = [];

async function startServer(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
}

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

test('the answer, whatever its status', async () => {
  const url = await startServer((request, response) => {
    response.writeHead(request.url === '/metrics' ? 503 : 404, { 'content-type': 'text/x' });
    response.end('not ready: é');
  });
  expect(await fetchOps(url, 10_000)).toEqual({ status: 503, contentType: 'text/x', text: 'not ready: é' });
});

test.each([
  { name: 'nothing', answer: (() => undefined) as RequestListener },
  { name: 'half a body', answer: ((_, response) => void response.write('half')) as RequestListener },
])('a process that sends $name is given up at the deadline', async ({ answer }) => {
  await expect(fetchOps(await startServer(answer), 200)).rejects.toThrow();
});

test('a connection that ends within the body is an error', async () => {
  const url = await startServer((_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half', () => response.destroy());
  });
  await expect(fetchOps(url, 30_000)).rejects.toThrow();
});
