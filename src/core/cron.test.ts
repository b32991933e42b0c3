import { describe, expect, test } from '@jest/globals';
import { Cron } from 'croner';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { clockChanges, vixieMinutes } from '../../test/support/vixie-cron.ts';
import { parseCronExpression } from './cron-expression.ts';
import { lastCronSlot, nextCronSlot } from './cron-slots.ts';
import { isTimeZone } from './time-zone.ts';

const ten = [
  'UTC',
  'America/New_York',
  'America/Sao_Paulo',
  'America/St_Johns',
  'Europe/Berlin',
  'Africa/Cairo',
  'Asia/Kolkata',
  'Asia/Tokyo',
  'Australia/Lord_Howe',
  'Pacific/Auckland',
];
const expressions = [
  '5 * * * *',
  '0 */6 * * *',
  '*/20 2 * * *',
  '30 2 * * *',
  '0 0 * * *',
  '15 1,3 * * *',
  '59 23 28-31 * *',
  '0 9 1,15 * 1-5',
  '0 12 * 2-4 0',
  '45 13 29 2 *',
  '10 0-3 */10 1,3,10 *',
];

/** The slots from `fromMs` on, before `toMs`. */
function slots(expression: string, zone: string, fromMs: number, toMs: number): number[] {
  const parsed = parseCronExpression(expression);
  const found: number[] = [];
  for (let slot = nextCronSlot(parsed, zone, fromMs - 1); slot !== null && slot < toMs; slot = nextCronSlot(parsed, zone, slot))
    found.push(slot);
  return found;
}
const shown = (all: readonly number[]) => all.map((ms) => new Date(ms).toISOString().slice(0, 16));

describe('a year of slots', () => {
  test.each(ten)(
    'in %s is that of an independent implementation, but for the hours in which the clocks change, where it has another rule',
    (zone) => {
      const [fromMs, toMs] = [Date.UTC(2027, 10, 1), Date.UTC(2028, 10, 1)];
      const changed = clockChanges(zone, fromMs, toMs);
      const isPlain = (ms: number): boolean => changed.every((change) => Math.abs(ms - change) > 4 * 3_600_000);
      let compared = 0;
      for (const expression of expressions) {
        const other = new Cron(expression, { timezone: zone, paused: true, legacyMode: true });
        const theirs: number[] = [];
        for (let at = other.nextRun(new Date(fromMs - 1000)); at !== null && at.getTime() < toMs; at = other.nextRun(at))
          theirs.push(at.getTime());
        const ours = slots(expression, zone, fromMs, toMs);
        expect(shown(ours.filter(isPlain))).toEqual(shown(theirs.filter(isPlain)));
        compared += ours.filter(isPlain).length;
      }
      expect(compared).toBeGreaterThan(10_000);
    },
    120_000,
  );
});

