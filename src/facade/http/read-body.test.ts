import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { readBody } from './read-body.ts';

const limit = 1000;
let server: Server;
let port: number;
let arrived: number;
let outcomes: unknown[];

beforeAll(async () => {
  server = createServer(async (incoming, response) => {
    arrived++;
    outcomes.push(await readBody(incoming, response, limit).then(String, (error: unknown) => error));
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  port = typeof address === 'object' ? (address?.port ?? 0) : 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  arrived = 0;
  outcomes = [];
});

/** Result of the reader for a body that is sent in these pieces. */
async function sent(pieces: readonly (string | Buffer)[], headers: Record<string, string | number> = {}): Promise<unknown> {
  await new Promise<void>((resolve, reject) => {
    const outgoing = request({ port, host: '127.0.0.1', method: 'POST', headers }, (answer: IncomingMessage) => {
      answer.resume().on('end', resolve);
    });
    outgoing.on('error', reject);
    for (const piece of pieces) outgoing.write(piece);
    outgoing.end();
  });
  return outcomes[0];
}

test('a body is read whole, however it is sent', async () => {
  expect(await sent(['one, ', 'two'], { 'content-length': 8 })).toBe('one, two');
  outcomes = [];
  expect(await sent(['one, ', 'two'])).toBe('one, two');
  outcomes = [];
  expect(await sent([gzipSync('one, two')], { 'content-encoding': 'gzip' })).toBe('one, two');
  outcomes = [];
  expect(await sent([], { 'content-length': 0 })).toBe('');
});

test('a body that is larger than the limit is refused, whether its length is announced or not', async () => {
  const large = 'x'.repeat(limit + 1);
  expect(await sent([large], { 'content-length': large.length })).toMatchObject({ status: 413, limit });
  outcomes = [];
  expect(await sent([large])).toMatchObject({ status: 413, limit });
});

test('a client that hangs up amid its body is no defect', async () => {
  const outgoing = request({ port, host: '127.0.0.1', method: 'POST', headers: { 'content-length': 100 } });
  outgoing.on('error', () => undefined);
  outgoing.write('some');
  await eventually('the server to have the request', 30_000, () => arrived > 0);
  outgoing.destroy();
  const outcome = await eventually('the outcome', 30_000, () => outcomes[0]);
  expect(outcome).toMatchObject({ code: 'BAD_REQUEST' });
});
