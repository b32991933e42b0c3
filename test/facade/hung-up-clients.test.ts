import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { costlyFilter, subscribe } from './subscribed.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
  await subscribe(world, 'costly.made', [null, ...Array.from({ length: 249 }, (_, i) => costlyFilter(i + 1))]);
}, 60_000);
afterAll(() => world?.stop());

/** Half a second of work for the filters of its subscriptions, of which one has none: it has one message. */
const costly = { eventType: 'costly.made', payload: { a: Array.from({ length: 1000 }, () => 1), b: 'x'.repeat(5500) } };

async function storedEvents(): Promise<number> {
  return (await world.request('GET', '/api/outbound-messages?limit=100')).body.data.length;
}

async function hangUpAfter(ms: number, headers: Record<string, string> = {}): Promise<void> {
  const sent = fetch(`${world.baseUrl}/api/send-event`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.admin}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(costly),
    signal: AbortSignal.timeout(ms),
  });
  await expect(sent).rejects.toThrow();
}

test('an event whose sender hangs up is judged no further, and is not stored', async () => {
  expect((await world.request('POST', '/api/send-event', { body: costly })).status).toBe(201);
  const before = await storedEvents();
  await Promise.all([1, 2, 3, 4].map(() => hangUpAfter(100)));
  expect((await world.request('POST', '/api/send-event', { body: costly })).status).toBe(201);
  await sleep(500);
  expect(await storedEvents()).toBe(before + 1);
});

test('an event with an Idempotency-Key is stored although its sender hangs up, and its answer is kept', async () => {
  const headers = { 'idempotency-key': 'sent-once' };
  const before = await storedEvents();
  await hangUpAfter(100, headers);
  let status = 409;
  for (let i = 0; i < 100 && status === 409; i++) {
    await sleep(100);
    status = (await world.request('POST', '/api/send-event', { body: costly, headers })).status;
  }
  expect([status, await storedEvents()]).toEqual([201, before + 1]);
});
