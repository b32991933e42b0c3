import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { everything } from '../../test/support/every-kind.ts';
import { assertProperty } from '../../test/support/property.ts';
import { isUsableUrl } from '../core/url-problem.ts';
import { configurationKinds, kinds } from './kinds.ts';
import { httpsUrl, httpUrl } from './url.ts';

const isTaken = (url: string): boolean => httpUrl.safeParse(url).success;

describe('hosts', () => {
  test.each([
    'shop.example',
    'shop.example.',
    'localhost',
    'svc-1.ns.svc.cluster.local',
    '1password-connect',
    'xerox.example',
    '2x-proxy',
    'under_score.example',
    'xn--bcher-kva.example',
    'bücher.example',
    '10.0.0.1',
    '255.255.255.255',
    '[::]',
    '[::1]',
    '[2001:DB8::8a2e:370:7334]',
    '[1:2:3:4:5:6:7:8]',
    '[1:2:3:4:5:6:7::]',
    '[::2:3:4:5:6:7:8]',
    '[1::3:4:5:6:7:8]',
    '[1:2:3:4:5:6::8]',
  ])('%s is one', (host) => {
    expect([isTaken(`https://${host}/a?b#c`), isTaken(`http://${host}:65535`), URL.canParse(`https://${host}/`)]).toEqual([
      true,
      true,
      true,
    ]);
  });

  test.each([
    '',
    '.',
    'a..b',
    '.example',
    '[]',
    '[0]',
    '[:]',
    '[:::]',
    '[1::2::3]',
    '[1:2:3:4:5:6:7]',
    '[1:2:3:4:5:6:7:8:9]',
    '[::1:2:3:4:5:6:7:8]',
    '[12345::]',
    '[::g]',
    '[::1%25eth0]',
    '[fe80::1%eth0]',
    '127.0.0.1.',
    '[::1',
    '::1',
    '::1]',
    '[10.0.0.1]',
    '256.0.0.1',
    '1.2.3',
    '127.1',
    '1.2.3.4.5',
    '010.0.0.1',
    '0x7f.0.0.1',
    '2130706433',
    '0x7f000001',
    'shop.1',
    'shop.0x1',
    'a^b',
    'a|b',
    'a%41',
    'a<b',
    'a b',
    'a\u0080b',
    'a:65536',
    'a:99999',
    'a:',
    'a:1:2',
  ])('%j is none', (host) => {
    expect([isTaken(`https://${host}`), isTaken(`http://${host}/`)]).toEqual([false, false]);
  });

  test('whatever is taken in ASCII a URL parser takes', () => {
    const part = fc.stringMatching(/^[ -~]{0,12}$/);
    const label = fc.stringMatching(/^(xn--)?[0-9a-zA-Z_.-]{1,12}$/);
    const group = fc.stringMatching(/^[0-9a-f:.]{1,12}$/);
    const host = fc.oneof(
      part,
      label,
      group,
      group.map((inside) => `[${inside}]`),
      fc.ipV4Extended(),
      fc.ipV6().map((inside) => `[${inside}]`),
    );
    assertProperty(
      fc.property(host, fc.integer({ min: 0, max: 70_000 }), part, (name, port, path) => {
        const url = `https://${name}:${port}/${path}`;
        if (isTaken(url) && !URL.canParse(url)) throw new Error(url);
      }),
      5000,
    );
  });
});

test.each([
  ['0', false],
  ['00000', false],
  ['1', true],
  ['00009', true],
  ['0080', true],
  ['443', true],
  ['65535', true],
  ['65536', false],
  ['000001', false],
])('the port %s is taken: %s', (port, taken) => {
  const url = `https://shop.example:${port}/a`;
  expect([isTaken(url), httpsUrl.safeParse(url).success, isUsableUrl(url)]).toEqual([taken, taken, taken || port === '000001']);
});

test.each(configurationKinds)('no URL of the kind %s may have port 0', (kind) => {
  for (const object of everything.filter((each) => each.kind === kind)) {
    const spec = JSON.stringify('spec' in object ? object.spec : {});
    const { spec: schema } = kinds[kind];
    for (const [url, origin] of spec.matchAll(/(https?:\/\/[^/"]+)[^"]*/g)) {
      expect(schema.safeParse(JSON.parse(spec)).success).toBe(true);
      expect([origin, schema.safeParse(JSON.parse(spec.replace(url, `${origin}:0/`))).success]).toEqual([origin, false]);
    }
  }
});

test.each([
  ['https', true, true],
  ['HTTPS', true, true],
  ['hTTpS', true, true],
  ['http', true, false],
  ['HTTP', true, false],
  ['Http', true, false],
  ['ftp', false, false],
  ['httpss', false, false],
  ['', false, false],
])('the scheme %j is taken: %s, and where https is requested: %s', (scheme, isHttp, isHttps) => {
  const url = `${scheme}://[::1]/a`;
  expect([httpUrl.safeParse(url).success, httpsUrl.safeParse(url).success]).toEqual([isHttp, isHttps]);
});
