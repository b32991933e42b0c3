import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { IngestUnderTest } from '../../test/support/ingest.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

describe('senders that misbehave', () => {
  const head = (headers: string): string => `POST /ingest/acme/github HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;

  test('a body that drips past its deadline is 408, and the connection is cut', async () => {
    await ingest.reset({ bodyDeadlineMs: 300, drainDeadlineMs: 300 });
    await ingest.publishSource();
    let sent = 0;
    const drip = function* () {
      yield head('Content-Length: 10000\r\n');
      for (; sent < 1000; sent++) yield 'x';
    };
    const answer = await ingest.sendRaw(drip());
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
    expect(answer).toContain('REQUEST_TIMEOUT');
    expect(sent).toBeLessThan(200);
    expect(ingest.kept.events).toEqual([]);
  });

  test('a sender that hangs up in the middle leaves nothing behind', async () => {
    await ingest.reset({ requestsInFlight: 1 });
    await ingest.publishSource();
    // Now the configuration is known, and the request is read at once.
    expect((await ingest.send('/ingest/acme/github', { method: 'PUT' })).status).toBe(405);
    const before = ingest.heard;
    await ingest.sendRaw([head('Content-Length: 100\r\n'), 'half'], () => ingest.heard > before);
    await eventually('the count', 30_000, async () => (await ingest.outcomes())['aborted'] === 1);
    expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
    expect(ingest.kept.events).toHaveLength(1);
  });

  test('a sender that hangs up while the configuration is being read leaves nothing behind', async () => {
    await ingest.reset({ requestsInFlight: 1 });
    await ingest.publishSource();
    await ingest.redis.client.client('PAUSE', 400, 'ALL');
    const before = ingest.heard;
    await ingest.sendRaw([head('Content-Length: 100\r\n'), 'half'], () => ingest.heard > before);
    await eventually('the count', 30_000, async () => (await ingest.outcomes())['aborted'] === 1);
    expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
  });

  test.each(['HTTP/1.0', 'HTTP/1.1'])(
    'a sender over %s that ends its side after the request is answered, and its event is stored',
    async (version) => {
      await ingest.publishSource();
      const answer = await ingest.sendHalfClosed(`POST /ingest/acme/github ${version}\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`);
      expect(answer).toMatch(/^HTTP\/1.1 200 [\s\S]*"success":true/);
      expect(ingest.kept.events).toHaveLength(1);
    },
  );

  test('the connection of a refused body serves the next request', async () => {
    await ingest.publishSource({ payloadLimitBytes: 10 });
    const tooLarge = Buffer.alloc(500_000, 'x');
    const next = `${head('Content-Length: 2\r\nConnection: close\r\n')}{}`;
    const answers = await ingest.sendRaw([head('Content-Length: 500000\r\n'), tooLarge, next]);
    expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200']);
  });

  test.each<[string, string[], RegExp]>([
    ['no HTTP', ['hello\r\n\r\n'], /^HTTP\/1.1 400 /],
    ['two lengths', [head('Content-Length: 2\r\nContent-Length: 3\r\n'), 'abc'], /^HTTP\/1.1 400 /],
    ['a length and chunks', [head('Content-Length: 2\r\nTransfer-Encoding: chunked\r\n'), '0\r\n\r\n'], /^HTTP\/1.1 400 /],
    ['a length that is no number', [head('Content-Length: x\r\n'), 'abc'], /^HTTP\/1.1 400 /],
    ['a chunk size that is no number', [head('Transfer-Encoding: chunked\r\n'), 'zz\r\nabc\r\n'], /^(HTTP\/1.1 400 |$)/],
    ['an unknown transfer coding', [head('Transfer-Encoding: magic\r\n'), 'abc'], /^HTTP\/1.1 (400|501) /],
    ['a header without a colon', [head('nonsense\r\n')], /^HTTP\/1.1 400 /],
    ['a NUL in a header', [head('X: a\0b\r\n')], /^HTTP\/1.1 400 /],
    ['a header of 20 KB', [head(`X: ${'a'.repeat(20_000)}\r\n`)], /^HTTP\/1.1 431 /],
    ['2,000 headers', [head('X-A: b\r\n'.repeat(2000))], /^HTTP\/1.1 431 /],
  ])('with %s are refused, nothing is stored, and the next request is served', async (_name, pieces, expected) => {
    await ingest.publishSource();
    expect(await ingest.sendRaw(pieces)).toMatch(expected);
    expect(ingest.kept.events).toEqual([]);
    expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
  });

  test('a compressed body is stored as it is', async () => {
    await ingest.publishSource();
    const body = Buffer.from([0x1f, 0x8b, 8, 0, 0]);
    await ingest.send('/ingest/acme/github', { headers: { 'Content-Encoding': 'gzip' }, body });
    expect(ingest.kept.events[0]?.payload.equals(body)).toBe(true);
    expect(ingest.kept.events[0]?.headers).toEqual([['content-encoding', 'gzip']]);
  });
});
