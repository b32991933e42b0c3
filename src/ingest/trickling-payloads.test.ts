import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { IngestUnderTest } from '../../test/support/ingest.ts';
import { largePayload, mebibyte } from '../../test/support/large-payloads.ts';
import type { IngestLimits } from './limits.ts';

const maxPayloadBytes = 32 * mebibyte;
const large = { payloadLimitBytes: mebibyte, largePayloadLimitBytes: maxPayloadBytes };
/** Two organizations with two sources each, which can exhaust the memory, and well-behaved sources. */
const trickling = ['a1', 'a2', 'b1', 'b2'];
const honest = ['a3', 'c'];

let ingest: IngestUnderTest;
let sockets: Set<Socket>;
let isEnding: boolean;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterEach(() => {
  isEnding = true;
  for (const socket of sockets) socket.destroy();
});
afterAll(() => ingest.stop());

async function serve(limits: Partial<IngestLimits>): Promise<void> {
  sockets = new Set();
  isEnding = false;
  await ingest.reset(limits, undefined, { maxPayloadBytes });
  for (const slug of [...trickling, ...honest]) await ingest.publishSource({ id: `src_${slug}`, slug, org: `org_${slug[0]}`, ...large });
}

/** Sends the beginning of a body and nothing more, keeps its side of the connection open, and begins again whenever it is answered. What was answered first, when it is. */
function trickle(slug: string, header: string, beginning: Buffer | string): Promise<string> {
  return new Promise((resolve) => {
    const begin = (): void => {
      const socket = connect({ port: Number(new URL(ingest.url('/')).port), host: '127.0.0.1', allowHalfOpen: true });
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('data', (answer: Buffer) => {
        resolve(answer.toString());
        if (!isEnding) begin();
      });
      socket.write(`POST /ingest/acme/${slug} HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n`);
      socket.write(beginning);
    };
    begin();
  });
}

const chunk = Buffer.concat([Buffer.from(`${(mebibyte + 1).toString(16)}\r\n`), Buffer.alloc(mebibyte + 1, 0x20), Buffer.from('\r\n')]);
const ways: [string, { header: string; beginning: Buffer | string; ofSource: number }][] = [
  ['a Content-Length of 32 MiB', { header: `Content-Length: ${maxPayloadBytes}`, beginning: '{', ofSource: 2 }],
  ['a Content-Length of little more than 1 MiB', { header: `Content-Length: ${mebibyte + 1}`, beginning: '{', ofSource: 18 }],
  ['chunks of no announced length', { header: 'Transfer-Encoding: chunked', beginning: chunk, ofSource: 2 }],
];

describe.each(ways)('beside bodies that trickle in with %s', (_what, { header, beginning, ofSource }) => {
  test.each(honest)('one of 25 MiB is taken at another source, %s, and the others are told to send again', async (slug) => {
    await serve({ roomDeadlineMs: 30_000 });
    const before = ingest.heard;
    const answers = trickling.flatMap((each) => Array.from({ length: ofSource }, () => trickle(each, header, beginning)));
    await eventually('all to have begun', 30_000, () => ingest.heard >= before + answers.length);
    // They have been read by then.
    for (const each of trickling) expect((await ingest.send(`/ingest/acme/${each}`)).status).toBe(200);
    expect((await ingest.send(`/ingest/acme/${slug}`, { body: largePayload(25 * mebibyte) })).status).toBe(200);
    const answer = await Promise.race(answers);
    expect(answer).toMatch(/^HTTP\/1.1 503 /);
    expect(answer).toMatch(/\r\nretry-after: 1\r\n/i);
    expect(answer).toContain('arrives slowly');
  });
});

test('four organizations whose bodies do not arrive leave room to a fifth one', async () => {
  await serve({ roomDeadlineMs: 30_000, bodyDeadlineMs: 60_000 });
  const orgs = ['p', 'q', 'r', 's'];
  for (const org of [...orgs, 't']) await ingest.publishSource({ id: `src_${org}1`, slug: `${org}1`, org: `org_${org}`, ...large });
  const before = ingest.heard;
  const header = `Content-Length: ${maxPayloadBytes}`;
  // Half of each: none is too slow.
  const half = Buffer.alloc(maxPayloadBytes / 2, 0x20);
  const answers = orgs.map((org) => trickle(`${org}1`, header, half));
  await eventually('all to have begun', 30_000, () => ingest.heard >= before + orgs.length);
  for (const org of orgs) expect((await ingest.send(`/ingest/acme/${org}1`)).status).toBe(200);
  expect((await ingest.send('/ingest/acme/t1', { body: largePayload(16 * mebibyte) })).status).toBe(200);
  expect(await Promise.race([...answers, 'none'])).toBe('none');
});

test('one source has half of the memory of its organization', async () => {
  await serve({ roomDeadlineMs: 300, bodyDeadlineMs: 60_000 });
  const header = `Content-Length: ${maxPayloadBytes}`;
  void trickle('a1', header, '{');
  expect((await ingest.send('/ingest/acme/a1')).status).toBe(200);
  expect((await ingest.send('/ingest/acme/a1', { body: largePayload(2 * mebibyte) })).status).toBe(503);
  expect((await ingest.send('/ingest/acme/a3', { body: largePayload(25 * mebibyte) })).status).toBe(200);
});

test('a body that comes slowly is accepted when no other waits for its memory', async () => {
  await serve({ bodyDeadlineMs: 20_000 });
  const body = largePayload(2 * mebibyte);
  const socket = connect(Number(new URL(ingest.url('/')).port), '127.0.0.1');
  sockets.add(socket);
  socket.write(`POST /ingest/acme/c HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`);
  socket.write(body.subarray(0, 9));
  await sleep(2500);
  socket.write(body.subarray(9));
  const [answer] = await new Promise<Buffer[]>((resolve) => socket.once('data', (data: Buffer) => resolve([data])));
  expect(String(answer)).toMatch(/^HTTP\/1.1 200 /);
});

test('a body that did not arrive in time holds no memory any more, though its sender stays', async () => {
  await serve({ roomDeadlineMs: 60_000, bodyDeadlineMs: 1500, drainDeadlineMs: 60_000 });
  const late = trickle('a1', `Content-Length: ${maxPayloadBytes}`, '{');
  expect((await ingest.send('/ingest/acme/a1')).status).toBe(200);
  isEnding = true;
  // The test ends earlier: a body that holds others up may be refused earlier.
  expect(await late).toMatch(/^HTTP\/1.1 408 /);
  expect((await ingest.send('/ingest/acme/a1', { body: largePayload(2 * mebibyte) })).status).toBe(200);
});
