import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { passes } from '../../test/support/passes.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { type IdempotencyClaim, IdempotentAnswers, idempotencyKeys } from './idempotent-answers.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const prefix = 'test:';
let organizations = 0;
const organization = (): string => `org_${++organizations}`;
const answersWith = (options: { claimMs?: number; mostKeys?: number } = {}) =>
  new IdempotentAnswers({ redis: redis.client, prefix, ...options });

async function claimed(answers: IdempotentAnswers, org: string, key: string, request = 'r'): Promise<IdempotencyClaim> {
  const outcome = await answers.claim(org, key, request);
  if (outcome.state !== 'claimed') throw new Error(`the key is ${outcome.state}`);
  return outcome.claim;
}

test('of many claims at once one is granted', async () => {
  const org = organization();
  const outcomes = await Promise.all(Array.from({ length: 64 }, () => answersWith().claim(org, 'k', 'r')));
  expect(outcomes.filter(({ state }) => state === 'claimed')).toHaveLength(1);
  expect(outcomes.filter(({ state }) => state === 'underWay')).toHaveLength(63);
});

test('an answer is given to equal requests of its organization and to no others', async () => {
  const org = organization();
  const answers = answersWith();
  await (await claimed(answers, org, 'k')).keep('done|1');
  expect(await answers.claim(org, 'k', 'r')).toEqual({ state: 'answered', answer: 'done|1' });
  expect(await answers.claim(org, 'k', 'another')).toEqual({ state: 'other' });
  expect((await answers.claim(organization(), 'k', 'r')).state).toBe('claimed');
});

test('a released key is free again', async () => {
  const org = organization();
  expect(await (await claimed(answersWith(), org, 'k')).release()).toBe(true);
  await claimed(answersWith(), org, 'k', 'another');
});

test('a claim that its holder left half can be taken over once it has run out, and the late holder keeps nothing', async () => {
  const org = organization();
  await claimed(answersWith({ claimMs: 60_000 }), org, 'held');
  const outcome = await answersWith().claim(org, 'held', 'r');
  expect(outcome).toEqual({ state: 'underWay', endsInMs: expect.any(Number) });
  const answers = answersWith({ claimMs: 200 });
  const late = await claimed(answers, org, 'k');
  let next: IdempotencyClaim | undefined;
  await passes(async () => {
    const taken = await answers.claim(org, 'k', 'r');
    expect(taken).toMatchObject({ state: 'claimed', isTakenOver: true });
    if (taken.state === 'claimed') next = taken.claim;
  });
  expect(await late.keep('late')).toBe(false);
  expect(await late.renew(1000)).toBe(false);
  expect(await next?.keep('second')).toBe(true);
  expect(await answers.claim(org, 'k', 'r')).toEqual({ state: 'answered', answer: 'second' });
});

test('an abandoned key is taken over at once', async () => {
  const org = organization();
  expect(await (await claimed(answersWith(), org, 'k')).abandon()).toBe(true);
  expect(await answersWith().claim(org, 'k', 'r')).toMatchObject({ state: 'claimed', isTakenOver: true });
});

test('a renewed claim holds for longer', async () => {
  const org = organization();
  const answers = answersWith({ claimMs: 20_000 });
  const claim = await claimed(answers, org, 'k');
  expect(await claim.renew(60_000)).toBe(true);
  const outcome = await answers.claim(org, 'k', 'r');
  expect(outcome.state === 'underWay' && outcome.endsInMs > 30_000).toBe(true);
});

test('beyond the bound the oldest keys are forgotten, and their bytes are not counted any more', async () => {
  const org = organization();
  const answers = answersWith({ mostKeys: 10 });
  for (let i = 0; i < 30; i++) await (await claimed(answers, org, `k${i}`)).keep('x'.repeat(100));
  const keys = idempotencyKeys(prefix, org);
  expect(await redis.client.zcard(keys.order)).toBe(10);
  expect(await redis.client.hlen(keys.answers)).toBe(11);
  const values = await redis.client.hgetall(keys.answers);
  const bytes = Object.entries(values).reduce((sum, [field, value]) => (field === '#bytes' ? sum : sum + value.length), 0);
  expect(Number(values['#bytes'])).toBe(bytes);
  expect((await answers.claim(org, 'k29', 'r')).state).toBe('answered');
  expect((await answers.claim(org, 'k0', 'r')).state).toBe('claimed');
});

test('everything ends after a day', async () => {
  const org = organization();
  await claimed(answersWith(), org, 'k');
  const { answers, order } = idempotencyKeys(prefix, org);
  for (const key of [answers, order]) expect(await redis.client.pttl(key)).toBeLessThanOrEqual(86_400_000);
});

test('without Redis a claim is UNAVAILABLE', async () => {
  const lost = await startRedis();
  await lost.stop();
  await expect(new IdempotentAnswers({ redis: lost.client, prefix }).claim('org_x', 'k', 'r')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
  });
});
