import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  readyTemplates,
  type TemplatedMessage,
  type TemplateKind,
  templatedHeaders,
  templateLimits,
  templatePattern,
  templateProblem,
} from './header-template.ts';

const { valueLength, totalLength, payloadBytes, placeholders } = templateLimits;

function message(payload: unknown, changes: Partial<TemplatedMessage> = {}): TemplatedMessage {
  return {
    eventId: 'evt_a',
    messageId: 'msg_a',
    attempt: 2,
    source: 'shop',
    receivedAtMs: Date.parse('2026-01-31T12:00:00.250Z'),
    contentType: 'application/json',
    headers: [
      ['x-topic', 'paid'],
      ['x-tag', 'a'],
      ['x-tag', 'b'],
    ],
    payload: Buffer.isBuffer(payload) ? payload : Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload)),
    ...changes,
  };
}

function value(template: string, payload: unknown = {}, changes: Partial<TemplatedMessage> = {}): string | undefined {
  const ready = readyTemplates([{ name: 'X-A', template }], {
    route: 'orders',
    destination: 'erp',
    application: 'app_a',
    endpoint: 'ep_a',
  });
  return new Map(templatedHeaders(ready, message(payload, changes))).get('x-a');
}

test.each<[string, TemplateKind, RegExp | null]>([
  ['plain text', 'destination', null],
  ['{', 'destination', null],
  ['a { b } c }} {d', 'destination', null],
  ['{"id":"{{ event.id }}","n":{"a":{{attempt}}}}', 'destination', null],
  ['{{event.id}}{{   message.id }}{{ attempt   }}', 'destination', null],
  ['{{ timestamp }} {{ source }} {{ route }} {{ destination }}', 'destination', null],
  ['{{ event.type }} {{ application }} {{ endpoint }}', 'endpoint', null],
  ['{{ headers.X-Topic }} {{ headers.idempotency-key }} {{ headers.x_a.b }}', 'destination', null],
  ['{{ payload }}', 'endpoint', null],
  [`{{ payload.a.0.b[1][-1]['x.y "z"']["it's"].$c@d:e/f-g }}`, 'endpoint', null],
  ['{{ payload.__proto__.constructor }}', 'endpoint', null],
  ['{{ event.id }}'.repeat(placeholders), 'endpoint', null],
  ['', 'endpoint', null],
  ['{{ event.id }}'.repeat(placeholders + 1), 'endpoint', /at most 10 placeholders/],
  [`{{${' '.repeat(1022)}`, 'endpoint', /not closed/],
  ['x'.repeat(1025), 'endpoint', /at most 1024 characters/],
  ['Größe', 'destination', /printable ASCII/],
  ['a\r\nb: c', 'destination', /printable ASCII/],
  ['tab\t', 'destination', /printable ASCII/],
  ['{{ event.id', 'destination', /not closed/],
  ['{{ event.id }', 'destination', /not closed/],
  ['{{', 'destination', /not closed/],
  ['{{{ event.id }}', 'destination', /not closed/],
  ['{{ a {{ event.id }}', 'destination', /not closed/],
  ['{{}}', 'destination', /unknown path ""/],
  ['{{ event }}', 'destination', /unknown path "event": known are event.id/],
  ['{{ Event.Id }}', 'destination', /unknown path/],
  ['{{ eventXid }}', 'destination', /unknown path/],
  ['{{ event.type }}', 'destination', /unknown path/],
  ['{{ application }}', 'destination', /unknown path/],
  ['{{ source }}', 'endpoint', /unknown path/],
  ['{{ route }}', 'endpoint', /unknown path/],
  ['{{ headers.x-topic }}', 'endpoint', /unknown path/],
  ['{{ headers }}', 'destination', /unknown path/],
  ['{{ headers. }}', 'destination', /unknown path/],
  ["{{ headers['x-a'] }}", 'destination', /unknown path/],
  ['{{ payloads }}', 'destination', /unknown path/],
  ['{{ payload. }}', 'destination', /unknown path/],
  ['{{ payload..a }}', 'destination', /unknown path/],
  ['{{ payload.a b }}', 'destination', /unknown path/],
  ['{{ payload.* }}', 'destination', /unknown path/],
  ['{{ payload[01] }}', 'destination', /unknown path/],
  ['{{ payload[a] }}', 'destination', /unknown path/],
  ['{{ payload | upcase }}', 'destination', /unknown path/],
  ['{{ env.HOME }}', 'destination', /unknown path/],
  ['{{ constructor }}', 'destination', /unknown path/],
  ['{{ headers.Authorization }}', 'destination', /must not take the header authorization/],
  ['{{ headers.x-a }} {{ headers.cookie }}', 'destination', /must not take the header cookie/],
  ['{{ headers.X-Api-Key }}', 'destination', /must not take/],
  ['{{ headers.x_gitlab.token }}', 'destination', /must not take/],
  ['{{ headers.Webhook-Signature }}', 'destination', /must not take/],
])('the template %j of a header of kind %s has the problem %s', (template, kind, problem) => {
  const found = templateProblem(template, kind);
  if (problem === null) expect(found).toBeNull();
  else expect(found).toMatch(problem);
});

