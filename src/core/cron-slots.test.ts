import { describe, expect, test } from '@jest/globals';
import { CronExpressionParser } from 'cron-parser';
import fc from 'fast-check';
import { clockChanges, minutesOfCron, minutesOfOrdinaryDays } from '../../test/support/minutes-of-cron.ts';
import { assertProperty } from '../../test/support/property.ts';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { parseCronExpression } from './cron-expression.ts';
import { cronSlotsAround, keptNextCronSlot, nextCronSlot } from './cron-slots.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
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
// Half an hour in Lord Howe, two hours in Troll; at midnight in Cairo, Santiago, Havana and Beirut, and in São Paulo until 2019.
const changing = [
  ...ten.filter((zone) => !['UTC', 'Asia/Kolkata', 'Asia/Tokyo'].includes(zone)),
  'Europe/London',
  'America/Santiago',
  'America/Havana',
  'Antarctica/Troll',
  'Asia/Beirut',
  'Atlantic/Azores',
  'Pacific/Chatham',
  'Africa/Casablanca',
];
const yearsOf = (zone: string): [number, number] =>
  zone === 'America/Sao_Paulo' ? [Date.UTC(2017, 0, 1), Date.UTC(2019, 11, 1)] : [Date.UTC(2026, 0, 1), Date.UTC(2028, 0, 1)];

/** The slots from `fromMs` on, before `toMs`. */
function slots(expression: string, zone: string, fromMs: number, toMs: number): number[] {
  const fields = parseCronExpression(expression);
  const found: number[] = [];
  for (let slot = nextCronSlot(fields, zone, fromMs - 1); slot < toMs; slot = nextCronSlot(fields, zone, slot)) found.push(slot);
  return found;
}
const shown = (all: readonly number[]) => all.map((ms) => new Date(ms).toISOString().slice(0, 16));

const member = (min: number, max: number): fc.Arbitrary<string> =>
  fc.tuple(fc.integer({ min, max }), fc.integer({ min, max })).map(([a, b]) => (a < b && b - a < max / 2 ? `${a}-${b}` : `${a}`));
const field = (min: number, max: number): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant('*') },
    { weight: 2, arbitrary: fc.integer({ min: 1, max }).map((step) => `*/${step}`) },
    { weight: 5, arbitrary: fc.array(member(min, max), { minLength: 1, maxLength: 3 }).map((all) => all.join(',')) },
  );
/** Hours around those in which clocks change, and any. */
const hours = fc.oneof(
  field(0, 23),
  fc.array(fc.constantFrom('0', '1', '2', '3', '23', '0-3', '1-2'), { minLength: 1, maxLength: 3 }).map((all) => all.join(',')),
);
const dayFields = fc.oneof(
  { weight: 2, arbitrary: fc.constant('* * *') },
  {
    weight: 1,
    arbitrary: fc.tuple(field(1, 31), field(1, 12), field(0, 6)).map((all) => all.join(' ')),
  },
);
const expressions = fc
  .tuple(field(0, 59), hours, dayFields)
  .map((all) => all.join(' '))
  .filter((text) => {
    try {
      return parseCronExpression(text) !== null;
    } catch {
      return false;
    }
  });

