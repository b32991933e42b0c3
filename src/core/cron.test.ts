import { describe, expect, test } from '@jest/globals';
import { parseCronExpression } from './cron-expression.ts';
import { nextCronSlot } from './cron-slots.ts';
import { isTimeZone } from './time-zone.ts';

/** Days of January 2027 up to the 15th. */
function days(expression: string): number[] {
  const found: number[] = [];
  const fields = parseCronExpression(expression);
  for (let ms = Date.UTC(2027, 0, 1) - 1; ; found.push(new Date(ms).getUTCDate())) {
    ms = nextCronSlot(fields, 'UTC', ms);
    if (ms >= Date.UTC(2027, 0, 16)) return found;
  }
}

describe('an expression', () => {
  test.each([
    ['* * * * *'],
    ['*/1 */23 */31 */12 */6'],
    ['0-59 0-23 1-31 1-12 0-6'],
    ['1,2,3-5,59 0,05 1,31 1,12 0,6'],
    ['0  0   1 1 0'],
    ['0 0 30 2 1'],
    ['1,1,0-5,3-9 2,2 1-3,2 5,5 1,0-2'],
  ])('"%s" is taken', (text) => {
    expect(nextCronSlot(parseCronExpression(text), 'UTC', Date.UTC(2027, 0, 1))).toBeGreaterThan(Date.UTC(2027, 0, 1));
  });

  test.each([
    ['', '5 fields'],
    ['* * * *', '5 fields'],
    ['* * * * * *', '5 fields'],
    [' * * * * *', '5 fields'],
    ['@daily', '5 fields'],
    ['@every 5 minutes 1 2', 'minute'],
    ['H H * * *', 'minute'],
    ['0 H(0-7) * * *', 'hour'],
    ['0 0 ? * *', 'day of month'],
    ['*\t* * * *', '5 fields'],
    ['60 * * * *', 'minute: must be from 0 to 59'],
    ['-1 * * * *', 'minute'],
    ['*/0 * * * *', 'minute: a step'],
    ['*/60 * * * *', 'minute: a step'],
    ['1-10/2 * * * *', 'minute'],
    ['5/15 * * * *', 'minute'],
    ['1, * * * *', 'minute'],
    ['*,1 * * * *', 'minute'],
    ['*/5,1 * * * *', 'minute'],
    ['1.5 * * * *', 'minute'],
    ['? * * * *', 'minute'],
    ['* 24 * * *', 'hour'],
    ['* 9-5 * * *', 'hour: the range 9-5 ends before it begins'],
    ['* 1-2-3 * * *', 'hour'],
    ['* * 0 * *', 'day of month'],
    ['* * 32 * *', 'day of month'],
    ['* * L * *', 'day of month'],
    ['* * 15W * *', 'day of month'],
    ['* * 30 2 *', 'day of month: no month of "2" has a day of "30"'],
    ['* * 31 2,4,6,9,11 *', 'day of month'],
    ['* * * 0 *', 'month'],
    ['* * * 13 *', 'month'],
    ['* * * JAN *', 'month'],
    ['* * * * 7', 'day of week'],
    ['* * * * MON', 'day of week'],
    ['* * * * 1#2', 'day of week'],
    ['* * * * 5L', 'day of week'],
    ['* * * * L', 'day of week'],
    ['* * 0 30 2 *', '5 fields'],
    ['0 0 31 2 *', 'day of month: no month of "2" has a day of "31"'],
    [`${'0,'.repeat(124)}0 * * * *`, '5 fields'],
  ])('"%s" is refused, naming %s', (text, complaint) => {
    expect(() => parseCronExpression(text)).toThrow(complaint);
  });

  test('an expression of the 29th of February waits for it, over a century without', () => {
    const leap = parseCronExpression('0 0 29 2 *');
    expect(nextCronSlot(leap, 'UTC', Date.UTC(2096, 5, 1))).toBe(Date.UTC(2104, 1, 29));
    expect(nextCronSlot(parseCronExpression('0 0 29 2 *'), 'UTC', Date.UTC(2027, 0, 1))).toBe(Date.UTC(2028, 1, 29));
  });

  test('an expression with day of month and day of week unites them, and needs both where one is a star', () => {
    expect(days('0 0 13 * 1')).toEqual([4, 11, 13]);
    expect(days('0 0 * * 1')).toEqual([4, 11]);
    expect(days('0 0 13 * *')).toEqual([13]);
    // Only a star alone is one.
    expect(days('0 0 */10 * 1')).toEqual([1, 4, 11]);
  });
});

test.each([
  ['UTC', true],
  ['Europe/Berlin', true],
  ['America/Argentina/Buenos_Aires', true],
  ['Etc/GMT+5', true],
  ['+02:00', false],
  ['Mars/Olympus', false],
  ['', false],
  ['Europe/', false],
  ['Europe/Berlin ', false],
])('"%s" is a time zone: %s', (name, expected) => {
  expect(isTimeZone(name)).toBe(expected);
});

test('a process remembers only so many spellings of the names of time zones, the least recently used ones last', () => {
  const spellings = Array.from({ length: 2000 }, (_, i) =>
    [...'america/new_york'].map((letter, at) => (((i >> at) & 1) === 1 ? letter.toUpperCase() : letter)).join(''),
  );
  const made: unknown[] = [];
  const { DateTimeFormat } = Intl;
  Intl.DateTimeFormat = new Proxy(DateTimeFormat, {
    construct: (target, [locale, options]) => {
      made.push(options.timeZone);
      return new target(locale, options);
    },
  });
  try {
    expect(spellings.every(isTimeZone)).toBe(true);
    made.length = 0;
    const [first = ''] = spellings;
    expect([...spellings.slice(-100), first].every(isTimeZone)).toBe(true);
    expect(made).toEqual([first]);
  } finally {
    Intl.DateTimeFormat = DateTimeFormat;
  }
});