describe('where the clocks change, as in Vixie cron', () => {
  // Half an hour in Lord Howe, two hours in Troll, at midnight in Cairo.
  const zones = [...ten, 'Europe/London', 'America/Santiago', 'Antarctica/Troll', 'Asia/Beirut', 'Pacific/Chatham'];
  const jobs = [
    ...expressions,
    '30 * * * *',
    '*/30 2 * * *',
    '0,30 2 * * *',
    '0 2,3 * * *',
    '30 1 * * *',
    '15 0,23 * * *',
    '0 3 * * *',
    '45 1,2 * * 0',
    '30 23,0 * * 4,5',
    '0 2 1,8,14,28-31 3,10,11 0',
    '10-50 1-3 * * *',
  ];
  test.each(zones)('in %s, in the days around each change of two years, slots are what the daemon would run', (zone) => {
    const [fromMs, toMs] = [Date.UTC(2027, 0, 1), Date.UTC(2029, 0, 1)];
    let compared = 0;
    for (const changeMs of clockChanges(zone, fromMs, toMs)) {
      const span = { zone, fromMs: changeMs - 30 * 3_600_000, toMs: changeMs + 30 * 3_600_000 };
      for (const expression of jobs) {
        const expected = vixieMinutes({ expression, ...span });
        expect([expression, ...shown(slots(expression, zone, span.fromMs, span.toMs))]).toEqual([expression, ...shown(expected)]);
        compared += expected.length;
      }
    }
    const hasChanges = !['UTC', 'America/Sao_Paulo', 'Asia/Kolkata', 'Asia/Tokyo'].includes(zone);
    expect(compared > 1000).toBe(hasChanges);
  });

  // New York: 2027-03-14 02:00 EST is 03:00 EDT (07:00 UTC); 2027-11-07 02:00 EDT is 01:00 EST again (06:00 UTC).
  // Cairo: 2027-04-30 00:00 is 01:00 (2027-04-29 22:00 UTC). Lord Howe: half an hour, 2027-10-03 02:00 is 02:30 (2027-10-02 15:30 UTC).
  const spring = [Date.UTC(2027, 2, 14, 4), Date.UTC(2027, 2, 14, 12)] as const;
  const autumn = [Date.UTC(2027, 10, 7, 3), Date.UTC(2027, 10, 7, 11)] as const;
  test.each([
    ['a fixed time that is skipped runs right after the gap', '30 2 * * *', 'America/New_York', spring, ['03-14T07:00']],
    ['several that are skipped run once', '0,30 2 * * *', 'America/New_York', spring, ['03-14T07:00']],
    ['a skipped one and its own time there run once', '0 2,3 * * *', 'America/New_York', spring, ['03-14T07:00']],
    [
      'a job of each hour follows the clock over the gap',
      '30 * * * *',
      'America/New_York',
      [spring[0], Date.UTC(2027, 2, 14, 9)],
      ['03-14T04:30', '03-14T05:30', '03-14T06:30', '03-14T07:30', '03-14T08:30'],
    ],
    ['a job of each minute of a skipped hour does not run', '*/30 2 * * *', 'America/New_York', spring, []],
    ['a fixed time that comes twice runs the first time', '30 1 * * *', 'America/New_York', autumn, ['11-07T05:30']],
    [
      'a job of each hour runs in both',
      '30 * * * *',
      'America/New_York',
      [autumn[0], Date.UTC(2027, 10, 7, 8)],
      ['11-07T03:30', '11-07T04:30', '11-07T05:30', '11-07T06:30', '11-07T07:30'],
    ],
    [
      'a job of each minute of the hour that comes twice runs in both',
      '*/30 1 * * *',
      'America/New_York',
      autumn,
      ['11-07T05:00', '11-07T05:30', '11-07T06:00', '11-07T06:30'],
    ],
    [
      'midnight that is skipped is made up at one',
      '0 0 * * *',
      'Africa/Cairo',
      [Date.UTC(2027, 3, 29, 12), Date.UTC(2027, 3, 30, 12)],
      ['04-29T22:00'],
    ],
    [
      'a half hour that is skipped',
      '15 2 * * *',
      'Australia/Lord_Howe',
      [Date.UTC(2027, 9, 2, 12), Date.UTC(2027, 9, 2, 20)],
      ['10-02T15:30'],
    ],
    [
      'a half hour that comes twice',
      '45 1 * * *',
      'Australia/Lord_Howe',
      [Date.UTC(2027, 3, 3, 10), Date.UTC(2027, 3, 3, 20)],
      ['04-03T14:45'],
    ],
  ] as const)('%s', (_, expression, zone, [fromMs, toMs], expected) => {
    expect(shown(slots(expression, zone, fromMs, toMs))).toEqual(expected.map((text) => `2027-${text}`));
  });

  test.each(ten)('in %s each fixed job has one run a day, in a year with leap day', (zone) => {
    for (const expression of ['30 2 * * *', '0 0 * * *', '30 0 * * *', '15 1 * * *', '0 3 * * *', '45 23 * * *']) {
      expect(slots(expression, zone, Date.UTC(2027, 10, 1, 12), Date.UTC(2028, 10, 1, 12))).toHaveLength(366);
    }
  });
});

describe('an expression', () => {
  test.each([
    ['* * * * *'],
    ['*/1 */23 */31 */12 */6'],
    ['0-59 0-23 1-31 1-12 0-6'],
    ['1,2,3-5,59 0,05 1,31 1,12 0,6'],
    ['0  0   1 1 0'],
    ['0 0 30 2 1'],
  ])('"%s" is taken', (text) => {
    expect(nextCronSlot(parseCronExpression(text), 'UTC', Date.UTC(2027, 0, 1))).not.toBeNull();
  });

  test.each([
    ['', '5 fields'],
    ['* * * *', '5 fields'],
    ['* * * * * *', '5 fields'],
    [' * * * * *', '5 fields'],
    ['@daily', '5 fields'],
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
  ])('"%s" is refused, naming %s', (text, complaint) => {
    expect(() => parseCronExpression(text)).toThrow(complaint);
  });

  test('of the 29th of February waits for it, over a century without', () => {
    const leap = parseCronExpression('0 0 29 2 *');
    expect(nextCronSlot(leap, 'UTC', Date.UTC(2096, 5, 1))).toBe(Date.UTC(2104, 1, 29));
    expect(nextCronSlot(parseCronExpression('0 0 29 2 *'), 'UTC', Date.UTC(2027, 0, 1))).toBe(Date.UTC(2028, 1, 29));
  });

  test('with day of month and day of week unites them, and needs both where one is a star', () => {
    const days = (text: string): number[] =>
      slots(text, 'UTC', Date.UTC(2027, 0, 1), Date.UTC(2027, 0, 16)).map((ms) => new Date(ms).getUTCDate());
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

test('the next slot is found in no time, also on the day when the clocks change', () => {
  const everyMinute = parseCronExpression('* * * * *');
  const took = cpuMs(() => {
    for (let i = 0; i < 1000; i++) nextCronSlot(everyMinute, 'America/New_York', Date.UTC(2027, 10, 7, 5, 59) + (i % 60) * 60_000);
  });
  expect(took).toBeLessThan(10_000);
});

test('the last slot of a span is the one that a missed run makes up', () => {
  const every = parseCronExpression('*/5 * * * *');
  const at = (minute: number): number => Date.UTC(2027, 0, 1, 12, minute);
  expect(lastCronSlot(every, 'UTC', at(1), at(14))).toBe(at(10));
  expect(lastCronSlot(every, 'UTC', at(10), at(14))).toBeNull();
  expect(lastCronSlot(every, 'UTC', at(10), at(15))).toBe(at(15));
});
