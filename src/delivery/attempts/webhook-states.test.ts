import { beforeEach, describe, expect, test } from '@jest/globals';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { endCooldowns } from '../../../test/support/end-cooldowns.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../../test/support/memory-directory.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import { Circuits } from '../../data/queue/circuits.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { WebhookMessages } from '../../data/webhooks/webhook-messages.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const org = 'org_a';
const secret = {
  sealed: testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext(org, 'ep_a')),
  prefix: 'whsec_AQEB…',
  version: 1,
  previous: [],
};
const suite = deliverySuite();
const { prefix } = suite;
let directory: MemoryDirectory;
let messages: WebhookMessages;
/** The receiver's response; null: none. */
let answer: number | null;
let held: (() => void)[];

beforeEach(() => {
  directory = new MemoryDirectory();
  directory.putApplication(webhookApplication());
  messages = new WebhookMessages({ redis: suite.redis.client, prefix });
  answer = 200;
  held = [];
});

async function endpoint(changes: Partial<WebhookEndpoint> = {}): Promise<WebhookEndpoint> {
  const { url } = await suite.receiver((response) => {
    const status = answer;
    if (status === null) held.push(() => response.writeHead(200).end());
    else response.writeHead(status).end();
  });
  const made = webhookEndpoint({ url, secret, ...changes });
  directory.putEndpoint(made);
  return made;
}
function worker(delaysMs: readonly number[]) {
  return suite.worker({ webhooks: { ...directory.sources(), retries: { delaysMs } } });
}
async function send(to: WebhookEndpoint): Promise<string> {
  const event = newWebhookEvent(org, [to]);
  await suite.acceptor.accept(event);
  return event.targets[0]?.messageId ?? '';
}
const becomes = (id: string, expected: object) => eventually(async () => expect(await messages.message(org, id)).toMatchObject(expected));

describe('a message', () => {
  test('a message is pending while its endpoint is disabled, processing while the endpoint has not answered, then a success', async () => {
    answer = null;
    const to = await endpoint({ isDisabled: true });
    worker([]);
    const id = await send(to);
    await eventually(async () => expect(await suite.redis.client.scard(`${prefix}{s0}:paused`)).toBe(1));
    await becomes(id, { status: 'pending', attempts: 0, completedAtMs: null, waitingFor: 'endpoint_disabled', waitingUntilMs: null });
    directory.putEndpoint({ ...to, isDisabled: false, revision: 2 });
    await eventually(() => expect(held).toHaveLength(1));
    await becomes(id, { status: 'processing', attempts: 0 });
    held[0]?.();
    await becomes(id, { status: 'success', attempts: 1, completedAtMs: expect.any(Number) });
  });

  test('a message has failed between attempts, then is a dead letter, then exhausted when it is archived', async () => {
    answer = 503;
    const to = await endpoint();
    const first = worker([3_600_000]);
    const waiting = await send(to);
    await becomes(waiting, {
      status: 'failed',
      attempts: 1,
      nextAttemptAtMs: expect.any(Number),
      waitingFor: 'retry',
      waitingUntilMs: expect.any(Number),
      lastErrorType: 'http_error',
      completedAtMs: null,
    });
    await first.stop(1000);
    worker([]);
    const id = await send(to);
    await becomes(id, { status: 'dlq', deadLetter: { reason: 'max_retries_exceeded', movedAtMs: expect.any(Number) } });
    await new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock }).archive(webhookOrganization(org), id);
    await becomes(id, { status: 'exhausted', attempts: 1 });
  });

  test('a message whose payload is missing is a dead letter that reports it', async () => {
    const id = await send(await endpoint());
    for (const key of await suite.redis.client.keys(`${prefix}{s0}:e:*`)) await suite.redis.client.del(key);
    worker([50]);
    await becomes(id, { status: 'dlq', attempts: 0, deadLetter: { reason: 'payload_not_found' } });
  });
});

test('another organization sees neither message, attempts, payload nor kept answer by their ids', async () => {
  const to = await endpoint();
  const event = { ...newWebhookEvent(org, [to]), answer: { text: 'kept', keptMs: 60_000 } };
  await suite.acceptor.accept(event);
  worker([]);
  const id = event.targets[0]?.messageId ?? '';
  await becomes(id, { status: 'success' });
  const seenBy = async (who: string) => [
    await messages.message(who, id),
    await messages.attempts(who, id),
    await messages.event(who, event.id),
    await messages.payload(who, event.id),
    await messages.answer(who, event.id),
  ];
  const own = [{ status: 'success' }, [{ responseStatus: 200 }], { event: { id: event.id } }, event.payload, 'kept'];
  expect(await seenBy(org)).toMatchObject(own);
  for (const other of ['org_b', webhookOrganization(org)]) expect(await seenBy(other)).toEqual([null, [], null, null, null]);
});

describe('the circuit of an endpoint', () => {
  const circuit = { failureThreshold: 2, successThreshold: 2, cooldownSeconds: 3600 };
  const stateOf = async () =>
    (await new Circuits({ redis: suite.redis.client, prefix }).ofRoute(webhookOrganization(org), 'app_a', ['ep_a']))[0];

  test('the circuit of an endpoint opens after its threshold of failures; messages wait without using up attempts; successful probes close it', async () => {
    answer = 500;
    const to = await endpoint({ circuit });
    worker([300, 300, 300]);
    const failing = await send(to);
    await becomes(failing, { status: 'failed', attempts: 2 });
    const fresh = await send(to);
    expect(await stateOf()).toMatchObject({ state: 'open', consecutiveFailures: 2 });
    await becomes(fresh, { status: 'pending', attempts: 0, lastErrorType: 'circuit_open' });
    answer = 200;
    await endCooldowns(suite.redis.client, prefix);
    await becomes(fresh, { status: 'success', attempts: 1 });
    await becomes(failing, { status: 'success', attempts: 3 });
    expect(await stateOf()).toMatchObject({ state: 'closed', consecutiveFailures: 0 });
  });

  test('the circuit of an endpoint opens again when a probe fails, and a message whose last attempt that was is a dead letter of the circuit', async () => {
    answer = 500;
    const to = await endpoint({ circuit: { ...circuit, failureThreshold: 1 } });
    worker([50]);
    const id = await send(to);
    await becomes(id, { status: 'failed', attempts: 1 });
    await endCooldowns(suite.redis.client, prefix);
    await becomes(id, { status: 'dlq', attempts: 2, deadLetter: { reason: 'circuit_breaker_exhausted' } });
    expect(await stateOf()).toMatchObject({ state: 'open' });
  });
});

test('messages are kept for their time from their end, dead letters for a longer one, unfinished ones for as long as it takes', async () => {
  const to = await endpoint();
  const running = worker([3_600_000]);
  const delivered = await send(to);
  await becomes(delivered, { status: 'success' });
  answer = 500;
  const unfinished = await send(to);
  await becomes(unfinished, { status: 'failed' });
  answer = 410;
  const dead = await send(to);
  await becomes(dead, { status: 'dlq' });
  await running.stop(1000);
  await new RedisDeliveryQueue({ redis: suite.redis.client, prefix }).prune({ finishedMs: -1000, deadLettersMs: 86_400_000 });
  expect(await messages.message(org, delivered)).toBeNull();
  await becomes(unfinished, { status: 'failed' });
  await becomes(dead, { status: 'dlq' });
});
