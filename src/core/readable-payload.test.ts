import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { wholePayloadBytes } from './payload-sizes.ts';
import { readableLimits, readablePayload } from './readable-payload.ts';

const json = Buffer.from('{"id":9007199254740993,"at":1.50}');
const urlEncoded = 'application/x-www-form-urlencoded';

function readable(body: Buffer | string, { contentType = 'application/json', contentEncoding = '' } = {}) {
  const { bytes, problem } = readablePayload(Buffer.from(body), { contentType, contentEncoding });
  return { text: bytes.toString(), problem };
}

describe('a payload in JSON stays the same bytes', () => {
  test.each([
    ['', ''],
    ['application/json', ''],
    ['text/plain', 'identity'],
    ['application/x-www-form-urlencoded-not', ''],
    [urlEncoded, ''],
    ['multipart/form-data', ''],
    ['multipart/form-data; boundary=x', ''],
    ['multipart/mixed; boundary=x', ''],
  ])('content type %j, content encoding %j', (contentType, contentEncoding) => {
    expect(readablePayload(json, { contentType, contentEncoding })).toEqual({ bytes: json, problem: null });
  });
});

describe('a compressed payload is read without its content coding', () => {
  test.each<[string, Buffer]>([
    ['gzip', gzipSync(json)],
    ['GZIP', gzipSync(json)],
    ['x-gzip', gzipSync(json)],
    ['deflate', deflateSync(json)],
    ['deflate', deflateRawSync(json)],
    ['br', brotliCompressSync(json)],
    ['zstd', zstdCompressSync(json)],
    ['identity, gzip', gzipSync(json)],
    ['gzip, br', brotliCompressSync(gzipSync(json))],
    [' gzip ,gzip', gzipSync(gzipSync(json))],
  ])('%s', (contentEncoding, body) => {
    expect(readable(body, { contentEncoding })).toEqual({ text: json.toString(), problem: null });
  });

  test('a form', () => {
    expect(readable(gzipSync('a=1'), { contentType: urlEncoded, contentEncoding: 'gzip' }).text).toBe('{"a":"1"}');
  });
});

describe('a content encoding that names no compression is none', () => {
  test.each<[string, string, Buffer, string]>([
    ['utf-8', urlEncoded, Buffer.from('a=\u00fc'), '{"a":"\u00fc"}'],
    ['UTF-8, gzip', urlEncoded, gzipSync('a=\u00fc'), '{"a":"\u00fc"}'],
    ['iso-8859-1', urlEncoded, Buffer.from('a=%FC'), '{"a":"\u00fc"}'],
    ['iso-8859-1', `${urlEncoded}; charset=windows-1251`, Buffer.from('a=%FC'), '{"a":"\u044c"}'],
    ['latin1', 'text/plain', Buffer.from('\u00fc', 'latin1'), '\u00fc'],
    ['none', urlEncoded, Buffer.from('a=1'), '{"a":"1"}'],
    ['7bit', urlEncoded, Buffer.from('a=1'), '{"a":"1"}'],
    ['8bit', 'application/xml', Buffer.from('<a/>'), '<a/>'],
    ['Binary', 'text/plain', Buffer.from('x'), 'x'],
  ])('%s of %s', (contentEncoding, contentType, body, text) => {
    expect(readable(body, { contentType, contentEncoding })).toEqual({ text, problem: null });
  });
});

describe('XML is read in the charset that its declaration names, unless the sender names one', () => {
  const latin1 = Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><a>\u00fc</a>', 'latin1');
  test.each<[string, string, Buffer]>([
    ['application/xml', '<?xml version="1.0" encoding="ISO-8859-1"?><a>\u00fc</a>', latin1],
    ['text/xml; charset=windows-1251', '<?xml version="1.0" encoding="ISO-8859-1"?><a>\u044c</a>', latin1],
    [
      'application/soap+xml',
      "<?xml version='1.0' encoding = 'latin1' ?><a>\u00fc</a>",
      Buffer.from("<?xml version='1.0' encoding = 'latin1' ?><a>\u00fc</a>", 'latin1'),
    ],
    [
      'application/xml',
      '<?xml version="1.0" encoding="ISO-8859-1"?><a>\u00fc</a>',
      Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><a>\u00fc</a>'),
    ],
    ['application/xml', '<?xml version="1.0"?><a>\ufffd</a>', Buffer.from('<?xml version="1.0"?><a>\u00fc</a>', 'latin1')],
    [
      'application/xml',
      '<?xml version="1.0" encoding="unknown"?><a>\ufffd</a>',
      Buffer.from('<?xml version="1.0" encoding="unknown"?><a>\u00fc</a>', 'latin1'),
    ],
  ])('%s: %s', (contentType, text, body) => {
    expect(readable(body, { contentType })).toEqual({ text, problem: null });
  });
});

