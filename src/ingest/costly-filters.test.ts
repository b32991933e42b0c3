import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { IngestUnderTest, keyPrefix } from '../../test/support/ingest.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';

let ingest: IngestUnderTest;
let reader: RedisMessageReader;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
  reader = new RedisMessageReader({ redis: ingest.redis.client, prefix: keyPrefix });
});
afterAll(() => ingest.stop());
beforeEach(async () => {
  await ingest.reset({}, new RedisMessageAcceptor({ redis: ingest.redis.client, prefix: keyPrefix, clock: lenientClock }));
  await ingest.publishSource();
});

const matching = (value: string) => ({ logic: 'AND' as const, conditions: [{ field: 'text', operator: 'matches' as const, value }] });

async function send(text: string) {
  const { status, body } = await ingest.send('/ingest/acme/github', { body: JSON.stringify({ text }) });
  expect(status).toBe(200);
  const deliveries = await reader.deliveriesOfEvent('org_a', body.eventId ?? '');
  return Object.fromEntries(deliveries.map(({ routeId, status: became, lastErrorMessage }) => [routeId, { became, lastErrorMessage }]));
}

test('the filters of all routes share what they may cost for an event; what is not tried for that holds the event back and reports it', async () => {
  const priorities = [12, 11, 10, 9, 8, 7, 6, 5, 4];
  for (const priority of priorities)
    await ingest.publishRoute({ id: `rte_${priority}`, slug: `r${priority}`, priority, filter: matching('[ab]{900}') });
  await ingest.publishRoute({ id: 'rte_cheap', slug: 'cheap', priority: 1, filter: matching('^ab') });
  await ingest.publishRoute({ id: 'rte_all', slug: 'all', priority: 0 });
  const pending = { became: 'pending', lastErrorMessage: null };
  const all = { ...Object.fromEntries(priorities.map((priority) => [`rte_${priority}`, pending])), rte_cheap: pending, rte_all: pending };
  const costly = await send('ab'.repeat(550));
  expect(costly).toEqual({
    ...all,
    rte_4: { became: 'filtered', lastErrorMessage: expect.stringContaining('was not tried') },
  });
  expect((await ingest.metrics.getSingleMetric('posthorn_ingest_untried_filters_total')?.get())?.values[0]?.value).toBe(1);
  // Each event has a budget of its own, and a failed filter reports nothing.
  expect(await send('ab'.repeat(450))).toEqual(all);
  expect((await send('b'))['rte_cheap']).toEqual({ became: 'filtered', lastErrorMessage: null });
});

test('a text that is too long for one pattern holds the event back and reports it', async () => {
  await ingest.publishRoute({ filter: matching('[ab]{900}') });
  expect((await send('ab'.repeat(600)))['rte_a']).toEqual({
    became: 'filtered',
    lastErrorMessage: expect.stringContaining('was not tried'),
  });
});