describe('slots', () => {
  test('of ordinary days are the minutes in which the clock of the zone shows what the expression requests', () => {
    const zones = [...ten, 'America/Argentina/Buenos_Aires', 'Asia/Kathmandu', 'Pacific/Kiritimati', 'Pacific/Marquesas'];
    assertProperty(
      fc.property(expressions, fc.constantFrom(...zones), fc.integer({ min: 0, max: 3000 }), (expression, zone, day) => {
        const fromMs = Date.UTC(2023, 0, 1) + day * dayMs;
        const toMs = fromMs + 2 * dayMs;
        fc.pre(clockChanges(zone, fromMs - dayMs / 2, toMs + dayMs / 2).length === 0);
        const expected = minutesOfOrdinaryDays({ expression, zone, fromMs, toMs });
        expect(shown(slots(expression, zone, fromMs, toMs))).toEqual(shown(expected));
      }),
      60,
    );
  });

  test.each(changing)('in %s around changes of the clocks are those of the documented rules, wherever the search begins', (zone) => {
    const changes = clockChanges(zone, ...yearsOf(zone));
    expect(changes.length).toBeGreaterThan(2);
    assertProperty(
      fc.property(
        expressions,
        fc.constantFrom(...changes),
        fc.array(fc.integer({ min: -8 * 3600, max: 8 * 3600 }), { minLength: 5, maxLength: 20 }),
        (expression, changeMs, starts) => {
          const span = { fromMs: changeMs - 9 * hourMs, toMs: changeMs + 13 * hourMs };
          const expected = minutesOfCron({ expression, zone, ...span });
          expect(shown(slots(expression, zone, span.fromMs, span.toMs))).toEqual(shown(expected));
          const fields = parseCronExpression(expression);
          for (const seconds of starts) {
            const afterMs = changeMs + seconds * 1000;
            const next = nextCronSlot(fields, zone, afterMs);
            expect([afterMs, next < span.toMs ? next : undefined]).toEqual([afterMs, expected.find((ms) => ms > afterMs)]);
          }
        },
      ),
      40,
    );
  });

  test.each(['Europe/Berlin', 'America/New_York', 'America/Sao_Paulo', 'Africa/Cairo'])(
    'in %s, where the clocks change by an hour, are those that cron-parser finds by zone from the day before on',
    (zone) => {
      const jobs = [
        '30 2 * * *',
        '*/20 2 * * *',
        '30 * * * *',
        '*/10 * * * *',
        '0 */3 * * *',
        '0,30 1-3 * * *',
        '15 0 * * *',
        '45 23 * * *',
      ];
      let compared = 0;
      for (const changeMs of clockChanges(zone, ...yearsOf(zone))) {
        const [fromMs, toMs] = [changeMs - dayMs, changeMs + 12 * hourMs];
        for (const expression of jobs) {
          const parsed = CronExpressionParser.parse(expression, { tz: zone, currentDate: new Date(fromMs - 1) });
          const theirs: number[] = [];
          for (let ms = parsed.next().getTime(); ms < toMs; ms = parsed.next().getTime()) theirs.push(ms);
          expect([expression, ...shown(slots(expression, zone, fromMs, toMs))]).toEqual([expression, ...shown(theirs)]);
          compared += theirs.length;
        }
      }
      expect(compared).toBeGreaterThan(1000);
    },
  );

  // Berlin: 2026-03-29 02:00 is 03:00 (01:00 UTC), 2026-10-25 03:00 is 02:00 again (01:00 UTC). Lord Howe: 2026-10-04 02:00 is 02:30 (2026-10-03
  // 15:30 UTC), 2026-04-05 02:00 is 01:30 again (2026-04-04 15:00 UTC). São Paulo: 2018-11-04 00:00 is 01:00 (03:00 UTC), 2019-02-17 00:00
  // is 23:00 again (02:00 UTC). Troll: 2026-03-29 01:00 is 03:00 (01:00 UTC), 2026-10-25 03:00 is 01:00 again (01:00 UTC).
  const berlin = { forward: '2026-03-28T23:00Z/2026-03-29T03:00Z', back: '2026-10-24T23:00Z/2026-10-25T03:00Z' };
  const lordHowe = { forward: '2026-10-03T13:00Z/2026-10-03T17:00Z', back: '2026-04-04T13:00Z/2026-04-04T17:00Z' };
  const saoPaulo = { forward: '2018-11-04T01:00Z/2018-11-04T05:00Z', back: '2019-02-17T00:00Z/2019-02-17T04:00Z' };
  const troll = { forward: '2026-03-29T00:00Z/2026-03-29T04:00Z', back: '2026-10-24T22:00Z/2026-10-25T04:00Z' };
  test.each([
    ['a skipped time runs an hour later', '30 2 * * *', 'Europe/Berlin', berlin.forward, ['29T01:30']],
    ['a list of a skipped hour runs in the next', '*/20 2 * * *', 'Europe/Berlin', berlin.forward, ['29T01:00', '29T01:20', '29T01:40']],
    ['a skipped time and the time at which it runs are one', '0 2,3 * * *', 'Europe/Berlin', berlin.forward, ['29T01:00']],
    [
      'a job of every hour has one run an hour',
      '30 * * * *',
      'Europe/Berlin',
      berlin.forward,
      ['28T23:30', '29T00:30', '29T01:30', '29T02:30'],
    ],
    ['a time that comes again runs the first time', '30 2 * * *', 'Europe/Berlin', berlin.back, ['25T00:30']],
    ['so does a list', '*/20 2 * * *', 'Europe/Berlin', berlin.back, ['25T00:00', '25T00:20', '25T00:40']],
    ['a job of every hour runs both times', '30 * * * *', 'Europe/Berlin', berlin.back, ['24T23:30', '25T00:30', '25T01:30', '25T02:30']],
    ['a skipped time of a short gap runs half an hour later', '15 2 * * *', 'Australia/Lord_Howe', lordHowe.forward, ['03T15:45']],
    ['a skipped time runs after one that is not', '15,40 2 * * *', 'Australia/Lord_Howe', lordHowe.forward, ['03T15:40', '03T15:45']],
    [
      'a job of every hour runs half an hour later',
      '15 * * * *',
      'Australia/Lord_Howe',
      lordHowe.forward,
      ['03T13:45', '03T14:45', '03T15:45', '03T16:15'],
    ],
    ['a time of a short repetition runs the first time', '45 1 * * *', 'Australia/Lord_Howe', lordHowe.back, ['04T14:45']],
    ['a time before it runs once', '10 1 * * *', 'Australia/Lord_Howe', lordHowe.back, ['04T14:10']],
    [
      'a job of every hour runs in it',
      '45 * * * *',
      'Australia/Lord_Howe',
      lordHowe.back,
      ['04T13:45', '04T14:45', '04T15:15', '04T16:15'],
    ],
    ['midnight that is skipped is made up at one', '0 0 * * *', 'America/Sao_Paulo', saoPaulo.forward, ['04T03:00']],
    ['on its day', '30 0 4 11 *', 'America/Sao_Paulo', saoPaulo.forward, ['04T03:30']],
    ['the last hour of a day that comes again runs once', '30 23 * * *', 'America/Sao_Paulo', saoPaulo.back, ['17T01:30']],
    [
      'a job of every hour of one day runs both times',
      '30 * 16 2 *',
      'America/Sao_Paulo',
      saoPaulo.back,
      ['17T00:30', '17T01:30', '17T02:30'],
    ],
    ['times of two skipped hours run two hours later', '30 1,2 * * *', 'Antarctica/Troll', troll.forward, ['29T01:30', '29T02:30']],
    ['times of two hours that come again run once', '30 1,2 * * *', 'Antarctica/Troll', troll.back, ['24T23:30', '25T00:30']],
  ] as const)('%s: %s in %s', (_, expression, zone, span, expected) => {
    const [fromMs = 0, toMs = 0] = span.split('/').map(Date.parse);
    expect(shown(slots(expression, zone, fromMs, toMs)).map((text) => text.slice(8))).toEqual(expected);
  });

  test.each(ten)('of a fixed time in %s are one a day, in a year with leap day', (zone) => {
    for (const expression of ['30 2 * * *', '0 0 * * *', '30 0 * * *', '15 2 * * *', '10 1 * * *', '0 3 * * *', '45 23 * * *']) {
      expect(slots(expression, zone, Date.UTC(2027, 10, 1, 12), Date.UTC(2028, 10, 1, 12))).toHaveLength(366);
    }
  });

  test('of an unknown zone are none', () => {
    expect(() => nextCronSlot(parseCronExpression('* * * * *'), 'Mars/Olympus', 0)).toThrow(RangeError);
  });
});

