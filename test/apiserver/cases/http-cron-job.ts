import { many, secretRef, specCases, text, type ValidationCase } from './case.ts';

const { valid, invalid } = specCases('HttpCronJob', { schedule: '* * * * *', url: 'https://shop.example/run' });
const runsAt = (schedule: unknown) => ({ schedule });
const header = (name: unknown, value: unknown = 'a') => ({ headers: [{ name, value }] });

export const httpCronJobCases: ValidationCase[] = [
  valid('the smallest one, with defaults', {}),
  invalid('no schedule', runsAt(null), 'spec.schedule'),
  invalid('no URL', { url: null }, 'spec.url'),
  valid('every form of a field', runsAt('*/15 0-6,12,20-23 1,15-20 */2 1-5')),
  valid('the bounds', runsAt('0,59 0,23 1,31 1,12 0,6')),
  valid('leading zeros and several spaces', runsAt('05  06 01 02 03')),
  invalid('four fields', runsAt('* * * *'), 'spec.schedule'),
  invalid('six fields', runsAt('* * * * * *'), 'spec.schedule'),
  invalid('a space before', runsAt(' * * * * *'), 'spec.schedule'),
  invalid('minute 60', runsAt('60 * * * *'), 'spec.schedule'),
  invalid('hour 24', runsAt('* 24 * * *'), 'spec.schedule'),
  invalid('day 0', runsAt('* * 0 * *'), 'spec.schedule'),
  invalid('day 32', runsAt('* * 32 * *'), 'spec.schedule'),
  invalid('month 13', runsAt('* * * 13 *'), 'spec.schedule'),
  invalid('weekday 7', runsAt('* * * * 7'), 'spec.schedule'),
  invalid('the name of a weekday', runsAt('* * * * MON'), 'spec.schedule'),
  invalid('a macro', runsAt('@daily12345'), 'spec.schedule'),
  invalid('a step of zero', runsAt('*/0 * * * *'), 'spec.schedule'),
  invalid('a step in a range', runsAt('1-10/2 * * * *'), 'spec.schedule'),
  invalid('a star in a list', runsAt('*,1 * * * *'), 'spec.schedule'),
  invalid('a range that ends before it begins', runsAt('* 17-9 * * *'), 'spec.schedule'),
  invalid('such a range in a list', runsAt('1,2-3,5-4 * * * *'), 'spec.schedule'),
  valid('a day that no month has, which the compile step refuses', runsAt('0 0 31 2 *')),
  valid('a time zone', { timeZone: 'America/Argentina/Buenos_Aires' }),
  valid('a zone that nobody knows, which the compile step refuses', { timeZone: 'Mars/Olympus' }),
  invalid('an offset as time zone', { timeZone: '+02:00' }, 'spec.timeZone'),
  invalid('an empty time zone', { timeZone: '' }, 'spec.timeZone'),
  invalid('a URL without scheme', { url: 'shop.example' }, 'spec.url'),
  invalid('a URL with a password', { url: 'https://a:b@shop.example/' }, 'spec.url'),
  valid('GET', { method: 'GET' }),
  invalid('TRACE', { method: 'TRACE' }, 'spec.method'),
  valid('a header of a Secret', {
    headers: [
      { name: 'X-Shop', value: 'a' },
      { name: 'Authorization', valueSecretRef: secretRef },
    ],
  }),
  invalid('a header with both', { headers: [{ name: 'X-Shop', value: 'a', valueSecretRef: secretRef }] }, 'spec.headers[0].value'),
  invalid('a header with neither', { headers: [{ name: 'X-Shop' }] }, 'spec.headers[0].value'),
  valid('headers', { headers: many(50, (i) => ({ name: `x-${i}`, value: '' })) }),
  invalid('51 headers', { headers: many(51, (i) => ({ name: `x-${i}`, value: '' })) }, 'spec.headers'),
  invalid(
    'a header in two spellings',
    {
      headers: [
        { name: 'X-Shop', value: 'a' },
        { name: 'x-shop', value: 'b' },
      ],
    },
    'spec.headers',
  ),
  invalid('a header of ours', header('X-Posthorn-Cron'), 'spec.headers[0].name'),
  invalid('a header of the connection', header('Host'), 'spec.headers[0].name'),
  invalid('a header value with a line break', header('a', 'b\nc'), 'spec.headers[0].value'),
  valid('a payload', { payload: text(262_144) }),
  invalid('a payload that is too long', { payload: text(262_145) }, 'spec.payload'),
  valid('the longest timeout', { timeoutMs: 60_000 }),
  invalid('a longer one', { timeoutMs: 60_001 }, 'spec.timeoutMs'),
  invalid('a timeout of 0', { timeoutMs: 0 }, 'spec.timeoutMs'),
  valid('a static address', { useStaticIp: true, enabled: false }),
  invalid('an unknown field', { cron: '* * * * *' }, 'spec.cron'),
];
