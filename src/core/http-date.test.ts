import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { httpDateMs } from './http-date.ts';

const nowMs = Date.UTC(2026, 10, 25, 8, 0, 0);
const iso = (text: string, at = nowMs): string | null => {
  const ms = httpDateMs(text, at);
  return ms === null ? null : new Date(ms).toISOString();
};

test.each([
  ['Wed, 25 Nov 2026 08:40:00 GMT', '2026-11-25T08:40:00.000Z'],
  ['wed, 25 nov 2026 08:40:00 gmt', '2026-11-25T08:40:00.000Z'],
  ['Wed, 25 Nov 2026 08:40:00 UTC', '2026-11-25T08:40:00.000Z'],
  ['Wed, 25 Nov 2026 08:40:00 +0000', '2026-11-25T08:40:00.000Z'],
  ['Mon, 25 Nov 2026 23:59:60 GMT', '2026-11-26T00:00:00.000Z'],
  ['Sunday, 06-Nov-94 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
  ['Wednesday, 25-Nov-26 08:40:00 GMT', '2026-11-25T08:40:00.000Z'],
  ['Monday, 29-Feb-28 08:40:00 GMT', '2028-02-29T08:40:00.000Z'],
  ['Wednesday, 25-Nov-76 08:40:00 GMT', '2076-11-25T08:40:00.000Z'],
  ['Thursday, 25-Nov-77 08:40:00 GMT', '1977-11-25T08:40:00.000Z'],
  ['Wed Nov 25 08:40:00 2026', '2026-11-25T08:40:00.000Z'],
  ['Sun Nov  6 08:49:37 1994', '1994-11-06T08:49:37.000Z'],
  ['Sun, 6 Nov 1994 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
  ['25 Nov 2026 08:40:00 GMT', '2026-11-25T08:40:00.000Z'],
  ['Wed, 25 Nov 2026 08:40:00 +0200', '2026-11-25T06:40:00.000Z'],
  ['Wed, 25 Nov 2026 23:40:00 -0330', '2026-11-26T03:10:00.000Z'],
  ['Wed, 25 Nov 26 08:40:00 GMT', '2026-11-25T08:40:00.000Z'],
  ['Wednesday, 25-Nov-2026 08:40:00 GMT', '2026-11-25T08:40:00.000Z'],
  ['Wed Nov 25 08:40:00 GMT 2026', '2026-11-25T08:40:00.000Z'],
  ['Wed Nov 25 2026 09:40:00 GMT+0100 (Central European Standard Time)', '2026-11-25T08:40:00.000Z'],
  ['2026-11-25T08:40:00Z', '2026-11-25T08:40:00.000Z'],
  ['2026-11-25t08:40:00z', '2026-11-25T08:40:00.000Z'],
  ['2026-11-25 10:40:00+0200', '2026-11-25T08:40:00.000Z'],
  ['2026-11-25T08:40:00.5+02:00', '2026-11-25T06:40:00.500Z'],
])('%s is %s', (text, expected) => expect(iso(text)).toBe(expected));

test.each([
  '',
  'soon',
  '30.5',
  '-1',
  '2026',
  '2026-11-25',
  '2026-11-25T08:40:00',
  '2026-13-25T08:40:00Z',
  'Nov 25 2026',
  'Wed, 25 Nov 2026 08:40:00',
  'Wed, 25 Nov 2026 08:40:00 CET',
  'Wed, 25 Foo 2026 08:40:00 GMT',
  'Wed, 31 Nov 2026 08:40:00 GMT',
  'Sun, 29 Feb 2026 08:40:00 GMT',
  'Wed, 00 Nov 2026 08:40:00 GMT',
  'Wed, 25 Nov 2026 24:00:00 GMT',
  'Wed, 25 Nov 2026 08:60:00 GMT',
  'Wed, 25 Nov 0026 08:40:00 GMT',
  'Wed Nov 25 08:40:00 2026 CET',
  'Wed Nov 25 08:40:00 CET 2026',
  'Wed, 25 Nov 2026 08:40:00 GMT+0200',
  'Wed, 25 Nov 2026 08:40:00 +2400',
  '0 Nov 2026 08:40:00 GMT',
])('%j is no date', (text) => expect(iso(text)).toBeNull());

test.each([
  [Date.UTC(1999, 0, 1), '00', 2000],
  [Date.UTC(1999, 0, 1), '49', 2049],
  [Date.UTC(1999, 0, 1), '50', 1950],
  [Date.UTC(2099, 0, 1), '10', 2110],
  [Date.UTC(2099, 0, 1), '98', 2098],
])('at %d the year %s is %d', (at, year, expected) => {
  expect(iso(`Sunday, 06-Nov-${year} 08:49:37 GMT`, at)).toBe(`${expected}-11-06T08:49:37.000Z`);
});

test.each(['America/New_York', 'Asia/Kathmandu', 'UTC'])('a date of asctime is one of UTC where the process has the zone %s', (zone) => {
  const script = `import { httpDateMs } from ${JSON.stringify(new URL('http-date.ts', import.meta.url))};
    process.stdout.write(new Date(httpDateMs('Wed Nov 25 08:40:00 2026', 0)).toISOString());`;
  const out = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { env: { ...process.env, TZ: zone } });
  expect(out.toString()).toBe('2026-11-25T08:40:00.000Z');
});
