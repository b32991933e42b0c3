import { createHmac } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { IngestUnderTest, keyPrefix, signingSecret } from '../../test/support/ingest.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset({}, new RedisMessageAcceptor({ redis: ingest.redis.client, prefix: keyPrefix, clock: lenientClock })));

const sign = (body: string): OutgoingHttpHeaders => ({
  'X-GitHub-Delivery': `delivery of ${body}`,
  'X-Hub-Signature-256': `sha256=${createHmac('sha256', signingSecret).update(body).digest('hex')}`,
});

/** A source that refuses for every reason from the `from`th on; what the request breaks is in the order in which ingest checks. */
const reasons = [
  'SOURCE_DISABLED',
  'IP_NOT_ALLOWED',
  'METHOD_NOT_ALLOWED',
  'RATE_LIMITED',
  'PAYLOAD_TOO_LARGE',
  'INVALID_SIGNATURE',
  'QUOTA_EXCEEDED',
];

test.each(reasons.map((code, from) => [code, from] as const))('%s is reported before later reasons', async (code, from) => {
  const refuses = (reason: string): boolean => reasons.indexOf(reason) >= from;
  const context = recordSealingContext('org_a', 'source', 'src_a', 'signingSecrets');
  const open = {
    signingSecrets: [ingest.keyring.seal(signingSecret, context)],
    rejectInvalidSignatures: true,
    rateLimitPerMinute: refuses('RATE_LIMITED') ? 1 : 1000,
    monthlyMessages: 1,
  };
  await ingest.publishSource(open);
  await ingest.publishRoute();
  expect((await ingest.send('/ingest/acme/github', { headers: sign('{}') })).status).toBe(200);
  await ingest.publishSource({
    ...open,
    enabled: !refuses('SOURCE_DISABLED'),
    ...(refuses('IP_NOT_ALLOWED') && { ipFilter: { allow: null, deny: ['127.0.0.0/8'] } }),
    payloadLimitBytes: refuses('PAYLOAD_TOO_LARGE') ? 10 : 1000,
    generation: 2,
  });
  const body = 'x'.repeat(100);
  const headers = refuses('INVALID_SIGNATURE') ? {} : sign(body);
  const method = refuses('METHOD_NOT_ALLOWED') ? 'PUT' : 'POST';
  const answer = await ingest.send('/ingest/acme/github', { method, headers, body });
  expect(answer.body.code).toBe(code);
});

test('what is refused leaves no dedup key: sent again without the fault it is no duplicate', async () => {
  await ingest.publishSignedSource({ payloadLimitBytes: 10, rateLimitPerMinute: 3 });
  const body = '{"large":"large"}';
  for (const send of [{ headers: { 'X-GitHub-Delivery': `delivery of ${body}` } }, { headers: sign(body), body }])
    expect((await ingest.send('/ingest/acme/github', send)).body.code).toMatch(/INVALID_SIGNATURE|PAYLOAD_TOO_LARGE/);
  expect((await ingest.send('/ingest/acme/github', { method: 'PUT', headers: sign(body), body })).status).toBe(405);
  await ingest.publishSignedSource({ generation: 2 });
  expect((await ingest.send('/ingest/acme/github', { headers: sign(body), body })).body).toEqual({
    success: true,
    eventId: expect.any(String),
  });
});
