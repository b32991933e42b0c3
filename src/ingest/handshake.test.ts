import { createHmac } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { IngestUnderTest, signingSecret } from '../../test/support/ingest.ts';

const question =
  '{"token":"Jhj5dZrVaK7ZwHHjRyZWjbDl","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

function slackHeaders(body: string): OutgoingHttpHeaders {
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', signingSecret).update(`v0:${seconds}:${body}`).digest('hex');
  return { 'X-Slack-Request-Timestamp': seconds, 'X-Slack-Signature': `v0=${signature}`, 'Content-Type': 'application/json' };
}

test('Slack gets its challenge back once the signature is right, and nothing is stored', async () => {
  await ingest.publishSignedSource({ provider: 'slack' });
  const { status, body } = await ingest.send('/ingest/acme/github', { headers: slackHeaders(question), body: question });
  expect([status, body]).toEqual([200, { challenge: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P' }]);
  expect(ingest.kept.events).toEqual([]);
  expect(await ingest.outcomes()).toEqual({ handshake: 1 });
});

test('Slack gets no challenge without a right signature', async () => {
  await ingest.publishSignedSource({ provider: 'slack' });
  expect((await ingest.send('/ingest/acme/github', { body: question })).status).toBe(401);
  await ingest.publishSignedSource({ provider: 'slack', rejectInvalidSignatures: false, generation: 2 });
  expect((await ingest.send('/ingest/acme/github', { body: question })).body).toEqual({ success: true, eventId: expect.any(String) });
});

test.each([
  ['slack', '{"type":"event_callback","text":"url_verification"}'],
  ['slack', '{"type":"url_verification"}'],
  ['slack', 'url_verification'],
  ['generic', question],
] as const)('%s: %s is an event', async (provider, body) => {
  await ingest.publishSource({ provider });
  expect((await ingest.send('/ingest/acme/github', { body })).body.success).toBe(true);
  expect(ingest.kept.events[0]?.payload.toString()).toBe(body);
});

test('Intercom, which probes by HEAD before it accepts an address, gets 200; others do not', async () => {
  await ingest.publishSignedSource({ provider: 'intercom' });
  expect((await ingest.send('/ingest/acme/github', { method: 'HEAD', body: '' })).status).toBe(200);
  await ingest.publishSignedSource({ provider: 'sentry', generation: 2 });
  expect((await ingest.send('/ingest/acme/github', { method: 'HEAD', body: '' })).status).toBe(405);
  expect(ingest.kept.events).toEqual([]);
});
