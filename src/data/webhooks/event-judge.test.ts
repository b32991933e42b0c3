import { expect, test } from '@jest/globals';
import { LoopTurns } from '../../core/loop-turns.ts';
import { EventJudge, type JudgeOfEvent, type SubscriptionWishes } from './event-judge.ts';

const keys = Array.from({ length: 20 }, (_, i) => `key${i}`);
const long = 'a'.repeat(250);
const labels = Object.fromEntries(keys.map((key) => [key, `${long}none`]));
const event = { type: 'order.paid', data: {}, labels, metadata: {} };
/** As many as a subscription may have. */
const values = Array.from({ length: 100 }, (_, i) => `${long}${1000 + i}`);
const costly: SubscriptionWishes = {
  filterExpression: null,
  labelFilters: Object.fromEntries(keys.map((key) => [key, values])),
  labelFilterMode: 'any',
};

const newJudge = (): JudgeOfEvent => new EventJudge().of(event, new LoopTurns().of('org_a'));

test('Others have their turn between the label filters of many subscriptions.', async () => {
  const { before, judge } = newJudge();
  let waits = 0;
  for (let i = 0; i < 3000; i++) {
    const waiting = before(costly);
    if (waiting !== null) waits++;
    await waiting;
    expect(judge(costly).isMatch).toBe(false);
  }
  expect(waits).toBeGreaterThan(0);
});

test('Label filters and expressions of one event share what they may take, and what is asked after that fails.', () => {
  const { judge } = newJudge();
  const error = 'the filters of the event take too long together';
  let asked = 0;
  while (judge(costly).error === null && asked < 1_000_000) asked++;
  expect(asked).toBeGreaterThan(0);
  expect(judge(costly)).toEqual({ isMatch: false, wasAsked: true, error });
  expect(judge({ ...costly, labelFilters: {}, filterExpression: 'true' })).toEqual({ isMatch: false, wasAsked: true, error });
  expect(judge({ ...costly, labelFilters: {} })).toEqual({ isMatch: true, wasAsked: false, error: null });
});
