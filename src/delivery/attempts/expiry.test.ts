import type { ServerResponse } from 'node:http';
import { beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { webhookProgramSuite } from '../../../test/support/webhook-program-suite.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { checkShards } from '../../data/check/shard-check.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';

const hourMs = 3_600_000;
const org = 'org_a';
const inside = webhookOrganization(org);
const suite = webhookProgramSuite();
const { prefix, worker } = suite;
const base = `${prefix}{s0}:`;
let endpoint: WebhookEndpoint;
beforeEach(async () => {
  endpoint = await suite.endpoint({ timeoutSeconds: 60 });
});

/** Sends a message that expires in so many ms; returns its id and its deadline. */
async function send(inMs: number): Promise<{ id: string; expiresAtMs: number }> {
  const event = newWebhookEvent(org, [endpoint]);
  const expiresAtMs = Date.now() + inMs;
  const targets = event.targets.map((target) => ({ ...target, expiresAtMs }));
  await suite.accept({ ...event, targets });
  return { id: event.targets[0]?.messageId ?? '', expiresAtMs };
}
const expired = { status: 'dlq', deadLetterReason: 'max_retries_exceeded', lastErrorType: 'expired' } as const;
async function expires(id: string, more: object = {}): Promise<number> {
  await eventually('the message to expire', 40_000, async () => (await suite.reader.delivery(inside, id))?.status === 'dlq');
  const view = await suite.reader.delivery(inside, id);
  expect(view).toMatchObject({ ...expired, ...more });
  return view?.completedAtMs ?? 0;
}

test('a message to a disabled endpoint is given up at its time by a worker that was idle', async () => {
  await suite.store.updateEndpoint(org, endpoint.id, { isDisabled: true });
  await worker();
  await expires((await send(1000)).id);
  // The target is configured as paused.
  const { id, expiresAtMs } = await send(2000);
  const endedAtMs = await expires(id, { attempts: 0 });
  expect(endedAtMs).toBeGreaterThanOrEqual(expiresAtMs);
  // An idle worker polls of itself after half a minute.
  expect(endedAtMs).toBeLessThan(expiresAtMs + 15_000);
  expect(suite.receiver.requests).toEqual([]);
}, 60_000);

test('a message whose next attempt would be after its time is given up after the attempt that has failed', async () => {
  suite.answer = (response) => void response.writeHead(500).end();
  await suite.store.updateEndpoint(org, endpoint.id, { retryDelaysSeconds: [3600] });
  await worker();
  const { id, expiresAtMs } = await send(60_000);
  expect(await expires(id, { attempts: 1, lastResponseStatus: 500 })).toBeLessThan(expiresAtMs);
}, 60_000);

test('an attempt that is under way at the time of its message may still deliver it', async () => {
  const responses: ServerResponse[] = [];
  suite.answer = (response) => void responses.push(response);
  await worker();
  const { id } = await send(hourMs);
  await suite.receiver.arrived(1);
  expect(await expireMessages(suite.redis.client, base)).toHaveLength(1);
  responses[0]?.end();
  await eventually('the message to be delivered', 20_000, async () => (await suite.reader.delivery(inside, id))?.status === 'delivered');
}, 60_000);

test('a message that a killed worker holds at its time is given up, and not sent again', async () => {
  // It never answers.
  suite.answer = () => undefined;
  const killed = await worker();
  const { id } = await send(hourMs);
  await suite.receiver.arrived(1);
  killed.signal('SIGKILL');
  await killed.ended;
  expect(await expireMessages(suite.redis.client, base)).toHaveLength(1);
  await worker();
  await expires(id, { attempts: 0 });
  expect(suite.receiver.requests).toHaveLength(1);
  expect((await checkShards({ redis: suite.redis.client, prefix })).findings).toEqual([]);
}, 60_000);
