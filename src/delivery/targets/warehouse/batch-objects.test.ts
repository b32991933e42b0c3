import { describe, expect, test } from '@jest/globals';
import type { WarehouseLayout } from '../../../core/records.ts';
import { batchObjects, type WarehouseEvent } from './batch-objects.ts';

const receivedAtMs = Date.UTC(2026, 2, 1, 23, 59, 59, 999);
const event = (changes: Partial<WarehouseEvent> = {}): WarehouseEvent => ({
  eventId: 'evt_1',
  sourceSlug: 'shop',
  receivedAtMs,
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
const write = (events: WarehouseEvent[], changes: Partial<WarehouseLayout> = {}) =>
  batchObjects({ id: 'ULID', layout: layout(changes), events }, null);

describe('keys', () => {
  test.each<[Partial<WarehouseLayout>, string]>([
    [{}, 'date=2026-03-01/ULID.jsonl'],
    [{ partitionBy: 'hour' }, 'date=2026-03-01/hour=23/ULID.jsonl'],
    [{ partitionBy: 'source' }, 'date=2026-03-01/source=shop/ULID.jsonl'],
    [{ fileFormat: 'json' }, 'date=2026-03-01/ULID.json'],
    [{ prefix: 'raw/events' }, 'raw/events/date=2026-03-01/ULID.jsonl'],
    [{ prefix: '//raw/../events/./' }, 'raw/events/date=2026-03-01/ULID.jsonl'],
  ])('of %j', async (changes, key) => expect((await write([event()], changes)).map((object) => object.key)).toEqual([key]));

  test('one for each partition, records in their order', async () => {
    const events = [event({ eventId: 'a' }), event({ eventId: 'b', receivedAtMs: receivedAtMs + 1 }), event({ eventId: 'c' })];
    const objects = await write(events);
    expect(objects.map(({ key, body }) => [key, [...body.toString().matchAll(/"id":"(.)"/g)].map(([, id]) => id)])).toEqual([
      ['date=2026-03-01/ULID.jsonl', ['a', 'c']],
      ['date=2026-03-02/ULID.jsonl', ['b']],
    ]);
  });
});

describe('records', () => {
  test('say what came in', async () => {
    const [object] = await write([event()]);
    expect(object?.body.toString()).toBe(
      '{"id":"evt_1","source":"shop","receivedAt":"2026-03-01T23:59:59.999Z","headers":{"content-type":"application/json","x-tag":"a, b"},"payload":{"a":1}}\n',
    );
    expect(object?.contentType).toBe('application/x-ndjson');
  });

  test.each([
    ['{"n": 12345678901234567890.10}', '{"n": 12345678901234567890.10}'],
    ['{\n  "a": "x\\ny"\r\n}\n', '{   "a": "x\\ny" }'],
    ['a=1&b=2', '"a=1&b=2"'],
    ['', '""'],
    ['null', 'null'],
  ])('%j stands in them as %s', async (payload, text) => {
    const [object] = await write([event({ payload: Buffer.from(payload) })]);
    expect(object?.body.toString()).toContain(`"payload":${text}}\n`);
    expect(object?.body.toString().split('\n')).toHaveLength(2);
  });

  test('bytes that are no text stand in them in Base64', async () => {
    const [object] = await write([event({ payload: Buffer.from([0xff, 0xfe]) })]);
    expect(JSON.parse(object?.body.toString() ?? '').payload).toBe('//4=');
  });

  test('of format json are one array', async () => {
    const [object] = await write([event(), event({ eventId: 'evt_2' })], { fileFormat: 'json' });
    expect(JSON.parse(object?.body.toString() ?? '').map(({ id }: { id: string }) => id)).toEqual(['evt_1', 'evt_2']);
    expect(object?.contentType).toBe('application/json');
  });

  test('are the same bytes whenever they are written', async () => {
    const events = Array.from({ length: 200 }, (_, i) => event({ eventId: `evt_${i}` }));
    expect(await write(events)).toEqual(await write(events));
  });
});
