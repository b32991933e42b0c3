import { beforeEach, expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';
import type { DeliveryView } from '../../data/shard/messages.ts';

const suite = deliverySuite();
const { receiver, worker } = suite;
const retryPolicy = { maxRetries: 3, initialDelayMs: 50, maxDelayMs: 50, backoffMultiplier: 1 };
const dayMs = 86_400_000;

beforeEach(() => suite.registry.put('route', routeRecord()));

async function send(): Promise<string> {
  const event = newEvent();
  await suite.acceptor.accept(event);
  return event.targets[0]?.messageId ?? '';
}
async function becomes(id: string, expected: object): Promise<DeliveryView> {
  return await eventually(async () => {
    const view = await suite.reader.delivery('org_a', id);
    expect(view).toMatchObject(expected);
    return view as DeliveryView;
  });
}

test.each([429, 503])('a message whose receiver answers %i with Retry-After waits alone: others of its target come', async (status) => {
  const to = await receiver((response, number) => response.writeHead(number === 1 ? status : 200, { 'retry-after': '3600' }).end());
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy }));
  worker();
  const first = await send();
  const { nextAttemptAtMs } = await becomes(first, { status: 'retrying', waitingFor: 'retry', attempts: 1 });
  expect((nextAttemptAtMs ?? 0) - (to.requests[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(3_600_000);
  await becomes(await send(), { status: 'delivered', attempts: 1 });
  await becomes(first, { status: 'retrying', attempts: 1 });
});

test('a message whose receiver answers 429 with Retry-After holds up an ordered target', async () => {
  const to = await receiver((response, number) => response.writeHead(number === 1 ? 429 : 200, { 'retry-after': '1' }).end());
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy, ordered: true }));
  worker();
  const ids = [await send(), await send()];
  await becomes(ids[0] ?? '', { status: 'retrying' });
  await becomes(ids[1] ?? '', { status: 'pending', attempts: 0 });
  for (const id of ids) await becomes(id, { status: 'delivered' });
  const [first, second, third] = to.requests;
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(990);
  expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
  expect(third?.headers['webhook-id']).not.toBe(first?.headers['webhook-id']);
});

test.each([
  ['604800 seconds', '604800'],
  ['seven days, by a date', new Date(Date.now() + 7 * dayMs).toUTCString()],
])('a message whose receiver requests a wait of %s waits for 24 hours', async (_, value) => {
  const to = await receiver((response) => response.writeHead(503, { 'retry-after': value }).end());
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy }));
  worker();
  const { nextAttemptAtMs } = await becomes(await send(), { status: 'retrying' });
  expect(Math.abs((nextAttemptAtMs ?? 0) - (to.requests[0]?.atMs ?? 0) - dayMs)).toBeLessThan(30_000);
});

test('a receiver and its proxy may both send Retry-After: the first one counts', async () => {
  const to = await receiver((response) => response.writeHead(429, ['retry-after', '3600', 'retry-after', '60']).end());
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy }));
  worker();
  const { nextAttemptAtMs } = await becomes(await send(), { status: 'retrying' });
  expect((nextAttemptAtMs ?? 0) - (to.requests[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(3_600_000);
});

test('Retry-After of the last attempt, and of another status, has no effect', async () => {
  const to = await receiver((response, number) => response.writeHead(number === 1 ? 500 : 503, { 'retry-after': '3600' }).end());
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy: { ...retryPolicy, maxRetries: 1 } }));
  worker();
  await becomes(await send(), { status: 'dlq', attempts: 2 });
});