describe('a payload that cannot be decompressed stays as it is, with the reason', () => {
  const large = Buffer.alloc(wholePayloadBytes + 1, 'x');
  test.each<[string, Buffer, RegExp]>([
    ['gzip', Buffer.from('plain'), /^the payload is not valid gzip$/],
    ['gzip', gzipSync(json).subarray(0, -9), /not valid gzip/],
    ['deflate', Buffer.from('plain'), /not valid deflate/],
    ['br', Buffer.from([1, 2, 3]), /not valid br/],
    ['zstd', Buffer.from('plain'), /not valid zstd/],
    ['gzip', gzipSync(large), /more than 1048576 bytes without its content coding gzip/],
    ['br', brotliCompressSync(large), /more than 1048576 bytes/],
    ['zstd', zstdCompressSync(large), /more than 1048576 bytes/],
    ['gzip, gzip, gzip', gzipSync(gzipSync(gzipSync(json))), /more than 2 content codings/],
    ['aws-chunked', Buffer.from('3\r\nabc\r\n'), /the content coding aws-chunked of the payload is unknown/],
  ])('%s %#', (contentEncoding, body, problem) => {
    const read = readablePayload(body, { contentType: 'application/json', contentEncoding });
    expect(read).toMatchObject({ bytes: body, problem: expect.stringMatching(problem) });
  });
});

test.each(['gzip', 'deflate', 'br', 'zstd', 'aws-chunked'])(
  'JSON that a proxy has decompressed under the header for %s is read as JSON',
  (contentEncoding) => {
    expect(readable(json, { contentEncoding })).toEqual({ text: json.toString(), problem: null });
  },
);

describe('a form has its fields', () => {
  test.each<[string, unknown]>([
    ['From=%2B491234&Body=Hello+w%C3%B6rld%21', { From: '+491234', Body: 'Hello wörld!' }],
    ['a=1&a=2&b=', { a: ['1', '2'], b: '' }],
    ['a+b=+1%2B+1+', { 'a b': ' 1+ 1 ' }],
    ['a', { a: '' }],
    ['a=1&a=2&a=3', { a: ['1', '2', '3'] }],
    ['n=9007199254740993', { n: '9007199254740993' }],
    ['', {}],
    ['payload=%7B%22action%22%3A%22opened%22%7D', { action: 'opened' }],
    ['payload=%5B1%5D', [1]],
    ['payload=%EF%BB%BF%7B%22a%22%3A1%7D', { a: 1 }],
    ['payload=7', { payload: '7' }],
    ['payload=text', { payload: 'text' }],
    ['payload=%7B%7D&token=a', { payload: '{}', token: 'a' }],
    ['\ufeffa=1', { a: '1' }],
    ['{"a":1', { '{"a":1': '' }],
  ])('%j', (body, fields) => {
    expect(JSON.parse(readable(body, { contentType: `${urlEncoded}; charset=utf-8` }).text)).toEqual(fields);
  });

  test('the names of a form are ordinary names', () => {
    const { text } = readable('__proto__=1&constructor=2', { contentType: 'Application/X-WWW-Form-Urlencoded' });
    expect(text).toBe('{"__proto__":"1","constructor":"2"}');
  });

  test('JSON under the content type of a form, which curl sends by default, stays JSON', () => {
    expect(readable('{"a":"1+1","b":1e+5}', { contentType: urlEncoded }).text).toBe('{"a":"1+1","b":1e+5}');
    expect(readable('{"a":1}', { contentType: urlEncoded }).text).toBe('{"a":1}');
  });

  test.each([1, 0])('a form with %d fields more than the limit has %d', (more) => {
    const body = Array.from({ length: readableLimits.fields + more }, (_, index) => `f${index}=`).join('&');
    expect(readable(body, { contentType: urlEncoded }).text === body).toBe(more > 0);
  });
});

