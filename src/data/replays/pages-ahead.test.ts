import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { replayRecord, startReplayWorld } from '../../../test/support/replays.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { WebhookMessages } from '../webhooks/webhook-messages.ts';
import { replayPayloadMemory } from './event-originals.ts';
import { PagesAhead } from './pages-ahead.ts';
import { ReplayCandidates } from './replay-candidates.ts';

const prefix = 'test:';
const limit = 50;
const upToMs = Date.now() + 3_600_000;
let world: Awaited<ReturnType<typeof startReplayWorld>>;
let pages: PagesAhead;
let reads: number;
let nowMs: number;

beforeAll(async () => {
  world = await startReplayWorld(prefix);
});
afterAll(() => world.redis.stop());
beforeEach(async () => {
  await world.empty();
  const routing = { targets: async () => [], target: async () => null };
  const messages = new WebhookMessages({ redis: world.redis.client, prefix, shards: () => world.shards });
  const all = new ReplayCandidates({ deliveries: world.reader, messages, routing, payloadMemory: replayPayloadMemory() });
  [reads, nowMs] = [0, 1000];
  const candidates: Pick<ReplayCandidates, 'next'> = {
    next: async (...args) => {
      reads++;
      return await all.next(...args);
    },
  };
  pages = new PagesAhead({ candidates, clock: { ...systemClock, now: () => nowMs } });
  await world.endedMessages(Array.from({ length: 110 }, () => 0));
});

const next = (cursor: string | null, most = limit) => pages.next(replayRecord(), upToMs, { cursor, limit: most });
const begin = (cursor: string | null, most = limit) => pages.begin(replayRecord(), upToMs, { cursor, limit: most });

test('a page is read ahead once, and given once', async () => {
  const first = await next(null);
  begin(first.next);
  const [second, again] = [await next(first.next, 1), await next(first.next)];
  expect([second.candidates.length, reads]).toEqual([50, 3]);
  expect(again).toEqual(second);
  expect(new Set([...first.candidates, ...second.candidates].map(({ id }) => id)).size).toBe(100);
});

test.each<[string, (cursor: string | null) => unknown]>([
  ['of another cursor', async (cursor) => begin((await next(cursor)).next)],
  [
    'that is too old',
    (cursor) => {
      begin(cursor);
      nowMs += 1001;
    },
  ],
  ['that could not be read', () => begin('no cursor')],
  [
    'of a replay that has been forgotten',
    (cursor) => {
      begin(cursor);
      pages.forget('identity_a');
    },
  ],
])('a page %s is not taken', async (_, prepare) => {
  const first = await next(null);
  await prepare(first.next);
  const before = reads;
  expect((await next(first.next)).candidates).toHaveLength(50);
  expect(reads - before).toBe(1);
});

test('neither the first page, a small one nor one of events is read ahead', async () => {
  const { next: cursor } = await next(null);
  begin(null);
  begin(cursor, 49);
  pages.begin(replayRecord({ what: 'events' }), upToMs, { cursor, limit });
  expect(reads).toBe(1);
});
