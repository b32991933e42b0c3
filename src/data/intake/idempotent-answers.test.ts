import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { type IdempotencyClaim, IdempotentAnswers, type IdempotentAnswersOptions, idempotencyKeys } from './idempotent-answers.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const prefix = 'test:';
let organizations = 0;
const organization = (): string => `org_${++organizations}`;
const answersWith = (options: Partial<IdempotentAnswersOptions> = {}) => new IdempotentAnswers({ redis: redis.client, prefix, ...options });

async function claimed(
  answers: IdempotentAnswers,
  org: string,
  key: string,
  request = 'r',
  credential = 'key_a',
): Promise<IdempotencyClaim> {
  const outcome = await answers.claim(org, key, request, credential);
  if (outcome.state !== 'claimed') throw new Error(`the key is ${outcome.state}`);
  return outcome.claim;
}

test('one of many claims at once is granted', async () => {
  const org = organization();
  const outcomes = await Promise.all(Array.from({ length: 64 }, () => answersWith().claim(org, 'k', 'r', 'key_a')));
  expect(outcomes.filter(({ state }) => state === 'claimed')).toHaveLength(1);
  expect(outcomes.filter(({ state }) => state === 'underWay')).toHaveLength(63);
});

test('an answer is given to equal requests of its organization and to no others', async () => {
  const org = organization();
  const answers = answersWith();
  await (await claimed(answers, org, 'k')).keep('done|1');
  expect(await answers.claim(org, 'k', 'r', 'key_a')).toEqual({ state: 'answered', answer: 'done|1' });
  expect(await answers.claim(org, 'k', 'another', 'key_a')).toEqual({ state: 'other' });
  expect((await answers.claim(organization(), 'k', 'r', 'key_a')).state).toBe('claimed');
});

test('a released key is free again', async () => {
  const org = organization();
  expect(await (await claimed(answersWith(), org, 'k')).release()).toBe(true);
  await claimed(answersWith(), org, 'k', 'another');
});

test('a claim that its holder left half can be taken over once it has run out, and the late holder keeps nothing', async () => {
  const org = organization();
  await claimed(answersWith({ claimMs: 60_000 }), org, 'held');
  const outcome = await answersWith().claim(org, 'held', 'r', 'key_a');
  expect(outcome).toEqual({ state: 'underWay', endsInMs: expect.any(Number) });
  const answers = answersWith();
  const late = await claimed(answersWith({ claimMs: 200 }), org, 'k');
  let next: IdempotencyClaim | undefined;
  await eventually(async () => {
    const taken = await answers.claim(org, 'k', 'r', 'key_a');
    expect(taken).toMatchObject({ state: 'claimed', isTakenOver: true });
    if (taken.state === 'claimed') next = taken.claim;
  });
  expect(await late.keep('late')).toBe(false);
  expect(await late.renew(1000)).toBe(false);
  expect(await next?.keep('second')).toBe(true);
  expect(await answers.claim(org, 'k', 'r', 'key_a')).toEqual({ state: 'answered', answer: 'second' });
});

test('an abandoned key is taken over at once', async () => {
  const org = organization();
  expect(await (await claimed(answersWith(), org, 'k')).abandon()).toBe(true);
  expect(await answersWith().claim(org, 'k', 'r', 'key_a')).toMatchObject({ state: 'claimed', isTakenOver: true });
});

test('a renewed claim holds for longer', async () => {
  const org = organization();
  const answers = answersWith({ claimMs: 20_000 });
  const claim = await claimed(answers, org, 'k');
  expect(await claim.renew(60_000)).toBe(true);
  const outcome = await answers.claim(org, 'k', 'r', 'key_a');
  expect(outcome.state === 'underWay' && outcome.endsInMs > 30_000).toBe(true);
});

const dayMs = 86_400_000;
/** Bytes of a key whose answer has 100 bytes. */
const bytesOfKey = 576;

/** What is kept, and that its bytes are counted. */
async function keptKeys(org: string): Promise<number> {
  const { answers, order } = idempotencyKeys(prefix, org);
  const { '#bytes': bytes = '0', ...values } = await redis.client.hgetall(answers);
  const answered = Object.values(values).filter((value) => value.startsWith('a|'));
  expect(Number(bytes)).toBe(answered.reduce((sum, value) => sum + value.length, 0));
  expect(await redis.client.zcard(order)).toBe(Object.keys(values).length);
  return Object.keys(values).length;
}