describe('a multipart form has its fields and not its files', () => {
  const part = (disposition: string, value: string, more = ''): string =>
    `Content-Disposition: form-data; ${disposition}\r\n${more}\r\n${value}`;
  const form = (boundary: string, ...parts: string[]): string =>
    `${parts.map((each) => `--${boundary}\r\n${each}\r\n`).join('')}--${boundary}--\r\n`;

  test.each<[string, string, string, unknown]>([
    [
      'fields',
      'multipart/form-data; boundary=x',
      form('x', part('name="a"', '1'), part('name="b"', 'two\r\nlines')),
      { a: '1', b: 'two\r\nlines' },
    ],
    ['a quoted boundary', 'multipart/form-data; charset=utf-8; boundary="a b:1"', form('a b:1', part('name="a"', '1')), { a: '1' }],
    ['a preamble', 'multipart/form-data; boundary=x', `before\r\n${form('x', part('name="a"', '1'))}after`, { a: '1' }],
    ['a name twice', 'multipart/form-data; boundary=x', form('x', part('name=a', '1'), part('name=a', '2')), { a: ['1', '2'] }],
    [
      'escaped names',
      'multipart/form-data; boundary=x',
      form('x', part('name="a%22b"', '1'), part('name="c\\"d"', '2')),
      { 'a"b': '1', 'c"d': '2' },
    ],
    ['a name with a semicolon', 'multipart/form-data; boundary=x', form('x', part('name="a; filename=b"', '1')), { 'a; filename=b': '1' }],
    [
      'a type of its own',
      'multipart/form-data; boundary=x',
      form('x', part('name="a"', 'ü', 'Content-Type: text/plain; charset=utf-8\r\n')),
      { a: 'ü' },
    ],
    [
      'a file',
      'multipart/form-data; boundary=x',
      form(
        'x',
        part('name="payload"', '{"event":"media.play"}'),
        part('name="thumb"; filename="t.jpg"', 'JPEG', 'Content-Type: image/jpeg\r\n'),
      ),
      { event: 'media.play' },
    ],
    ['a file alone', 'multipart/form-data; boundary=x', form('x', part('name="thumb"; filename*=UTF-8\'\'t', 'JPEG')), {}],
    ['no part', 'multipart/form-data; boundary=x', '--x--\r\n', {}],
    ['an empty value', 'multipart/form-data; boundary=x', form('x', part('name="a"', '')), { a: '' }],
  ])('%s', (_what, contentType, body, fields) => {
    expect(JSON.parse(readable(body, { contentType }).text)).toEqual(fields);
  });

  test.each<[string, string, string]>([
    ['no boundary', 'multipart/form-data', form('x', part('name="a"', '1'))],
    ['another boundary', 'multipart/form-data; boundary=y', form('x', part('name="a"', '1'))],
    ['a form that is cut off', 'multipart/form-data; boundary=x', form('x', part('name="a"', '1')).slice(0, -9)],
    [
      'too many parts',
      'multipart/form-data; boundary=x',
      form('x', ...Array.from({ length: readableLimits.fields + 1 }, () => part('name=a', ''))),
    ],
  ])('%s: it has none', (_what, contentType, body) => {
    expect(readable(body, { contentType }).text).toBe(body);
  });
});

