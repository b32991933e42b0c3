import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../../../test/support/property.ts';
import { httpUrl } from '../../../resources/url.ts';
import { httpTarget } from './http-target.ts';

describe('path and query', () => {
  test.each([
    "/?y='q'",
    '/?a="b"&c=<d>',
    '/a|b^c{d}`e`?f|g^h{i}`j`',
    "/it's/~me/%7Eme/(a)*b!;c=$d,e:f@g[h]",
    '/a%2fb%2Fc%c3%a9?sig=a%2bB%3d%3D',
    '/a%zz%?b%',
    '/a/../b/./c/%2e%2E/d/..',
    '//double///slashes//',
    '/a?',
    '/a?b=http://c.example/d?e#',
    '/a+b?c+d',
    '/.',
  ])('path and query are requested as they are written: %s', (written) => {
    const [path = ''] = written.split('#');
    expect(httpTarget(`https://a.example${written}`)).toMatchObject({ origin: 'https://a.example', path });
    expect(httpTarget(`HTTP://A.example:8080${written}#part`)).toMatchObject({ origin: 'http://a.example:8080', path });
  });

  test.each([
    ['', '/'],
    ['#part', '/'],
    ['?a=1', '/?a=1'],
    ['?', '/?'],
    ['/bücher?größe=1 m', '/b%C3%BCcher?gr%C3%B6%C3%9Fe=1%20m'],
    ["/bücher/'?größe=‘1’", "/b%C3%BCcher/'?gr%C3%B6%C3%9Fe=%E2%80%981%E2%80%99"],
    ['/\u{1f680}?\ud800', '/%F0%9F%9A%80?%EF%BF%BD'],
    ['/a b\u0001c', '/a%20b%01c'],
    ['/a\u0085\u00a0', '/a%C2%85%C2%A0'],
    ['/a\tb\nc', '/abc'],
    ['/a\\b', '/a/b'],
  ])('path and query are escaped where HTTP cannot carry them: %j is %s', (written, path) => {
    expect(httpTarget(`https://a.example${written}`).path).toBe(path);
  });

  test.each([
    ['https://a.example/b?c=1&d', '?c=1&d'],
    ['https://a.example/b', ''],
    ['https://a.example/b?', '?'],
    ["https://a.example?c='1'#d?e", "?c='1'"],
  ])('path and query of %s have the query %j', (url, query) => expect(httpTarget(url).query).toBe(query));
});

describe('the host that is connected to is that of the WHATWG parser', () => {
  test.each([
    ['https://a.example\\@b.example/c', 'https://a.example', '/@b.example/c'],
    ['https://a.example@b.example/c', 'https://b.example', '/c'],
    ['https://a.example:1@b.example:2?c=@d', 'https://b.example:2', '/?c=@d'],
    ['https://a.example/@b.example/', 'https://a.example', '/@b.example/'],
    ['https://a.example?@b.example/', 'https://a.example', '/?@b.example/'],
    ['https://a.example#@b.example/', 'https://a.example', '/'],
    ['https://a.example//b.example/..', 'https://a.example', '//b.example/..'],
    ['https://a.example/https://b.example/', 'https://a.example', '/https://b.example/'],
    ['https:a.example/b', 'https://a.example', '/b'],
    ['https:/\\/a.example\\b', 'https://a.example', '/b'],
    ['ht\ntps://a.ex\tample/b', 'https://a.example', '/b'],
    [' https://a.example/b ', 'https://a.example', '/b'],
    ['https://a%2Eexample/b', 'https://a.example', '/b'],
    ['https://127.1/b', 'https://127.0.0.1', '/b'],
    ['https://0x7f.1:443/b', 'https://127.0.0.1', '/b'],
    ['https://[::ffff:127.0.0.1]/b', 'https://[::ffff:7f00:1]', '/b'],
    ['https://bücher.example/b', 'https://xn--bcher-kva.example', '/b'],
    ['https://a。example/b', 'https://a.example', '/b'],
  ])('%j is %s with %s', (url, origin, path) => {
    expect(httpTarget(url)).toMatchObject({ origin, path });
  });

  test('a path stays a path, whatever the URL is', () => {
    const piece = fc.oneof(
      fc.constantFrom('/', '\\', '?', '#', '@', ':', '..', '\t', '\n', ' ', '%2f', 'b.example', '//', 'http://'),
      fc.string(),
    );
    assertProperty(
      fc.property(fc.constantFrom('http', 'https', 'HTTPS'), fc.array(piece, { maxLength: 8 }), (scheme, pieces) => {
        const url = `${scheme}://a.example${pieces.join('')}`;
        if (!URL.canParse(url)) return;
        const { origin, path, protocol } = httpTarget(url);
        const parsed = new URL(url);
        expect([origin, protocol]).toEqual([parsed.origin, parsed.protocol]);
        expect(path).toMatch(/^\/[!-~]*$/);
        expect(path).not.toContain('#');
      }),
      3000,
    );
  });

  test('of a URL that is taken, only escapes differ from what the WHATWG parser makes of path and query, and dots', () => {
    const character = fc.integer({ min: 0x21, max: 0x24f }).map((code) => String.fromCodePoint(code));
    assertProperty(
      fc.property(fc.constantFrom('', '/', '?'), fc.array(character, { maxLength: 20 }), (first, characters) => {
        const rest = characters.join('').replaceAll('.', '');
        const url = `https://a.example${first}${first === '' ? '' : rest}`;
        if (!httpUrl.safeParse(url).success) return;
        const { path } = httpTarget(url);
        const again = new URL(path, 'https://a.example');
        const { pathname, search } = new URL(url);
        if (!path.startsWith('//')) expect(again.pathname + again.search).toBe(pathname + search);
      }),
      3000,
    );
  });
});

test.each(['', 'a.example', '/a', 'https://', 'https://a b/', 'https://a.example:99999/'])('%j is no URL', (url) => {
  expect(() => httpTarget(url)).toThrow('Invalid URL');
});