/** As if a day had passed since the oldest so many were kept. */
async function age(org: string, count: number): Promise<void> {
  const { order, spare } = idempotencyKeys(prefix, org);
  for (const member of await redis.client.zrange(order, '0', String(count - 1)))
    for (const key of [order, spare]) await redis.client.zadd(key, 'XX', 'INCR', -dayMs, member);
}

test('beyond the bound no new key is taken, and none goes before its time', async () => {
  const org = organization();
  // A credential that is alone gets nothing of the last quarter.
  const answers = answersWith({ maxBytes: 13 * bytesOfKey });
  for (let i = 0; i < 10; i++) await (await claimed(answers, org, `k${i}`)).keep('x'.repeat(100));
  expect(await keptKeys(org)).toBe(10);
  const refused = await answers.claim(org, 'new', 'r', 'key_a');
  if (refused.state !== 'full') throw new Error(`the key is ${refused.state}`);
  expect(refused.endsInMs).toBeGreaterThan(dayMs / 2);
  expect(refused.endsInMs).toBeLessThanOrEqual(dayMs);
  for (let i = 0; i < 10; i++) expect((await answers.claim(org, `k${i}`, 'r', 'key_a')).state).toBe('answered');
  await age(org, 10);
  expect((await answers.claim(org, 'new', 'r', 'key_a')).state).toBe('claimed');
  expect((await answers.claim(org, 'k0', 'another', 'key_a')).state).toBe('claimed');
  expect(await keptKeys(org)).toBeLessThan(10);
});

test('a credential that fills what its organization may have leaves some to others', async () => {
  const org = organization();
  const answers = answersWith({ maxBytes: 16 * bytesOfKey });
  let keys = 0;
  const fill = async (credential: string): Promise<number> => {
    for (let i = 0; ; i++) {
      const outcome = await answers.claim(org, `k${++keys}`, 'r', credential);
      if (outcome.state !== 'claimed') return i;
      await outcome.claim.keep('x'.repeat(100));
    }
  };
  expect([await fill('key_a'), await fill('key_b'), await fill('key_c'), await fill('key_d')]).toEqual([12, 2, 1, 1]);
  expect(await answers.claim(org, 'another', 'r', 'key_e')).toMatchObject({ state: 'full' });
  await age(org, 12);
  for (let i = 0; i < 2; i++) await (await claimed(answers, org, `later ${i}`, 'r', 'key_b')).release();
  // It has the two keys from before.
  expect(await fill('key_b')).toBe(8);
});

test('answers that are spare go early, the oldest first, and no others', async () => {
  const org = organization();
  const answers = answersWith({ spareBytes: 10 * bytesOfKey });
  await (await claimed(answers, org, 'first')).keep('x'.repeat(100));
  for (let i = 0; i < 30; i++) await (await claimed(answers, org, `k${i}`)).keep('x'.repeat(100), { isSpare: true });
  expect(await keptKeys(org)).toBeLessThanOrEqual(11);
  expect((await answers.claim(org, 'first', 'r', 'key_a')).state).toBe('answered');
  expect((await answers.claim(org, 'k29', 'r', 'key_a')).state).toBe('answered');
  expect((await answers.claim(org, 'k0', 'r', 'key_a')).state).toBe('claimed');
});

test('an answer is kept for a day, and everything ends with the last one', async () => {
  const org = organization();
  const answers = answersWith();
  await (await claimed(answers, org, 'k')).keep('x', { isSpare: true });
  const [seconds] = await redis.client.time();
  const keys = idempotencyKeys(prefix, org);
  for (const key of [keys.order, keys.spare]) {
    const [, end] = await redis.client.zrange(key, '0', '0', 'WITHSCORES');
    expect(Math.abs(Number(end) - Number(seconds) * 1000 - dayMs)).toBeLessThan(60_000);
  }
  for (const key of Object.values(keys)) expect(Math.abs((await redis.client.pttl(key)) - dayMs)).toBeLessThan(60_000);
  await age(org, 1);
  expect((await answers.claim(org, 'k', 'another', 'key_a')).state).toBe('claimed');
});

test('a claim is UNAVAILABLE without Redis', async () => {
  const lost = await startRedis();
  await lost.stop();
  await expect(new IdempotentAnswers({ redis: lost.client, prefix }).claim('org_x', 'k', 'r', 'key_a')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
  });
});
