import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import type { Abandonment } from '../../src/core/loop-turns.ts';
import { WebhookMessages } from '../../src/data/webhooks/webhook-messages.ts';
import { eventually } from '../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { costlyFilter, subscribe } from './subscribed.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
  await subscribe(world, 'costly.made', [null, ...Array.from({ length: 249 }, (_, i) => costlyFilter(i + 1))]);
});
afterAll(() => world?.stop());

/** Half a second of work for the filters of its subscriptions, of which one has none: it has one message. */
const costly = { eventType: 'costly.made', payload: { a: Array.from({ length: 1000 }, () => 1), b: 'x'.repeat(5500) } };

async function storedEvents(): Promise<number> {
  return (await world.request('GET', '/api/outbound-messages?limit=100')).body.data.length;
}

/** Sends `costly`, and hangs up when its subscriptions are about to be matched, which they are after `wait`. Returns whether they were matched. */
async function hangUpBeforeMatching(wait: (work: Abandonment) => Promise<unknown>, headers: Record<string, string> = {}): Promise<boolean> {
  const { matcher } = world.sending;
  const match = matcher.match.bind(matcher);
  const sender = new AbortController();
  const isMatched = new Promise<boolean>((resolve) => {
    jest.spyOn(matcher, 'match').mockImplementationOnce(async (...args) => {
      sender.abort();
      await wait(args[4]?.signal ?? { aborted: false });
      const matches = match(...args);
      matches.then(() => resolve(true)).catch(() => resolve(false));
      return await matches;
    });
  });
  const sent = fetch(`${world.baseUrl}/api/send-event`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.admin}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(costly),
    signal: sender.signal,
  });
  await expect(sent).rejects.toThrow();
  return await isMatched;
}

test('an event whose sender hangs up is evaluated no further, and is not stored', async () => {
  expect((await world.request('POST', '/api/send-event', { body: costly })).status).toBe(201);
  const before = await storedEvents();
  const isSeen = (work: Abandonment) => eventually('the facade to see it', 30_000, () => work.aborted);
  expect(await hangUpBeforeMatching(isSeen)).toBe(false);
  expect((await world.request('POST', '/api/send-event', { body: costly })).status).toBe(201);
  expect(await storedEvents()).toBe(before + 1);
});

test('an event with an Idempotency-Key is stored although its sender hangs up, and its answer is kept', async () => {
  const headers = { 'idempotency-key': 'sent-once' };
  const before = await storedEvents();
  expect(await hangUpBeforeMatching(() => sleep(300), headers)).toBe(true);
  const answer = await eventually('the first request to end', 30_000, async () => {
    const again = await world.request('POST', '/api/send-event', { body: costly, headers });
    return again.status !== 409 && again;
  });
  expect([answer.status, await storedEvents()]).toEqual([201, before + 1]);
});

test.each(['json', 'csv'])(
  'an export as %s whose client hangs up looks no further, although it has found nothing to send',
  async (format) => {
    const client = new AbortController();
    const hasEnded = new Promise<void>((resolve) => {
      jest.spyOn(WebhookMessages.prototype, 'everyMessage').mockImplementationOnce(async function* () {
        try {
          for (let scanned = 1; ; scanned++) {
            if (scanned === 10) client.abort();
            await sleep(5);
            yield { item: null, scanned: 1, at: { ms: 1, shard: 0, number: 1 }, cursor: () => '' };
          }
        } finally {
          resolve();
        }
      });
    });
    const url = `${world.baseUrl}/api/outbound-messages/export?type=messages&format=${format}`;
    await expect(fetch(url, { headers: { authorization: `Bearer ${world.admin}` }, signal: client.signal })).rejects.toThrow();
    await hasEnded;
    expect(world.logLines.filter((line) => line.includes('internal error'))).toEqual([]);
  },
);
