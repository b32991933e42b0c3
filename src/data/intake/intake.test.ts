import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { inBatches } from '../../../test/support/in-batches.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newTimedId } from '../../core/ids.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisStatisticsReader } from '../analytics/redis-statistics-reader.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { type EventClaim, RedisIntake } from './intake.ts';

const prefix = 'test:';
let redis: RedisServer;
let intake: RedisIntake;
beforeAll(async () => {
  redis = await startRedis();
  intake = new RedisIntake({ redis: redis.client, prefix, clock: systemClock });
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

/** One month for all claims of a test. */
let receivedAtMs: number;
beforeEach(() => {
  receivedAtMs = Date.now();
});

const newMark = (): string => randomBytes(16).toString('hex');
function claimOf(fields: Partial<EventClaim> = {}): EventClaim {
  return {
    org: 'org_a',
    eventId: newTimedId('evt_', 3, Date.now()),
    receivedAtMs,
    marks: [],
    windowMs: 3_600_000,
    messages: 1,
    monthlyMessages: null,
    ...fields,
  };
}
const outcomes = async (claims: EventClaim[]): Promise<string[]> =>
  (await Promise.all(claims.map((claim) => intake.claim(claim)))).map(({ outcome }) => outcome);

describe('a dedup key', () => {
  test('a dedup key is claimed by one event, and every other one learns which', async () => {
    const mark = newMark();
    const claims = Array.from({ length: 64 }, () => claimOf({ marks: [mark] }));
    const answers = await Promise.all(claims.map((claim) => intake.claim(claim)));
    const first = answers[0]?.outcome === 'store' ? answers[0].eventId : '';
    expect(claims.map(({ eventId }) => eventId)).toContain(first);
    for (const answer of answers) expect(answer).toEqual({ outcome: 'store', eventId: first, duplicateOf: null });
    await intake.settle(claimOf({ marks: [mark], eventId: first }), 'stored');
    expect(await intake.claim(claimOf({ marks: [mark] }))).toEqual({ outcome: 'duplicate', eventId: first });
  });

  test('a dedup key says nothing about another event or another organization', async () => {
    const claim = claimOf({ marks: [newMark()] });
    await intake.claim(claim);
    await intake.settle(claim, 'stored');
    for (const other of [claimOf({ marks: [newMark()] }), claimOf({ marks: claim.marks, org: 'org_b' })]) {
      expect(await intake.claim(other)).toEqual({ outcome: 'store', eventId: other.eventId, duplicateOf: null });
    }
  });

  test('a dedup key is over after its window, and still names the event from before', async () => {
    const first = claimOf({ marks: [newMark()], windowMs: 40 });
    await intake.claim(first);
    await intake.settle(first, 'stored');
    const answer = await eventually('the end of the window', 30_000, async () => {
      const answered = await intake.claim(claimOf({ marks: first.marks, windowMs: 40 }));
      return answered.outcome === 'store' ? answered : undefined;
    });
    expect(answer).toMatchObject({ outcome: 'store', duplicateOf: first.eventId });
    expect(answer.outcome === 'store' && answer.eventId).not.toBe(first.eventId);
  });

  test('a dedup key that was given back names the event to the next claim', async () => {
    const first = claimOf({ marks: [newMark()] });
    await intake.claim(first);
    await intake.settle(first, 'failed');
    expect(await intake.claim(claimOf({ marks: first.marks }))).toEqual({ outcome: 'store', eventId: first.eventId, duplicateOf: null });
  });

  test('a dedup key is forgotten with its whole hash, and hashes stay small', async () => {
    await inBatches(2000, () => intake.claim(claimOf({ marks: [newMark()] })));
    const hashes = await redis.client.keys('test:{intake:org_a}:m:*');
    expect(hashes.length).toBeLessThanOrEqual(512);
    for (const hash of hashes.slice(0, 20)) {
      const leftMs = await redis.client.pttl(hash);
      expect(leftMs).toBeGreaterThan(3_600_000 - 10_000);
      expect(leftMs).toBeLessThanOrEqual(3_600_000 + 21_600_000);
      expect(await redis.client.call('OBJECT', 'ENCODING', hash)).toBe('listpack');
    }
  });

  test('a dedup key goes with its organization', async () => {
    await intake.claim(claimOf({ marks: [newMark()], monthlyMessages: 10 }));
    await intake.claim(claimOf({ org: 'org_b', marks: [newMark()], monthlyMessages: 10 }));
    await new RedisMessagePurger({ redis: redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
    const left = await redis.client.keys('test:{intake:*');
    expect(left.filter((key) => key.includes('org_a'))).toEqual([]);
    expect(left.filter((key) => key.includes('org_b')).length).toBe(3);
  });
});

describe('two dedup keys of an event', () => {
  const stored = async (marks: string[]): Promise<EventClaim> => {
    const claim = claimOf({ marks });
    await intake.claim(claim);
    await intake.settle(claim, 'stored');
    return claim;
  };

  test('each make another event its duplicate, and what it has besides has no dedup key', async () => {
    const [id, content, otherId, otherContent] = [newMark(), newMark(), newMark(), newMark()];
    const { eventId } = await stored([id, content]);
    for (const marks of [[id], [content], [id, content], [otherId, content], [id, otherContent]])
      expect(await intake.claim(claimOf({ marks }))).toEqual({ outcome: 'duplicate', eventId });
    for (const marks of [[otherId], [otherContent]]) expect((await intake.claim(claimOf({ marks }))).outcome).toBe('store');
  });

  test('two dedup keys of an event that name different events make the one of the first dedup key', async () => {
    const [one, two] = [newMark(), newMark()];
    const { eventId } = await stored([one]);
    await stored([two]);
    expect(await intake.claim(claimOf({ marks: [one, two] }))).toEqual({ outcome: 'duplicate', eventId });
  });

  test('two dedup keys of an event are given back together, claimed again together, and count the messages once', async () => {
    const [id, content] = [newMark(), newMark()];
    const first = claimOf({ marks: [id, content], monthlyMessages: 1 });
    await intake.claim(first);
    await intake.settle(first, 'failed');
    await intake.settle(first, 'failed');
    const again = claimOf({ marks: [newMark(), content], monthlyMessages: 1 });
    expect(await intake.claim(again)).toEqual({ outcome: 'store', eventId: first.eventId, duplicateOf: null });
    await intake.settle({ ...again, eventId: first.eventId }, 'stored');
    expect(await intake.claim(claimOf({ marks: [id], monthlyMessages: 1 }))).toEqual({
      outcome: 'store',
      eventId: first.eventId,
      duplicateOf: null,
    });
    expect((await intake.claim(claimOf({ monthlyMessages: 1 }))).outcome).toBe('quotaExceeded');
  });

  test('two dedup keys of an event of which one is from before the window name the event from before', async () => {
    const content = newMark();
    const { eventId } = await stored([newMark(), content]);
    const answer = await eventually('the end of the window', 30_000, async () => {
      const answered = await intake.claim(claimOf({ marks: [newMark(), content], windowMs: 40 }));
      return answered.outcome === 'store' ? answered : undefined;
    });
    expect(answer).toMatchObject({ duplicateOf: eventId });
  });
});

describe('the messages of a month', () => {
  test('the messages of a month are counted exactly, in any order of claims', async () => {
    const answers = await outcomes(Array.from({ length: 64 }, () => claimOf({ monthlyMessages: 10 })));
    expect(answers.filter((outcome) => outcome === 'store').length).toBe(10);
    expect(answers.filter((outcome) => outcome === 'quotaExceeded').length).toBe(54);
  });

  test('the messages of a month are refused whole, and what is smaller still fits; nothing always does', async () => {
    const wanted = [8, 3, 2, 1, 0].map((messages) => claimOf({ messages, monthlyMessages: 10 }));
    const answers: string[] = [];
    for (const claim of wanted) answers.push((await intake.claim(claim)).outcome);
    expect(answers).toEqual(['store', 'quotaExceeded', 'store', 'quotaExceeded', 'store']);
  });

  test('restart in the next', async () => {
    const at = (text: string): EventClaim => claimOf({ monthlyMessages: 1, receivedAtMs: Date.parse(text) });
    expect((await intake.claim(at('2026-11-30T23:59:59.999Z'))).outcome).toBe('store');
    expect((await intake.claim(at('2026-11-01T00:00:00Z'))).outcome).toBe('quotaExceeded');
    expect((await intake.claim(at('2026-12-01T00:00:00Z'))).outcome).toBe('store');
  });

  test('the messages of a month count once when a call is sent again, and are given back once', async () => {
    const claim = claimOf({ messages: 6, monthlyMessages: 10 });
    expect(await outcomes([claim, claim])).toEqual(['store', 'store']);
    await intake.settle(claim, 'failed');
    await intake.settle(claim, 'failed');
    expect((await intake.claim(claimOf({ messages: 10, monthlyMessages: 10 }))).outcome).toBe('store');
    expect((await intake.claim(claimOf({ messages: 1, monthlyMessages: 10 }))).outcome).toBe('quotaExceeded');
  });

  test('the messages of a month say how many are left, and to whom whose messages are counted already all of them', async () => {
    const of = (fields: Partial<EventClaim> = {}) => ({ ...claimOf(fields), mark: fields.marks?.[0] ?? null, monthlyMessages: 10 });
    const left = async (claim = of()): Promise<number> => (await intake.remainder(claim)).messages;
    expect(await left()).toBe(10);
    const claim = of({ marks: [newMark()], messages: 6 });
    await intake.claim(claim);
    const other = of({ marks: [newMark()] });
    expect([await left(), await left(other), await left(claim)]).toEqual([4, 4, 10]);
    expect(await left(of({ receivedAtMs: receivedAtMs + 40 * 86_400_000 }))).toBe(10);
    await intake.claim(of({ messages: 4 }));
    expect(await left()).toBe(0);
    await intake.settle(claim, 'failed');
    expect(await left(claim)).toBe(6);
  });

  test('the messages of a month of a refused event leave no dedup key', async () => {
    const claim = claimOf({ marks: [newMark()], messages: 11, monthlyMessages: 10 });
    expect((await intake.claim(claim)).outcome).toBe('quotaExceeded');
    expect(await redis.client.keys('*')).toEqual([]);
  });

  test('the messages of a month of an event that was given back count again when another process stores it', async () => {
    const first = claimOf({ marks: [newMark()], messages: 6, monthlyMessages: 10 });
    await intake.claim(first);
    await intake.settle(first, 'failed');
    const second = claimOf({ marks: first.marks, messages: 6, monthlyMessages: 10 });
    expect(await intake.claim(second)).toMatchObject({ outcome: 'store', eventId: first.eventId });
    await intake.settle({ ...second, eventId: first.eventId }, 'stored');
    expect((await intake.claim(claimOf({ messages: 5, monthlyMessages: 10 }))).outcome).toBe('quotaExceeded');
    expect((await intake.claim(claimOf({ messages: 4, monthlyMessages: 10 }))).outcome).toBe('store');
  });

  test.each([
    ['without a mark', null],
    ['with a mark', newMark()],
  ])('the messages of a month of an event %s that is stored although the answer was lost are not given back', async (_, mark) => {
    const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
    const claim = claimOf({ marks: mark === null ? [] : [mark], messages: 6, monthlyMessages: 10 });
    await intake.claim(claim);
    await acceptor.accept(newEvent({ id: claim.eventId }));
    await intake.settle(claim, 'failed');
    expect((await intake.claim(claimOf({ messages: 5, monthlyMessages: 10 }))).outcome).toBe('quotaExceeded');
    expect((await intake.claim(claimOf({ messages: 4, monthlyMessages: 10 }))).outcome).toBe('store');
    if (mark !== null) expect(await intake.claim(claimOf({ marks: [mark] }))).toEqual({ outcome: 'duplicate', eventId: claim.eventId });
  });

  test('the messages of a month of an event that turned out to be stored after all are not given back', async () => {
    const first = claimOf({ marks: [newMark()], messages: 6, monthlyMessages: 10 });
    await intake.claim(first);
    await intake.claim(claimOf({ marks: first.marks, messages: 6, monthlyMessages: 10 }));
    await intake.settle(first, 'stored');
    await intake.settle(first, 'failed');
    expect((await intake.claim(claimOf({ messages: 5, monthlyMessages: 10 }))).outcome).toBe('quotaExceeded');
    expect((await intake.claim(claimOf({ marks: first.marks }))).outcome).toBe('duplicate');
  });
});

test('repeated events are counted by source, in the shard of the first one', async () => {
  const statistics = new RedisStatisticsReader({ redis: redis.client, prefix, clock: systemClock, shards: () => 4 });
  const ids = [0, 3].map((shard) => newTimedId('evt_', shard, Date.now()));
  for (const id of ids) await intake.countDuplicate('org_a', 'src_a', id);
  await intake.countDuplicate('org_a', 'src_b', ids[0] ?? '');
  const { duplicates } = await statistics.ofOrganization('org_a', '1h');
  expect(duplicates).toEqual(
    new Map([
      ['src_a', 2],
      ['src_b', 1],
    ]),
  );
});
