import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { IngestUnderTest } from '../../test/support/ingest.ts';
import { PosthornError } from '../core/errors.ts';
import { defaultIngestLimits } from './limits.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

describe('refusals', () => {
  test.each([
    '/ingest',
    '/ingest/',
    '/ingest/acme',
    '/ingest/acme/',
    '/ingest/acme/nothing',
    '/ingest/other/github',
    '/ingest/acme/github/more',
    '/ingest//github',
    '/ingest/acme//',
    '/ingest/acme/..',
    '/ingest/../ingest/acme/github',
    '/ingest/acme/%67ithub',
    '/ingest/acme%2Fgithub',
    '/ingest/acme/github%00',
    '/ingest/acme/github%2F',
    '/ingest/ACME/github',
    '/ingest/acme/../acme/github',
    '/ingest/acme/github;x',
    '/ingest/acme/src_a',
    `/ingest/acme/${'a'.repeat(2000)}`,
    '/ingest/__proto__/constructor',
    'http://in.example/ingest/acme/../acme/github',
    'http://in.example/ingest/acme/nothing',
  ])('%s is 404', async (path) => {
    await ingest.publishSource();
    const { status, headers, body } = await ingest.send(path);
    expect([status, headers['x-error-code'], body.code]).toEqual([404, 'NOT_FOUND', 'NOT_FOUND']);
  });

  test.each(['/', '/ingestion', '/ingest-x', '/api/ingest', 'http://in.example/api', 'http://in.example/other/ingest/acme/github'])(
    '%s is left to others',
    async (path) => {
      expect((await ingest.send(path)).status).toBe(421);
    },
  );

  test('a disabled source is 403', async () => {
    await ingest.publishSource({ enabled: false });
    expect((await ingest.send('/ingest/acme/github')).body.code).toBe('SOURCE_DISABLED');
  });

  test.each(['GET', 'PUT', 'DELETE', 'OPTIONS', 'HEAD'])('%s is 405 with Allow where only POST and PATCH are allowed', async (method) => {
    await ingest.publishSource({ allowedMethods: ['POST', 'PATCH'] });
    const { status, headers } = await ingest.send('/ingest/acme/github', { method, body: '' });
    expect([status, headers.allow, headers['x-error-code']]).toEqual([405, 'POST, PATCH', 'METHOD_NOT_ALLOWED']);
  });

  test('an announced body over the limit is 413, one at the limit is not', async () => {
    await ingest.publishSource({ payloadLimitBytes: 1000 });
    expect((await ingest.send('/ingest/acme/github', { body: 'x'.repeat(1001) })).body.code).toBe('PAYLOAD_TOO_LARGE');
    expect((await ingest.send('/ingest/acme/github', { body: 'x'.repeat(1000) })).status).toBe(200);
  });

  test('a body of 10 MB is 413, and the sender can read the answer', async () => {
    await ingest.publishSource();
    const { status, body } = await ingest.send('/ingest/acme/github', { body: Buffer.alloc(10_000_000) });
    expect([status, body.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });

  test('a chunked body is 413 as soon as it is over the limit', async () => {
    await ingest.publishSource({ payloadLimitBytes: 1000 });
    const { status } = await ingest.send('/ingest/acme/github', {
      headers: { 'Transfer-Encoding': 'chunked' },
      body: Buffer.alloc(10_000_000),
    });
    expect(status).toBe(413);
    expect(ingest.kept.events).toEqual([]);
  });

  test('an acceptor that cannot store is 503 with Retry-After', async () => {
    await ingest.publishSource();
    ingest.kept.hold = async () => {
      throw new PosthornError('UNAVAILABLE', 'Redis does not answer', { retryAfterSeconds: 1 });
    };
    const { status, headers, body } = await ingest.send('/ingest/acme/github');
    expect([status, headers['retry-after'], body.code]).toEqual([503, '1', 'UNAVAILABLE']);
  });

  test('an acceptor that does not answer is 503 with Retry-After at the deadline of 1.5 s', async () => {
    const { storeDeadlineMs } = defaultIngestLimits;
    expect(storeDeadlineMs).toBe(1500);
    await ingest.reset({ storeDeadlineMs });
    await ingest.publishSource();
    ingest.kept.hold = () => new Promise(() => {});
    const { status, headers } = await ingest.send('/ingest/acme/github');
    expect([status, headers['retry-after']]).toEqual([503, '1']);
  });

  test('a defect is 500, and says nothing of itself', async () => {
    await ingest.publishSource();
    ingest.kept.hold = async () => {
      throw new TypeError('secret detail');
    };
    const { status, body } = await ingest.send('/ingest/acme/github');
    expect([status, body.code, JSON.stringify(body).includes('secret detail')]).toEqual([500, 'INTERNAL', false]);
  });

  test('requests beyond the bound are 503, and the bound is free again afterwards', async () => {
    await ingest.reset({ requestsInFlight: 2 });
    await ingest.publishSource();
    const gate = Promise.withResolvers<void>();
    ingest.kept.hold = () => gate.promise;
    const held = [ingest.send('/ingest/acme/github'), ingest.send('/ingest/acme/github')];
    await eventually('a 503', 30_000, async () => (await ingest.send('/ingest/acme/github')).status === 503);
    gate.resolve();
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
  });

  test('bytes beyond the bound are 503, and the bound is free again afterwards', async () => {
    await ingest.reset({ bytesInFlight: 100 });
    await ingest.publishSource();
    expect((await ingest.send('/ingest/acme/github', { body: 'x'.repeat(101) })).status).toBe(503);
    expect((await ingest.send('/ingest/acme/github', { body: 'x'.repeat(100) })).status).toBe(200);
    expect((await ingest.send('/ingest/acme/github', { body: 'x'.repeat(100) })).status).toBe(200);
  });

  test('an organization that uses up its share of requests or bytes is 503, and another one is taken', async () => {
    await ingest.reset({ requestsOfOrganization: 2, bytesOfOrganization: 100 });
    await ingest.publishSource();
    await ingest.publishSource({ id: 'src_other', org: 'org_other', orgSlug: 'other', slug: 'github' });
    expect((await ingest.send('/ingest/acme/github', { body: 'x'.repeat(101) })).status).toBe(503);
    expect((await ingest.send('/ingest/acme/github', { body: 'x'.repeat(100) })).status).toBe(200);
    const gate = Promise.withResolvers<void>();
    ingest.kept.hold = () => gate.promise;
    const held = [ingest.send('/ingest/acme/github'), ingest.send('/ingest/acme/github')];
    await eventually('a 503', 30_000, async () => (await ingest.send('/ingest/acme/github')).status === 503);
    const other = ingest.send('/ingest/other/github');
    gate.resolve();
    expect((await Promise.all([...held, other])).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test.each([
    ['requests', { requestsOfOrganization: 8 }],
    ['bytes', { bytesOfOrganization: 800 }],
  ])('a source that takes all %s it gets leaves some to another source of its organization', async (_, limits) => {
    await ingest.reset(limits);
    await ingest.publishSource();
    await ingest.publishSource({ id: 'src_b', slug: 'sibling' });
    const gate = Promise.withResolvers<void>();
    const { heard } = ingest;
    ingest.kept.hold = () => gate.promise;
    const body = 'x'.repeat(100);
    let refused = 0;
    const send = async (path: string): Promise<number> => {
      const { status } = await ingest.send(path, { body });
      if (status === 503) refused++;
      return status;
    };
    const greedy = Array.from({ length: 8 }, () => send('/ingest/acme/github'));
    await eventually(() => expect(refused).toBe(2));
    const sibling = send('/ingest/acme/sibling');
    await Promise.race([sibling, eventually(() => expect(ingest.heard).toBe(heard + 9))]);
    gate.resolve();
    expect(await sibling).toBe(200);
    expect((await Promise.all(greedy)).filter((status) => status === 200)).toHaveLength(6);
  });

  test('every outcome is counted under its code', async () => {
    await ingest.publishSource({ payloadLimitBytes: 10 });
    await ingest.send('/ingest/acme/nothing');
    await ingest.send('/ingest/acme/github', { body: 'x'.repeat(11) });
    await ingest.send('/ingest/acme/github', { method: 'GET', body: '' });
    expect(await ingest.outcomes()).toEqual({ NOT_FOUND: 1, PAYLOAD_TOO_LARGE: 1, METHOD_NOT_ALLOWED: 1 });
  });
});

describe('Redis away', () => {
  test('an unknown plan is 503 by the deadline of 1.5 s, a known one is still taken', async () => {
    const { planDeadlineMs } = defaultIngestLimits;
    expect(planDeadlineMs).toBe(1500);
    await ingest.reset({ planDeadlineMs });
    await ingest.publishSource();
    await ingest.publishRoute();
    await eventually('a known plan', 30_000, async () => (await ingest.send('/ingest/acme/github')).status === 200);
    await ingest.redis.kill('SIGKILL');
    try {
      const { status, headers } = await ingest.send('/ingest/acme/other');
      expect([status, headers['retry-after']]).toEqual([503, '1']);
      expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
    } finally {
      await ingest.redis.start();
      await eventually('Redis', 30_000, async () => (await ingest.redis.client.ping().catch(() => '')) === 'PONG');
    }
  });
});
