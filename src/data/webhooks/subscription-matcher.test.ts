import { expect, test } from '@jest/globals';
import { LoopTurns } from '../../core/loop-turns.ts';
import { type EventMatcher, type SubscriptionCriteria, SubscriptionMatcher } from './subscription-matcher.ts';

const keys = Array.from({ length: 20 }, (_, i) => `key${i}`);
const long = 'a'.repeat(250);
const labels = Object.fromEntries(keys.map((key) => [key, `${long}none`]));
const event = { type: 'order.paid', data: {}, labels, metadata: {} };
/** As many as a subscription may have. */
const values = Array.from({ length: 100 }, (_, i) => `${long}${1000 + i}`);
const costly: SubscriptionCriteria = {
  filterExpression: null,
  labelFilters: Object.fromEntries(keys.map((key) => [key, values])),
  labelFilterMode: 'any',
};

const list = (length: number): number[] => Array.from({ length }, () => 1);
const newEventMatcher = (): EventMatcher => new SubscriptionMatcher().of(event, new LoopTurns().of('org_a'));

test('Others have their turn between the label filters of many subscriptions.', async () => {
  const { before, match } = newEventMatcher();
  let waits = 0;
  for (let i = 0; i < 3000; i++) {
    const waiting = before(costly);
    if (waiting !== null) waits++;
    await waiting;
    expect(match(costly).isMatch).toBe(false);
  }
  expect(waits).toBeGreaterThan(0);
});

test('Subscriptions with labels alone match however long the expressions of others take.', () => {
  const { match } = new SubscriptionMatcher().of({ ...event, data: { a: list(1000), b: 'x'.repeat(13_900) } }, new LoopTurns().of('org_a'));
  const byLabels: SubscriptionCriteria = { filterExpression: null, labelFilters: { key0: `${long}none` }, labelFilterMode: 'all' };
  const error = 'the filters of the event take too long together';
  let last: string | null = null;
  for (let i = 0; i < 5000 && last !== error; i++) {
    const filterExpression = `event.data.a.exists(x, event.data.b.contains("y${i}"))`;
    last = match({ ...byLabels, filterExpression }).error;
  }
  expect(last).toBe(error);
  expect(match(byLabels)).toEqual({ isMatch: true, wasEvaluated: false, error: null });
});
