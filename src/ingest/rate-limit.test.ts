import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { IngestUnderTest } from '../../test/support/ingest.ts';

let ingest: IngestUnderTest;
let other: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
  other = await ingest.replica();
});
afterAll(async () => {
  await other.stop();
  await ingest.stop();
});
beforeEach(() => ingest.reset());

test('two replicas take together exactly as many requests in a minute as the source allows, and the others are told when to come back', async () => {
  await ingest.publishSource({ rateLimitPerMinute: 20 });
  const replicas = [ingest, other];
  const answers = await Promise.all(Array.from({ length: 64 }, (_, i) => replicas[i % 2]?.send('/ingest/acme/github')));
  const refused = answers.filter((answer) => answer?.status === 429);
  expect([answers.filter((answer) => answer?.status === 200).length, refused.length]).toEqual([20, 44]);
  for (const answer of refused) {
    expect(answer?.body.code).toBe('RATE_LIMITED');
    expect(Number(answer?.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(answer?.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(answer?.headers).toMatchObject({ 'x-ratelimit-limit': '20', 'x-ratelimit-remaining': '0' });
  }
  expect(ingest.kept.events.length + other.kept.events.length).toBe(20);
});

test('sources have limits of their own, and one without has none', async () => {
  await ingest.publishSource({ rateLimitPerMinute: 1 });
  await ingest.publishSource({ id: 'src_b', slug: 'b', rateLimitPerMinute: 1 });
  await ingest.publishSource({ id: 'src_c', slug: 'c' });
  const statuses = async (slug: string): Promise<number[]> => [
    (await ingest.send(`/ingest/acme/${slug}`)).status,
    (await ingest.send(`/ingest/acme/${slug}`)).status,
  ];
  expect([await statuses('github'), await statuses('b'), await statuses('c')]).toEqual([
    [200, 429],
    [200, 429],
    [200, 200],
  ]);
});

test('every answer after the limit was checked reports it, and none of a source without a limit', async () => {
  await ingest.publishSource({ rateLimitPerMinute: 3, payloadLimitBytes: 10 });
  const stored = await ingest.send('/ingest/acme/github', { body: '{}' });
  const tooLarge = await ingest.send('/ingest/acme/github', { body: 'x'.repeat(11) });
  const told = ({ status, headers }: typeof stored) => [status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']];
  expect([told(stored), told(tooLarge)]).toEqual([
    [200, '3', '2'],
    [413, '3', '1'],
  ]);
  for (const { headers } of [stored, tooLarge])
    expect(Math.abs(Number(headers['x-ratelimit-reset']) - Date.now() / 1000)).toBeLessThan(3600);
  await ingest.publishSource({ id: 'src_b', slug: 'b' });
  expect(told(await ingest.send('/ingest/acme/b'))).toEqual([200, undefined, undefined]);
});

test('the next minute restarts', async () => {
  await ingest.publishSource({ rateLimitPerMinute: 1 });
  await ingest.send('/ingest/acme/github');
  expect((await ingest.send('/ingest/acme/github')).status).toBe(429);
  await ingest.endMinuteOf('src_a');
  expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
});

test('a source with a limit is 503 without Redis', async () => {
  await ingest.publishSource({ rateLimitPerMinute: 5 });
  expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
  await ingest.redis.kill('SIGKILL');
  try {
    const { status, headers } = await ingest.send('/ingest/acme/github');
    expect([status, headers['retry-after']]).toEqual([503, '1']);
  } finally {
    await ingest.redis.start();
  }
});
