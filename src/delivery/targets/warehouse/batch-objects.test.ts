import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { readFieldMapping } from '../../../core/field-mapping.ts';
import { inOnePiece } from '../../../core/in-one-piece.ts';
import type { WarehouseLayout } from '../../../core/records.ts';
import { BatchObjects, maxBatchBytes, type WarehouseEvent } from './batch-objects.ts';
import type { StoredObject } from './object-writer.ts';

const receivedAtMs = Date.UTC(2026, 2, 1, 23, 59, 59, 999);
const event = (changes: Partial<WarehouseEvent> = {}): WarehouseEvent => ({
  eventId: 'evt_1',
  sourceSlug: 'shop',
  receivedAtMs,
  query: '',
  headers: [
    ['content-type', 'application/json'],
    ['x-tag', 'a'],
    ['x-tag', 'b'],
  ],
  payload: Buffer.from('{"a":1}'),
  ...changes,
});
const layout = (changes: Partial<WarehouseLayout> = {}): WarehouseLayout => ({
  prefix: '',
  fileFormat: 'jsonl',
  partitionBy: 'date',
  ...changes,
});
function write(events: WarehouseEvent[], changes: Partial<WarehouseLayout> = {}): StoredObject[] {
  const objects = new BatchObjects('ULID', layout(changes), null);
  for (const each of events) expect(inOnePiece(objects.add(each))).toBe('added');
  return objects.take();
}

describe('keys', () => {
  test.each<[Partial<WarehouseLayout>, string]>([
    [{}, 'date=2026-03-01/ULID.jsonl'],
    [{ partitionBy: 'hour' }, 'date=2026-03-01/hour=23/ULID.jsonl'],
    [{ partitionBy: 'source' }, 'date=2026-03-01/source=shop/ULID.jsonl'],
    [{ fileFormat: 'json' }, 'date=2026-03-01/ULID.json'],
    [{ prefix: 'raw/events' }, 'raw/events/date=2026-03-01/ULID.jsonl'],
    [{ prefix: '//raw/../events/./' }, 'raw/events/date=2026-03-01/ULID.jsonl'],
  ])('of %j follow its prefix, partition and format', (changes, key) =>
    expect(write([event()], changes).map((object) => object.key)).toEqual([key]),
  );

  test('are one for each partition, with records in their order', () => {
    const events = [event({ eventId: 'a' }), event({ eventId: 'b', receivedAtMs: receivedAtMs + 1 }), event({ eventId: 'c' })];
    const objects = write(events);
    expect(objects.map(({ key, body }) => [key, [...body.toString().matchAll(/"id":"(.)"/g)].map(([, id]) => id)])).toEqual([
      ['date=2026-03-01/ULID.jsonl', ['a', 'c']],
      ['date=2026-03-02/ULID.jsonl', ['b']],
    ]);
  });
});

describe('records', () => {
  test('say what came in', () => {
    const [object] = write([event()]);
    expect(object?.body.toString()).toBe(
      '{"id":"evt_1","source":"shop","receivedAt":"2026-03-01T23:59:59.999Z","headers":{"content-type":"application/json","x-tag":"a, b"},"payload":{"a":1}}\n',
    );
    expect(object?.contentType).toBe('application/x-ndjson');
  });

  test('the query of an event is a column where there is one, and a mapping finds its parameters', () => {
    const asked = event({ query: 'device=7&tag=a&tag=b%0A' });
    expect(write([asked]).map(({ body }) => JSON.parse(body.toString()).query)).toEqual([{ device: '7', tag: ['a', 'b\n'] }]);
    const { mapping = null } = readFieldMapping([
      { source: '$.query.device', target: 'device', type: 'number' },
      { source: '$.query.tag[1]', target: 'tag', type: 'string' },
    ]);
    const objects = new BatchObjects('ULID', layout(), mapping);
    for (const each of [asked, event()]) inOnePiece(objects.add(each));
    expect(objects.take().map(({ body }) => body.toString())).toEqual(['{"device":7,"tag":"b\\n"}\n{"device":null,"tag":null}\n']);
  });

  test.each([
    ['{"n": 12345678901234567890.10}', '{"n": 12345678901234567890.10}'],
    ['{\n  "a": "x\\ny"\r\n}\n', '{   "a": "x\\ny" }'],
    ['a=1&b=2', '"a=1&b=2"'],
    ['', '""'],
    ['null', 'null'],
    ['\ufeff{"id": 1}', '{"id": 1}'],
    ['\ufeffplain words', '"plain words"'],
  ])('%j is in them as %s', (payload, text) => {
    const [object] = write([event({ payload: Buffer.from(payload) })]);
    expect(object?.body.toString()).toContain(`"payload":${text}}\n`);
    expect(object?.body.toString().split('\n')).toHaveLength(2);
  });

  // Most of these read as JSON in Base64.
  test.each(['//4=', 'true', 'null', '1234', '1e10', '9999', '0000'])(
    'bytes that are no text are in them as the string %s, in Base64',
    (text) => {
      const [object] = write([event({ payload: Buffer.from(text, 'base64') })]);
      expect(JSON.parse(object?.body.toString() ?? '').payload).toBe(text);
    },
  );

  test('of format json are one array', () => {
    const [object] = write([event(), event({ eventId: 'evt_2' })], { fileFormat: 'json' });
    expect(JSON.parse(object?.body.toString() ?? '').map(({ id }: { id: string }) => id)).toEqual(['evt_1', 'evt_2']);
    expect(object?.contentType).toBe('application/json');
  });

  test('are the same bytes whenever they are written', () => {
    const events = Array.from({ length: 200 }, (_, i) => event({ eventId: `evt_${i}` }));
    expect(write(events)).toEqual(write(events));
  });
});

