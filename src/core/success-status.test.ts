import { expect, test } from '@jest/globals';
import { statusesOf } from './success-status.ts';

test('the statuses of a list are those that it names and all of its classes, in any case', () => {
  expect(statusesOf([])).toEqual([]);
  expect(statusesOf([204, 404])).toEqual([204, 404]);
  const [first, ...others] = statusesOf(['2xx', '4XX', 302]);
  expect([first, others.length, others[98], others[99], others[198], others[199]]).toEqual([200, 200, 299, 400, 499, 302]);
});