test('the last slot of a span is the one that a missed run makes up, and the next one follows it', () => {
  const every = parseCronExpression('*/5 * * * *');
  const at = (minute: number): number => Date.UTC(2027, 0, 1, 12, minute);
  expect(cronSlotsAround(every, 'UTC', at(1), at(14))).toEqual({ last: at(10), next: at(15) });
  expect(cronSlotsAround(every, 'UTC', at(10), at(14))).toEqual({ last: null, next: at(15) });
  expect(cronSlotsAround(every, 'UTC', at(10), at(15))).toEqual({ last: at(15), next: at(20) });
});

describe('the kept slot', () => {
  const at = (minute: number): number => Date.UTC(2027, 0, 1, 12, minute);
  test.each([
    ['of a schedule that runs is the next one at each time, also when the clock goes back', '*/5 * * * *', 'UTC', [5, 5, 10, 5, 15]],
    ['of a refused schedule is none', '*/5 * * * * *', 'UTC', [null, null, null, null, null]],
    ['of a zone that nobody knows is none', '*/5 * * * *', 'Mars/Olympus', [null, null, null, null, null]],
  ])('%s', (_, schedule, timeZone, expected) => {
    const found = [1, 4, 5, 2, 10].map((minute) => keptNextCronSlot({ schedule, timeZone }, at(minute)));
    expect(found).toEqual(expected.map((minute) => (minute === null ? null : at(minute))));
  });
});

