import { globSync, readFileSync } from 'node:fs';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { bytesToRead } from './read-body.ts';
import { RequestMemory, requestMemoryLimits } from './request-memory.ts';

const mebibyte = 1024 * 1024;
/** All that follows from what has just happened. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

function work() {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const over = (): void => {
    response.emit('close');
    end();
  };
  return { response, ended, end, over };
}

/** Requests memory; `is` is its state. */
function asked(
  memory: RequestMemory,
  organization: string,
  bytes: number,
  { credential = 'key', signal }: { credential?: string; signal?: AbortSignal } = {},
) {
  const own = { ...work(), is: 'waiting' as unknown };
  memory.hold({ organization, credential }, bytes, own, signal).then(
    () => {
      own.is = 'in';
    },
    (error: unknown) => {
      own.is = error;
    },
  );
  return own;
}

test('a credential holds no more than its share, other organizations have theirs, and what waits continues when the work before it is over', async () => {
  const memory = new RequestMemory(new FakeClock());
  const held = Array.from({ length: 5 }, () => asked(memory, 'a', 8 * mebibyte));
  const [other, sibling] = [asked(memory, 'b', 8 * mebibyte), asked(memory, 'a', 5 * mebibyte, { credential: 'sibling' })];
  await settled();
  expect(held.map(({ is }) => is)).toEqual(['in', 'in', 'in', 'in', 'waiting']);
  expect([other.is, sibling.is]).toEqual(['in', 'in']);
  held[0]?.response.emit('close');
  await settled();
  // Its client has gone, its work has not ended.
  expect(held[4]?.is).toBe('waiting');
  held[0]?.end();
  await settled();
  expect(held[4]?.is).toBe('in');
});

test('a request without memory in time is RATE_LIMITED, and so is one whose client has gone', async () => {
  const clock = new FakeClock();
  const memory = new RequestMemory(clock);
  asked(memory, 'a', requestMemoryLimits.ofCredential);
  const client = new AbortController();
  const [late, gone] = [asked(memory, 'a', mebibyte), asked(memory, 'a', mebibyte, { signal: client.signal })];
  client.abort();
  await settled();
  expect([late.is, gone.is]).toEqual(['waiting', expect.objectContaining({ code: 'RATE_LIMITED' })]);
  await clock.advance(requestMemoryLimits.waitMs);
  await settled();
  expect(late.is).toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 5 });
});

test('a small request reserves no memory, and one larger than the share of a credential reserves that', async () => {
  const memory = new RequestMemory(new FakeClock());
  const large = asked(memory, 'a', 100 * requestMemoryLimits.ofCredential);
  const small = Array.from({ length: 1000 }, () => asked(memory, 'a', requestMemoryLimits.freeBytes));
  await settled();
  expect([large.is, ...small.map(({ is }) => is)]).toEqual(Array.from({ length: 1001 }, () => 'in'));
});

test.each<[string, Record<string, string>, number]>([
  ['no body', {}, 0],
  ['a length', { 'content-length': '700' }, 700],
  ['a length that is refused', { 'content-length': '1001' }, 0],
  ['no length', { 'transfer-encoding': 'chunked' }, 1000],
  ['a compressed body', { 'content-length': '10', 'content-encoding': 'gzip' }, 1000],
])('a request with %s reserves memory for what is kept of its body', (_, headers, expected) => {
  expect(bytesToRead({ headers } as unknown as IncomingMessage, 1000)).toBe(expected);
});

test('every file of the API that reads payloads of events reserves memory for them', () => {
  const root = new URL('../', import.meta.url).pathname;
  // The memory for the body of its request is larger.
  const withBody = ['families/webhooks/sending/repeated-event.ts'];
  const reads = /(?:messages|webhookMessages)\.(?:event|payload|failedSamples)\(|\bpayloads\.read\(/i;
  const readers = globSync('**/*.ts', { cwd: root })
    .filter((file) => !file.endsWith('.test.ts') && reads.test(readFileSync(root + file, 'utf8')))
    .sort();
  expect(readers.length).toBeGreaterThan(5);
  expect(readers.filter((file) => !/\bhold\(/.test(readFileSync(root + file, 'utf8')))).toEqual(withBody);
});
