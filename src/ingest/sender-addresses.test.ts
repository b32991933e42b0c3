import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { IngestUnderTest, signingSecret } from '../../test/support/ingest.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

const send = (forwarded?: string) =>
  ingest.send('/ingest/acme/github', { headers: forwarded === undefined ? {} : { 'X-Forwarded-For': forwarded } });

test.each<[string, { allow: string[] | null; deny: string[] }, number]>([
  ['in the allowlist is taken', { allow: ['127.0.0.0/8'], deny: [] }, 200],
  ['outside the allowlist is 403', { allow: ['192.0.2.0/24'], deny: [] }, 403],
  ['in the denylist is 403', { allow: null, deny: ['127.0.0.1/32'] }, 403],
  ['outside the denylist is taken', { allow: null, deny: ['192.0.2.0/24'] }, 200],
  ['in both lists is 403', { allow: ['127.0.0.0/8'], deny: ['127.0.0.1/32'] }, 403],
])('an address %s', async (_name, ipFilter, status) => {
  await ingest.publishSource({ ipFilter });
  const answer = await send('192.0.2.1');
  expect([answer.status, answer.body.code]).toEqual([status, status === 403 ? 'IP_NOT_ALLOWED' : undefined]);
});

test('behind a trusted proxy the forwarded address counts', async () => {
  await ingest.reset({}, undefined, { trustedProxies: ['127.0.0.0/8'] });
  await ingest.publishSource({ ipFilter: { allow: ['192.0.2.0/24'], deny: [] } });
  expect((await send('198.51.100.9, 192.0.2.1')).status).toBe(200);
  expect((await send('192.0.2.1, 198.51.100.9')).status).toBe(403);
  expect((await send()).status).toBe(403);
});

test('while a secret is being replaced both are valid, afterwards the new one', async () => {
  const context = recordSealingContext('org_a', 'source', 'src_a', 'signingSecrets');
  const previous = (validUntilMs: number) => ({ sealed: [ingest.keyring.seal('the old secret', context)], validUntilMs });
  const status = async (secret: string): Promise<number> => {
    const headers = { 'X-Hub-Signature-256': `sha256=${createHmac('sha256', secret).update('{}').digest('hex')}` };
    return (await ingest.send('/ingest/acme/github', { headers })).status;
  };
  await ingest.publishSignedSource({ previousSigningSecrets: previous(Date.now() + 60_000) });
  expect([await status(signingSecret), await status('the old secret'), await status('another')]).toEqual([200, 200, 401]);
  await ingest.publishSignedSource({ previousSigningSecrets: previous(Date.now() - 1), generation: 2 });
  expect([await status(signingSecret), await status('the old secret')]).toEqual([200, 401]);
});