describe('a batch has at most 16 MiB', () => {
  const mapped = (source: string, columns = 1): BatchObjects => {
    const rules = Array.from({ length: columns }, (_, i) => ({ source, target: `c${i}`, type: 'json' as const }));
    return new BatchObjects('ULID', layout(), readFieldMapping(rules).mapping ?? null);
  };

  test('a record that does not fit is not added, and smaller ones still are', () => {
    const objects = new BatchObjects('ULID', layout(), null);
    const large = event({ payload: Buffer.from(JSON.stringify('x'.repeat(6 * 1024 * 1024))) });
    expect([
      inOnePiece(objects.add(large)),
      inOnePiece(objects.add(large)),
      inOnePiece(objects.add(large)),
      inOnePiece(objects.add(event())),
    ]).toEqual(['added', 'added', 'full', 'added']);
    expect(objects.take()[0]?.body.length).toBeLessThan(maxBatchBytes);
    expect([objects.isEmpty, inOnePiece(objects.add(large))]).toEqual([true, 'added']);
  });

  test('a record that is larger is unwritable, by many columns or by a path that finds nested values again and again', () => {
    const text = Buffer.from(JSON.stringify('x'.repeat(1_000_000)));
    expect(inOnePiece(mapped('$.payload', 10).add(event({ payload: text })))).toBe('added');
    expect(inOnePiece(mapped('$.payload', 20).add(event({ payload: text })))).toBe('unwritable');
    let nested: unknown = 'x'.repeat(500_000);
    for (let depth = 0; depth < 50; depth++) nested = [nested];
    expect(inOnePiece(mapped('$..*').add(event({ payload: Buffer.from(JSON.stringify(nested)) })))).toBe('unwritable');
  });

  test('an event for which a path of the mapping takes too long is costly, and others are added', () => {
    const objects = mapped('$..[?@.a > 1]');
    expect(inOnePiece(objects.add(event({ payload: Buffer.from(`[${'{},'.repeat(100_000)}0]`) })))).toBe('costly');
    expect(inOnePiece(objects.add(event({ payload: Buffer.from('[{"a":2}]') })))).toBe('added');
  });

  test.each(['{"id":"o-1"}', '\ufeff{"id":"o-1"}'])('a path leads into %j', (payload) => {
    const objects = mapped('$.payload.id');
    inOnePiece(objects.add(event({ payload: Buffer.from(payload) })));
    expect(objects.take()[0]?.body.toString()).toBe('{"c0":"o-1"}\n');
  });

  test.each<[string, [string, string][], Buffer]>([
    ['a form', [['content-type', 'application/x-www-form-urlencoded']], Buffer.from('id=o-1&b=2')],
    ['JSON in gzip', [['content-encoding', 'gzip']], gzipSync('{"id":"o-1"}')],
  ])('a path leads into %s', (_what, headers, payload) => {
    const objects = mapped('$.payload.id');
    inOnePiece(objects.add(event({ headers, payload })));
    expect(objects.take()[0]?.body.toString()).toBe('{"c0":"o-1"}\n');
  });

  test.each<[string, string, Buffer, RegExp]>([
    [
      'more than 1 MiB without its coding',
      'gzip',
      gzipSync(JSON.stringify({ id: 'x'.repeat(1_048_576) })),
      /more than 1048576 bytes without/,
    ],
    ['bytes that are not of its coding', 'gzip', Buffer.from('id'), /not valid gzip/],
    ['an unknown coding', 'compress', Buffer.from([31, 157]), /compress of the payload is unknown/],
  ])('a payload of %s is unreadable, and reports it, rather than a record without values', (_what, coding, payload, unreadable) => {
    const added = inOnePiece(mapped('$.payload.id').add(event({ headers: [['content-encoding', coding]], payload })));
    expect(added).toEqual({ unreadable: expect.stringMatching(unreadable) });
  });

  test('columns are in the order of the rules, arrays and all', () => {
    const rules = ['10', 'a', '2'].map((target, i) => ({
      source: ['$.payload.list', '$.payload.none', '$.id'][i] ?? '',
      target,
      type: 'json' as const,
    }));
    const objects = new BatchObjects('ULID', layout(), readFieldMapping(rules).mapping ?? null);
    inOnePiece(objects.add(event({ payload: Buffer.from('{"list":[1,[],{"b":"\\n"}]}') })));
    expect(objects.take()[0]?.body.toString()).toBe('{"10":[1,[],{"b":"\\n"}],"a":null,"2":"evt_1"}\n');
  });
});
