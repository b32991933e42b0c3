import { beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import type { Program } from '../../../test/support/program.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { webhookProgramSuite } from '../../../test/support/webhook-program-suite.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import { Circuits } from '../../data/queue/circuits.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const org = 'org_a';
const inside = webhookOrganization(org);
const usedUp = { status: 'dlq', deadLetterReason: 'max_retries_exceeded', attempts: 3, maxAttempts: 3 };
const suite = webhookProgramSuite();
const { becomes, endpoint: endpointWith, prefix } = suite;
let answer: number;
beforeEach(() => {
  answer = 200;
  suite.answer = (response) => response.writeHead(answer, { 'retry-after': '3600' }).end();
});

/** `delays`: of the installation, in seconds. */
const startWorker = (delays = '3600'): Promise<Program> => suite.worker({ POSTHORN_WEBHOOK_RETRY_DELAYS: delays });

async function send(endpoint: WebhookEndpoint): Promise<string> {
  const event = newWebhookEvent(org, [endpoint]);
  await suite.accept(event);
  return event.targets[0]?.messageId ?? '';
}

/** The status of a message that has ended; false: it has not ended yet. */
async function endOf(messageId: string): Promise<string | false> {
  const { status } = (await suite.reader.delivery(inside, messageId)) ?? {};
  return status === 'delivered' || status === 'dlq' ? status : false;
}
const waitsMs = (): number[] => suite.receiver.requests.slice(1).map(({ atMs }, i) => atMs - (suite.receiver.requests[i]?.atMs ?? 0));

describe('an endpoint with delays of its own', () => {
  test('an endpoint with delays of its own has as many retries, each after its delay, and again when its dead letter is retried', async () => {
    answer = 500;
    await startWorker();
    const circuit = { failureThreshold: 1000, successThreshold: 1, cooldownSeconds: 60 };
    const endpoint = await endpointWith({ retryDelaysSeconds: [2, 1], circuit });
    const messageId = await send(endpoint);
    await becomes(messageId, usedUp);
    // Each varies by a fifth.
    const [toSecond, toThird] = waitsMs();
    expect(toSecond).toBeGreaterThanOrEqual(1590);
    expect(toThird).toBeGreaterThanOrEqual(790);
    const replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock });
    const again = await replayer.replay(inside, messageId);
    await becomes(again, usedUp);
    expect(suite.receiver.requests).toHaveLength(6);
    await suite.store.updateEndpoint(org, endpoint.id, { successStatusCodes: [500] });
    // Until the worker has read the change, a replay ends as a dead letter again.
    let dead = again;
    await eventually('a replay to be delivered', 40_000, async () => {
      const replayed = await replayer.replay(inside, dead);
      const status = await eventually('the replay to end', 20_000, async () => endOf(replayed));
      if (status === 'dlq') dead = replayed;
      else expect(await suite.reader.delivery(inside, replayed)).toMatchObject({ status: 'delivered', attempts: 1 });
      return status === 'delivered';
    });
  }, 90_000);

  test('an endpoint with delays of its own gets what is due after the worker was killed between two attempts', async () => {
    answer = 500;
    const endpoint = await endpointWith({ retryDelaysSeconds: [4, 1] });
    const killed = await startWorker();
    const messageId = await send(endpoint);
    await becomes(messageId, { status: 'retrying', attempts: 1, maxAttempts: 3 });
    const { nextAttemptAtMs } = (await suite.reader.delivery(inside, messageId)) ?? {};
    const [first] = await suite.receiver.arrived(1);
    const delayMs = (nextAttemptAtMs ?? 0) - (first?.atMs ?? 0);
    // It varies by a fifth, and a slow worker begins it late; the delay of the installation is an hour.
    expect(delayMs).toBeGreaterThanOrEqual(3190);
    expect(delayMs).toBeLessThan(600_000);
    killed.signal('SIGKILL');
    await killed.ended;
    await startWorker();
    await becomes(messageId, usedUp);
    expect(suite.receiver.requests.map(({ headers }) => headers['x-posthorn-attempt'])).toEqual(['1', '2', '3']);
    expect(suite.receiver.requests[1]?.atMs).toBeGreaterThanOrEqual((nextAttemptAtMs ?? 0) - 10);
    expect(waitsMs()[1]).toBeGreaterThanOrEqual(790);
  }, 60_000);

  test('an endpoint with delays of its own has those of the installation once its own are removed', async () => {
    answer = 500;
    await startWorker('1');
    const circuit = { failureThreshold: 1000, successThreshold: 1, cooldownSeconds: 60 };
    const endpoint = await endpointWith({ retryDelaysSeconds: [3600], circuit });
    await becomes(await send(endpoint), { status: 'retrying', maxAttempts: 2 });
    await suite.store.updateEndpoint(org, endpoint.id, { retryDelaysSeconds: null });
    // Until the worker has read the change, a message waits for an hour.
    await eventually('a message to be tried again after a second', 40_000, async () => {
      const messageId = await send(endpoint);
      const retried = await eventually('the first attempt', 20_000, async () => {
        const shown = await suite.reader.delivery(inside, messageId);
        return shown?.attempts === 0 ? undefined : shown;
      });
      if ((retried?.nextAttemptAtMs ?? 0) > systemClock.now() + 600_000) return false;
      await becomes(messageId, { status: 'dlq', attempts: 2, maxAttempts: 2 });
      return true;
    });
  }, 90_000);
});

describe('an endpoint with success statuses of its own', () => {
  test.each([409, 410, 429, 503, 302, 204])(
    'a %i that is among them is success and nothing else',
    async (status) => {
      answer = status;
      await startWorker();
      const circuit = { failureThreshold: 1, successThreshold: 1, cooldownSeconds: 3600 };
      const endpoint = await endpointWith({ successStatusCodes: ['2xx', 302, '4XX', 503], circuit });
      await becomes(await send(endpoint), { status: 'delivered', attempts: 1, lastResponseStatus: status, lastErrorType: null });
      expect(await suite.store.endpoint(org, endpoint.id)).toMatchObject({ isDisabled: false });
      const [shown] = await new Circuits({ redis: suite.redis.client, prefix }).ofRoute(inside, endpoint.applicationId, [endpoint.id]);
      expect(shown?.state ?? 'closed').toBe('closed');
    },
    60_000,
  );

  test('a 2xx that is not among them is a failure, and so is a 410, which disables', async () => {
    await startWorker('1');
    const endpoint = await endpointWith({ successStatusCodes: [202] });
    await becomes(await send(endpoint), { status: 'dlq', attempts: 2, lastResponseStatus: 200, lastErrorType: 'http_error' });
    answer = 202;
    await becomes(await send(endpoint), { status: 'delivered', attempts: 1 });
    answer = 410;
    await becomes(await send(endpoint), { status: 'dlq', lastErrorType: 'gone' });
    expect(await suite.store.endpoint(org, endpoint.id)).toMatchObject({ isDisabled: true });
  }, 60_000);
});
