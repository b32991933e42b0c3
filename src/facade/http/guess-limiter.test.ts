import { beforeEach, expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { type ErrorCode, isPosthornError, PosthornError } from '../../core/errors.ts';
import { GuessLimiter } from './guess-limiter.ts';

let clock: FakeClock;
let limiter: GuessLimiter;
/** Credentials that were really checked. */
let checked: string[];
const right = new Set<string>();

beforeEach(() => {
  clock = new FakeClock();
  limiter = new GuessLimiter({ clock, maxPerMinute: 60 });
  checked = [];
  right.clear();
});

type Way = 'checkAfter' | 'checkBefore';

async function outcome(
  address: string,
  credential: string,
  { failure = 'UNAUTHORIZED', way = 'checkBefore' }: { failure?: ErrorCode; way?: Way } = {},
): Promise<'accepted' | ErrorCode> {
  const verify = async (): Promise<'accepted'> => {
    checked.push(credential);
    await Promise.resolve();
    if (right.has(credential)) return 'accepted';
    throw new PosthornError(failure, 'no');
  };
  try {
    return await (way === 'checkAfter' ? limiter.checkAfter(address, verify) : limiter.checkBefore(address, credential, verify));
  } catch (error) {
    if (isPosthornError(error)) return error.code;
    throw error;
  }
}

async function guess(address: string, count: number, how?: { failure?: ErrorCode; way?: Way }): Promise<Record<string, number>> {
  const outcomes = await Promise.all(Array.from({ length: count }, (_, i) => outcome(address, `guess-${i}`, how)));
  return Object.fromEntries([...new Set(outcomes)].map((each) => [each, outcomes.filter((other) => other === each).length]));
}

test('a credential whose check is dear is refused unchecked when the client has no token, however many it sends at once', async () => {
  expect(await guess('192.0.2.1', 500)).toEqual({ UNAUTHORIZED: 60, RATE_LIMITED: 440 });
  expect(checked).toHaveLength(60);
  await clock.advance(10_000);
  expect(await guess('192.0.2.1', 500)).toEqual({ UNAUTHORIZED: 10, RATE_LIMITED: 490 });
  await clock.advance(3_600_000);
  expect(await guess('192.0.2.1', 500)).toEqual({ UNAUTHORIZED: 60, RATE_LIMITED: 440 });
});

test('a credential whose check is cheap is checked when the client has no token, and must wait after a wrong one', async () => {
  expect(await guess('192.0.2.1', 500, { way: 'checkAfter' })).toEqual({ UNAUTHORIZED: 60, RATE_LIMITED: 440 });
  expect(checked).toHaveLength(500);
  await clock.advance(10_000);
  expect(await guess('192.0.2.1', 500, { way: 'checkAfter' })).toEqual({ UNAUTHORIZED: 10, RATE_LIMITED: 490 });
});

test('a right credential whose check is cheap passes beside a guesser of the same address, also when it is new', async () => {
  right.add('new');
  await guess('192.0.2.1', 500, { way: 'checkAfter' });
  expect(await outcome('192.0.2.1', 'new', { way: 'checkAfter' })).toBe('accepted');
});

test('one wrong credential that is sent again and again counts each time', async () => {
  const outcomes = await Promise.all(Array.from({ length: 200 }, () => outcome('192.0.2.1', 'the same')));
  expect(outcomes.filter((each) => each === 'UNAUTHORIZED')).toHaveLength(60);
});

test('a sender that is held up gets the time of the next check', async () => {
  await guess('192.0.2.1', 60);
  const refused = limiter.checkBefore('192.0.2.1', 'another', async () => 'accepted');
  await expect(refused).rejects.toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 1 });
  await clock.advance(1000);
  expect(await outcome('192.0.2.1', 'another')).toBe('UNAUTHORIZED');
});

test.each([
  ['another IPv4 address', '192.0.2.1', '192.0.2.2', true],
  ['another /64 of IPv6', '2001:db8:0:1::1', '2001:db8:0:2::1', true],
  ['another address of a /64', '2001:db8:0:1::1', '2001:db8:0:1:ffff::1', false],
  ['an IPv4 address in IPv6 notation', '192.0.2.1', '::ffff:192.0.2.1', false],
])('%s has tokens of its own, or not', async (_, one, other, hasOwn) => {
  await guess(one, 60);
  expect(await outcome(other, 'guess')).toBe(hasOwn ? 'UNAUTHORIZED' : 'RATE_LIMITED');
});

test('a right credential takes no token, and many requests with one that is not known yet are not held up', async () => {
  right.add('right');
  const outcomes = await Promise.all(Array.from({ length: 500 }, () => outcome('192.0.2.1', 'right')));
  expect(outcomes.filter((each) => each === 'accepted')).toHaveLength(500);
  expect(await guess('192.0.2.1', 100)).toEqual({ UNAUTHORIZED: 60, RATE_LIMITED: 40 });
});

test('a credential whose check is dear passes beside a guesser of the same address if it was accepted before, and is held up if not', async () => {
  right.add('known').add('new');
  expect(await outcome('198.51.100.1', 'known')).toBe('accepted');
  await guess('192.0.2.1', 60);
  expect([await outcome('192.0.2.1', 'known'), await outcome('192.0.2.1', 'new')]).toEqual(['accepted', 'RATE_LIMITED']);
});

test('a credential that is no longer accepted counts like any other', async () => {
  right.add('deleted');
  await outcome('192.0.2.1', 'deleted');
  right.clear();
  const outcomes = [];
  for (let i = 0; i < 100; i++) outcomes.push(await outcome('192.0.2.1', 'deleted'));
  expect(outcomes.filter((each) => each === 'UNAUTHORIZED')).toHaveLength(60);
});

test.each<Way>(['checkAfter', 'checkBefore'])('what could not be checked, or lacks a right, is no guess (%s)', async (way) => {
  expect(await guess('192.0.2.1', 60, { way, failure: 'UNAVAILABLE' })).toEqual({ UNAVAILABLE: 60 });
  expect(await guess('192.0.2.1', 60, { way, failure: 'RESOURCE_NOT_FOUND' })).toEqual({ RESOURCE_NOT_FOUND: 60 });
  expect(await guess('192.0.2.1', 60, { way })).toEqual({ UNAUTHORIZED: 60 });
});