test('zones are remembered by their one spelling, however a job spells them', () => {
  const spellings = Array.from({ length: 2000 }, (_, i) =>
    [...'america/detroit'].map((letter, at) => (((i >> at) & 1) === 1 ? letter.toUpperCase() : letter)).join(''),
  );
  const fields = parseCronExpression('30 2 * * *');
  const made = new Set<unknown>();
  const { DateTimeFormat } = Intl;
  Intl.DateTimeFormat = new Proxy(DateTimeFormat, {
    construct: (target, [locale, options]) => {
      if (options.hour !== undefined || options.year !== undefined) made.add(options.timeZone);
      return new target(locale, options);
    },
  });
  try {
    const expected = nextCronSlot(fields, 'America/Detroit', Date.UTC(2027, 0, 1));
    expect(spellings.every((zone) => nextCronSlot(fields, zone, Date.UTC(2027, 0, 1)) === expected)).toBe(true);
    expect([...made]).toEqual(['America/Detroit']);
  } finally {
    Intl.DateTimeFormat = DateTimeFormat;
  }
});

describe('no search takes long', () => {
  test.each([
    ['0 0 29 2 *', 'UTC', Date.UTC(2096, 2, 1)],
    ['59 23 29 2 *', 'Australia/Lord_Howe', Date.UTC(2096, 2, 1)],
    ['59 23 29 2 1', 'Antarctica/Troll', Date.UTC(2096, 2, 1)],
    ['0 0 30 2 1', 'Pacific/Chatham', Date.UTC(2096, 2, 1)],
    ['59 23 31 12 *', 'Pacific/Apia', Date.UTC(2027, 0, 1)],
    ['10 1 * * *', 'Australia/Lord_Howe', Date.UTC(2026, 3, 4, 14, 10)],
    ['10 * * * *', 'Australia/Lord_Howe', Date.UTC(2026, 3, 4, 14, 10)],
    ['15 2 4 10 *', 'Australia/Lord_Howe', Date.UTC(2026, 9, 3, 15, 45)],
    ['0 3 29 3 *', 'Europe/Berlin', Date.UTC(2026, 2, 29, 1, 40)],
    ['* 0-22 * * *', 'Antarctica/Troll', Date.UTC(2026, 9, 25, 0, 59)],
    ['* * * * *', 'America/New_York', Date.UTC(2027, 10, 7, 5, 59)],
  ])('%s in %s', (expression, zone, afterMs) => {
    withinProcessorTime(() => {
      for (let i = 0; i < 3; i++) nextCronSlot(parseCronExpression(expression), zone, afterMs);
    });
  });
});
