import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import express from 'express';
import { eventually } from '../../../test/support/eventually.ts';
import { StreamedAnswer, sendStreamed } from './streamed-answer.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** A server that sends the pieces; the response to a request that nothing reads yet. */
async function answerOf(pieces: AsyncIterable<string>, { broken, method = 'GET' }: { broken?: AbortSignal; method?: string } = {}) {
  const app = express();
  app.get('/', async (_request, response) => {
    await sendStreamed(response, new StreamedAnswer({ 'Content-Type': 'text/plain' }, pieces, broken), 200);
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const asked = request({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', method });
  stops.push(() => {
    asked.destroy();
    server.closeAllConnections();
    server.close();
  });
  asked.end();
  const [response] = await once(asked, 'response');
  return response;
}

const piece = 'x'.repeat(100_000);

test('an answer is made no faster than it is read', async () => {
  let made = 0;
  const pieces = async function* () {
    for (; made < 1000; made++) yield piece;
  };
  const response = await answerOf(pieces());
  // Unread bytes lie in the buffers of the system, which are far smaller than the answer.
  const atRest = await eventually(async () => {
    const before = made;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(made).toBe(before);
    return before;
  });
  expect(atRest).toBeLessThan(500);
  let bytes = 0;
  for await (const chunk of response) bytes += chunk.length;
  expect(bytes).toBe(1000 * piece.length);
});

/** Pieces without an end, and whether they have been given up. */
function endless() {
  let hasEnded = false;
  const pieces = async function* () {
    try {
      for (;;) yield piece;
    } finally {
      hasEnded = true;
    }
  };
  return { pieces, hasEnded: () => hasEnded };
}

test('what makes an answer is ended when its reader leaves', async () => {
  const { pieces, hasEnded } = endless();
  const response = await answerOf(pieces());
  response.destroy();
  await eventually(async () => expect(hasEnded()).toBe(true));
});

test('an answer that fails on the way is broken off', async () => {
  const pieces = async function* () {
    yield piece;
    throw new Error('no more');
  };
  const response = await answerOf(pieces());
  await expect(response.toArray()).rejects.toThrow();
});

test('an answer that fails before it begins is an error', async () => {
  const pieces = async function* () {
    await Promise.reject(new Error('nothing'));
    yield piece;
  };
  expect((await answerOf(pieces())).statusCode).toBe(500);
});

test('an answer is broken off when its maker requests it, although its client reads nothing', async () => {
  const breaking = new AbortController();
  const { pieces, hasEnded } = endless();
  const response = await answerOf(pieces(), { broken: breaking.signal });
  breaking.abort();
  await eventually(() => expect(hasEnded()).toBe(true));
  await expect(once(response.resume(), 'end')).rejects.toThrow('aborted');
});

test('an answer to HEAD has no body and ends, although its pieces do not', async () => {
  const { pieces, hasEnded } = endless();
  const response = await answerOf(pieces(), { method: 'HEAD' });
  await once(response.resume(), 'end');
  expect(hasEnded()).toBe(true);
});
