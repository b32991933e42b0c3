import { beforeEach, expect, test } from '@jest/globals';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { webhookProgramSuite } from '../../../test/support/webhook-program-suite.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const org = 'org_a';
const inside = webhookOrganization(org);
const suite = webhookProgramSuite();
const { becomes, worker } = suite;
let endpoint: WebhookEndpoint;
beforeEach(async () => {
  endpoint = await suite.endpoint();
});

async function send(notBeforeMs: number | null): Promise<string> {
  const event = newWebhookEvent(org, [endpoint]);
  const times = notBeforeMs === null ? {} : { notBeforeMs };
  const targets = event.targets.map((target) => ({ ...target, ...times }));
  await suite.accept({ ...event, ...times, targets });
  return event.targets[0]?.messageId ?? '';
}

test('a scheduled message is sent at its time by a worker that was idle, beside a message that is sent at once', async () => {
  await worker();
  await becomes(await send(null), { status: 'delivered' });
  const notBeforeMs = Date.now() + 3000;
  const scheduled = await send(notBeforeMs);
  await becomes(await send(null), { status: 'delivered' });
  await becomes(scheduled, { status: 'delivered', attempts: 1 });
  const sent = suite.receiver.requests.filter(({ headers }) => headers['webhook-id'] === scheduled);
  expect(sent).toHaveLength(1);
  expect(sent[0]?.atMs).toBeGreaterThanOrEqual(notBeforeMs - 10);
}, 60_000);

test('a scheduled message is sent once, at its time, though all workers were killed before; its replay is sent at once', async () => {
  const killed = await worker();
  await becomes(await send(null), { status: 'delivered' });
  const notBeforeMs = Date.now() + 4000;
  const scheduled = await send(notBeforeMs);
  killed.signal('SIGKILL');
  await killed.ended;
  await worker();
  await becomes(scheduled, { status: 'delivered', attempts: 1 });
  const sent = suite.receiver.requests.filter(({ headers }) => headers['webhook-id'] === scheduled);
  expect(sent).toHaveLength(1);
  expect(sent[0]?.atMs).toBeGreaterThanOrEqual(notBeforeMs - 10);
  const again = await new RedisMessageReplayer({ redis: suite.redis.client, prefix: suite.prefix, clock: systemClock }).replay(
    inside,
    scheduled,
  );
  await becomes(again, { status: 'delivered' });
}, 60_000);