describe('a placeholder', () => {
  const payload = {
    order: { id: 'o-1', total: 12.5, paid: true, open: false, note: null, lines: [{ sku: 'a' }, { sku: 'b', tags: ['x', ['y', 'z']] }] },
    'a.b': { '0': 'zero' },
    big: 'x',
  };
  test.each<[string, string | undefined]>([
    ['{{ event.id }} {{message.id}}', 'evt_a msg_a'],
    ['{{ event.type }}/{{ source }}', 'shop/shop'],
    ['{{ attempt }}', '2'],
    ['{{ timestamp }}', '2026-01-31T12:00:00.250Z'],
    ['{{ route }}>{{ destination }}', 'orders>erp'],
    ['{{ application }}>{{ endpoint }}', 'app_a>ep_a'],
    ['{{ headers.X-Topic }} {{ headers.x-tag }}', 'paid a, b'],
    ['{{ headers.x-absent }}', undefined],
    ['{{ headers.constructor }}', undefined],
    ['order {{ payload.order.id }}', 'order o-1'],
    ['{{ payload.order.total }}', '12.5'],
    ['{{ payload.order.paid }}{{ payload.order.open }}', 'truefalse'],
    ['{{ payload.order.note }}', undefined],
    ['{{ payload.order }}', undefined],
    ['{{ payload.order.lines }}', undefined],
    ['{{ payload }}', undefined],
    ['{{ payload.order.lines.0.sku }}{{ payload.order.lines[1].sku }}{{ payload.order.lines[-1].tags[1][0] }}', 'aby'],
    ['{{ payload.order.lines.7.sku }}', undefined],
    ['{{ payload.order.lines.length }}', undefined],
    [`{{ payload['a.b'].0 }}{{ payload["a.b"]['0'] }}`, 'zerozero'],
    ['{{ payload.order.id.length }}', undefined],
    ['{{ payload.__proto__ }}{{ payload.constructor.name }}{{ payload.order.__proto__.x }}', undefined],
    ['{{ payload.absent }}-', '-'],
    [' {{ payload.absent }} {{ payload.absent }} ', undefined],
    ['  {{ payload.order.id }}  ', 'o-1'],
    ['{{ unknown.to.this.release }}', undefined],
    ['{ "id": "{{ payload.order.id }}" }}', '{ "id": "o-1" }}'],
  ])('%s is %j', (template, expected) => {
    expect(value(template, payload)).toBe(expected);
  });

  test.each<[string, unknown, string | undefined]>([
    ['a name of the prototype that the payload has', '{"a": {"__proto__": {"constructor": "c"}}}', 'c'],
    [
      'a number of more digits than a double has',
      '{"a": {"__proto__": {"constructor": 12345678901234567890.10}}}',
      '12345678901234567890.10',
    ],
    ['a text that is no JSON', 'a=b&', undefined],
    ['bytes', Buffer.from([0, 255, 13, 10]), undefined],
    ['no payload', '', undefined],
  ])('reads of %s what is there', (_, sent, expected) => {
    expect(value('{{ payload.a.__proto__.constructor }}', sent)).toBe(expected);
  });

  test.each<[string, string, string]>([
    ['line breaks', 'a\r\nX-Evil: 1', 'a%0D%0AX-Evil: 1'],
    ['other control characters', '\0\t\x1b\x7f\x85', '%00%09%1B%7F%C2%85'],
    ['letters beyond ASCII', 'Größe €', 'Gr%C3%B6%C3%9Fe %E2%82%AC'],
    ['an emoji', '😀', '%F0%9F%98%80'],
    ['half an emoji', 'a\ud83d', 'a%EF%BF%BD'],
    ['a percent sign', '50% off', '50%25 off'],
    ['separators of lines of Unicode', '\u2028\u2029', '%E2%80%A8%E2%80%A9'],
    ['a placeholder', '{{ event.id }}', '{{ event.id }}'],
  ])('a placeholder is percent-encoded where it has %s', (_, sent, expected) => {
    expect(value('{{ payload.a }}', { a: sent })).toBe(expected);
    expect(value('{{ headers.x-a }}', {}, { headers: [['x-a', sent]] })).toBe(expected);
  });

  test('a placeholder takes the payload as filters read it: decompressed, and of a form its fields', () => {
    const gzip = { headers: [['content-encoding', 'gzip']] as [string, string][] };
    expect(value('{{ payload.a }}', gzipSync('{"a": 1}'), gzip)).toBe('1');
    expect(value('{{ payload.a }}', 'a=1+2', { contentType: 'application/x-www-form-urlencoded' })).toBe('1 2');
  });

  test(`a placeholder has no value of a payload above ${payloadBytes} bytes, sent or decompressed`, () => {
    const sized = (bytes: number) => `{"a":1,"b":"${'x'.repeat(bytes - 14)}"}`.slice(0, bytes);
    const fits = sized(payloadBytes);
    expect(fits.length).toBe(payloadBytes);
    expect(value('{{ payload.a }}', fits)).toBe('1');
    expect(value('{{ payload.a }}', `${fits} `)).toBeUndefined();
    expect(value('{{ payload.a }}', gzipSync(`${fits} `), { headers: [['content-encoding', 'gzip']] })).toBeUndefined();
  });
});