describe('a payload of another charset is read as text', () => {
  const text = '{"name":"Müller, 5 €"}';
  const windows1252 = Buffer.from([...text].map((char) => (char === '€' ? 0x80 : char.charCodeAt(0))));
  const utf16 = Buffer.from(text, 'utf16le');
  const utf16be = Buffer.from(utf16).swap16();
  test.each<[string, string, Buffer]>([
    ['a charset of one byte', 'application/json; charset=windows-1252', windows1252],
    ['its alias, quoted', 'application/json;CharSet="ISO-8859-1"', windows1252],
    ['UTF-8 that is called something else', 'application/json; charset=ISO-8859-1', Buffer.from(text)],
    ['an unknown charset', 'application/json; charset=x-unknown', Buffer.from(text)],
    ['UTF-16 with its mark', 'application/json', Buffer.concat([Buffer.from([0xff, 0xfe]), utf16])],
    ['UTF-16 of the other order with its mark', 'text/plain', Buffer.concat([Buffer.from([0xfe, 0xff]), utf16be])],
    ['UTF-16 by its name', 'application/json; charset=utf-16', utf16],
    ['UTF-16 of the other order by its name', 'application/json; charset=UTF-16BE', utf16be],
    ['UTF-16 of the other order under the common name', 'application/json; charset=utf-16', utf16be],
    ['UTF-8 that is called UTF-16', 'application/json; charset=utf-16', Buffer.from(text)],
  ])('%s', (_what, contentType, body) => {
    const { bytes, problem } = readablePayload(body, { contentType, contentEncoding: '' });
    expect({ text: bytes.toString(), problem }).toEqual({ text, problem: null });
    if (body.equals(Buffer.from(text))) expect(bytes).toBe(body);
  });

  test('a payload of another charset is read as text also behind a content coding', () => {
    expect(readable(gzipSync(windows1252), { contentType: 'text/plain; charset=windows-1252', contentEncoding: 'gzip' }).text).toBe(text);
  });

  test.each<[string, string, unknown]>([
    [`${urlEncoded}; charset=iso-8859-1`, 'name=M%FCller+%26+Co%&a', { name: 'Müller & Co%', a: '' }],
    [`${urlEncoded}; charset=iso-8859-1`, 'name=M%C3%BCller&other=%fc&name=%2b+', { name: ['Müller', '+ '], other: 'ü' }],
    [`${urlEncoded};charset=Shift_JIS`, 'name=%93%FA%96%7B', { name: '日本' }],
    [urlEncoded, 'name=M%FCller&charset=windows-1252', { name: 'Müller', charset: 'windows-1252' }],
    [urlEncoded, '_charset_=iso-8859-1&name=M%FCller', { name: 'Müller', _charset_: 'iso-8859-1' }],
    [urlEncoded, 'charset=UTF-8&name=M%C3%BCller', { name: 'Müller', charset: 'UTF-8' }],
  ])('a form of type %s: %s', (contentType, body, fields) => {
    expect(JSON.parse(readable(body, { contentType }).text)).toEqual(fields);
  });

  test('a multipart form, by the type of each part or of the whole', () => {
    const body = (type: string): Buffer =>
      Buffer.from(`--x\r\nContent-Disposition: form-data; name="name"\r\n${type}\r\nMüller\r\n--x--\r\n`, 'latin1');
    const multipart = 'multipart/form-data; boundary=x';
    const inPart = readable(body('Content-Type: text/plain; charset=iso-8859-1\r\n'), { contentType: multipart });
    const inWhole = readable(body(''), { contentType: `${multipart}; charset=iso-8859-1` });
    expect([inPart.text, inWhole.text]).toEqual(['{"name":"Müller"}', '{"name":"Müller"}']);
  });

  test('one that would be larger than allowed in UTF-8 stays as it is, with the reason', () => {
    const body = Buffer.alloc(wholePayloadBytes, 0xfc);
    const read = readablePayload(body, { contentType: 'text/plain; charset=latin1', contentEncoding: '' });
    expect(read).toEqual({ bytes: body, problem: 'the payload has more than 1048576 bytes in UTF-8' });
  });
});

describe('a payload above 1 MiB is read as a small one, with the bound that is given', () => {
  const text = 'x'.repeat(3 * wholePayloadBytes);
  const large = Buffer.from(JSON.stringify({ a: text }));
  const part = `--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n${text}\r\n--x--\r\n`;
  test.each<[string, string, string, Buffer]>([
    ['JSON', '', 'application/json', large],
    ['JSON that a proxy has decompressed', 'gzip', 'application/json', large],
    ['gzip', 'gzip', 'application/json', gzipSync(large, { level: 0 })],
    ['deflate', 'deflate', 'application/json', deflateSync(large, { level: 0 })],
    ['deflate without its head', 'deflate', 'application/json', deflateRawSync(large, { level: 0 })],
    ['br', 'br', 'application/json', brotliCompressSync(large, { params: { [constants.BROTLI_PARAM_QUALITY]: 0 } })],
    ['zstd', 'zstd', 'application/json', zstdCompressSync(large)],
    ['a form', '', urlEncoded, Buffer.from(`a=${text}`)],
    ['a form in two codings', 'gzip, br', urlEncoded, brotliCompressSync(gzipSync(`a=${text}`, { level: 0 }))],
    ['a form with JSON in its field payload', '', urlEncoded, Buffer.from(`payload=${encodeURIComponent(large.toString())}`)],
    ['a multipart form', '', 'multipart/form-data; boundary=x', Buffer.from(part)],
  ])('%s', (_what, contentEncoding, contentType, payload) => {
    const { bytes, problem } = readablePayload(payload, { contentEncoding, contentType }, 4 * wholePayloadBytes);
    expect(problem).toBeNull();
    expect(JSON.parse(bytes.toString()).a === text).toBe(true);
  });

  test.each<[string, Buffer]>([
    ['gzip', gzipSync(large)],
    ['deflate', deflateSync(large)],
    ['br', brotliCompressSync(large)],
    ['zstd', zstdCompressSync(large)],
    ['gzip, gzip', gzipSync(gzipSync(large))],
  ])('%s that is larger than that stays as it is', (contentEncoding, payload) => {
    const read = readablePayload(payload, { contentEncoding, contentType: 'application/json' }, 2 * wholePayloadBytes);
    expect(read).toEqual({ bytes: payload, problem: expect.stringMatching(/more than 2097152 bytes/), isTooLarge: true });
  });
});