test('a value that is too long is left out, and does not count for those behind it', () => {
  expect(value('{{ payload }}', JSON.stringify('x'.repeat(valueLength)))?.length).toBe(valueLength);
  expect(value('{{ payload }}', JSON.stringify('x'.repeat(valueLength + 1)))).toBeUndefined();
  expect(value('-{{ payload }}', JSON.stringify('x'.repeat(valueLength)))).toBeUndefined();
  // As it is encoded.
  expect(value('{{ payload }}', JSON.stringify('\n'.repeat(valueLength / 3 + 1)))).toBeUndefined();
  expect(value('{{ payload.a }}', `{"a": 1${'0'.repeat(valueLength)}}`)).toBeUndefined();
});

test(`headers are left out from the one that makes them longer than ${totalLength} characters together`, () => {
  const templates = ['{{ payload }}', '{{ payload }}', '{{ payload }}', 'short'].map((template, i) => ({ name: `X-${i}`, template }));
  const long = JSON.stringify('x'.repeat(totalLength / 2 - 3));
  expect(templatedHeaders(readyTemplates(templates, {}), message(long)).map(([name]) => name)).toEqual(['x-0', 'x-1']);
});

test('the payload is read once for all templates, and not when no placeholder needs it', () => {
  let reads = 0;
  const counted = (templates: string[]): number => {
    reads = 0;
    const sent = message({ a: 1 });
    const ready = readyTemplates(
      templates.map((template, i) => ({ name: `x-${i}`, template })),
      {},
    );
    templatedHeaders(ready, {
      ...sent,
      get payload() {
        reads++;
        return sent.payload;
      },
    });
    return reads;
  };
  expect(counted(['{{ event.id }}', 'text', '{{ headers.x-topic }}'])).toBe(0);
  const once = counted(['{{ payload.a }}']);
  expect(once).toBeGreaterThan(0);
  expect(counted(['{{ payload.a }} {{ payload.b }}', '{{ payload.c }}'])).toBe(once);
});

describe('whatever comes', () => {
  const anything = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.string({ unit: 'grapheme', maxLength: 60 }),
    fc.constant('\r\nx: y'),
  );
  const known = ['event.id', 'message.id', 'source', 'payload', 'payload.a', 'payload.b[0]', 'payload.__proto__', 'headers.x-a', 'attempt'];
  const piece = fc.oneof(
    fc.constantFrom(...known).map((path) => `{{ ${path} }}`),
    fc.string({ unit: fc.constantFrom(...' {}%aA:;,"\\~'), maxLength: 8 }),
  );
  const template = fc.array(piece, { minLength: 1, maxLength: 8 }).map((pieces) => pieces.join(''));

  test('a value breaks no header: it is printable ASCII without spaces at its ends, and not too long', () => {
    const sent = fc.record({ a: anything, b: fc.array(anything), rest: fc.jsonValue() });
    const property = fc.property(template, sent, anything, fc.boolean(), (text, body, other, isJson) => {
      const found = value(text, isJson ? body : Buffer.from(other), {
        eventId: other,
        messageId: other,
        source: other,
        contentType: other,
        headers: [['x-a', other]],
      });
      if (found === undefined) return;
      expect(found).toMatch(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/);
      expect(found.length).toBeLessThanOrEqual(valueLength);
    });
    fc.assert(property, { numRuns: 3000 });
  });

  test('what a placeholder represents comes back by decodeURIComponent', () => {
    fc.assert(
      fc.property(anything, (sent) => {
        const found = value('-{{ payload.a }}-', { a: sent });
        expect(decodeURIComponent(found ?? '')).toBe(`-${sent.toWellFormed()}-`);
      }),
    );
  });

  test('a template has no problem with its form exactly if the pattern of the CRD takes it', () => {
    const any = fc.oneof(template, fc.string({ unit: 'grapheme' }), fc.string({ unit: fc.constantFrom(...'{} .payload[0]') }));
    const pattern = new RegExp(templatePattern('destination'));
    fc.assert(
      fc.property(any, (text) => {
        const found = text.split('{{').length - 1;
        const isRefused = templateProblem(text, 'destination') !== null;
        expect(isRefused).toBe(!pattern.test(text) || found > placeholders || text.length > templateLimits.length);
      }),
      { numRuns: 3000 },
    );
  });
});
