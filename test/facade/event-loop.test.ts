import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newEvent } from '../support/new-event.ts';
import { expectShortTurns } from '../support/short-work.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { costlyFilter, subscribe } from './subscribed.ts';

/** No input of one caller may hold up all others for longer. */
const goalMs = 100;
let world: FacadeWorld;

beforeAll(async () => {
  world = await startFacadeWorld();
  // What is loaded and compiled with the first requests is not the work of a request.
  const body = { destinations: [{ name: 'Warm', headers: { a: 'b' } }], conflictStrategy: 'skip', validateOnly: true };
  for (let i = 0; i < 20; i++)
    await world.request('POST', '/api/destinations/import', { body, headers: { 'idempotency-key': `warm-${i}` } });
});
afterAll(() => world?.stop());

const members = (count: number, value: unknown = 1): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`unknown${i}`, value]));
const badHeaders = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`bad header ${i}`, 'x']));
const list = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
/** Each is written with 18 letters. */
const ligatures = (count: number): string => '\ufdfa'.repeat(count);
const imported = (destinations: unknown[]): object => ({ destinations, conflictStrategy: 'skip', validateOnly: true });
const routesOf = (routes: unknown[]): object => ({ routes, conflictStrategy: 'rename', validateOnly: true });
const condition = { field: 'payload.a', operator: 'equals', value: 1 };
const written = (value: string): object => ({ field: 'payload.a', operator: 'matches', value });
const wide = Buffer.from(JSON.stringify(imported([members(450_000)])));

const inputs: [what: string, path: string, body: object | Buffer, status: number][] = [
  ['an import of a record with 450,000 unknown fields', '/destinations/import', wide, 400],
  ['an import of 1,000 records with 550 unknown fields', '/destinations/import', imported(list(1000, members(550))), 200],
  [
    'an import of 1,000 records with 100 bad headers',
    '/destinations/import',
    imported(list(1000, { name: 'x', headers: badHeaders(100) })),
    200,
  ],
  [
    'an import of 1,000 records with large bad settings',
    '/destinations/import',
    imported(list(1000, { name: 'x', retryPolicy: members(300) })),
    200,
  ],
  ['an import with 300,000 unknown fields beside its records', '/destinations/import', { ...members(300_000), ...imported([]) }, 400],
  [
    'an import of 2,000,000 records',
    '/destinations/import',
    Buffer.from(`{"destinations":[${list(2_000_000, '{}').join(',')}],"conflictStrategy":"skip"}`),
    400,
  ],
  ['an import of 8 MB of nothing', '/destinations/import', Buffer.alloc(8 * 1024 * 1024, ' '), 400],
  ['an import that is nested 4,000,000 times', '/destinations/import', Buffer.from('[{"a":'.repeat(1_300_000)), 400],
  [
    'an import of 1,000 routes with 100 bad conditions',
    '/routes/import',
    routesOf(list(1000, { name: 'x', filterConditions: list(100, { a: 1 }) })),
    400,
  ],
  [
    'an import of a route with 300,000 destinations',
    '/routes/import',
    routesOf([{ name: 'x', sourceSlug: 's', destinationSlugs: list(300_000, 'Bad slug') }]),
    400,
  ],
  [
    'an import of 1,000 routes of nothing that is there',
    '/routes/import',
    routesOf(list(1000, { name: 'x', sourceSlug: 's', destinationSlugs: list(10, 'd') })),
    200,
  ],
  ['an import of a record with a name of 8 MB of ligatures', '/destinations/import', imported([{ name: ligatures(2_790_000) }]), 200],
  [
    'an import of 1,000 records with names of ligatures',
    '/destinations/import',
    imported(list(1000, 0).map((_, i) => ({ name: `${ligatures(396)}${i}` }))),
    200,
  ],
  ['an event with 2 MB of quotes', '/send-event', { eventType: 'none', payload: '"'.repeat(1_040_000) }, 404],
  ['events with 8 MB of quotes', '/send-events', { events: [{ eventType: 'none', payload: '"'.repeat(4_190_000) }] }, 201],
  ['events with 8 MB of short texts', '/send-events', { events: list(100, { eventType: 'none', payload: list(16_000, '"') }) }, 201],
  ['60,000 unknown fields', '/sources', members(60_000), 400],
  ['unknown fields with long names', '/sources', Object.fromEntries(list(50, 0).map((_, i) => [`${i}${'x'.repeat(18_000)}`, 1])), 400],
  ['30,000 bad headers', '/destinations', { name: 'x', headers: badHeaders(30_000) }, 400],
  ['30,000 bad headers of a cron job', '/cron', { name: 'x', headers: badHeaders(30_000) }, 400],
  ['40,000 bad conditions', '/filters', { name: 'x', conditions: list(40_000, { fiel: 1 }) }, 400],
  ['a filter with patterns of long repetitions', '/filters', { name: 'x', conditions: list(50, written('a{1000}'.repeat(142))) }, 400],
  ['a filter with patterns of 40,000 instructions', '/filters', { name: 'x', conditions: [written('a{1000}'.repeat(40))] }, 400],
  ['1,000 conditions with 50 unknown fields', '/filters', { name: 'x', conditions: list(1000, members(50)) }, 400],
  ['100,000 bad addresses', '/sources', { name: 'x', ipAllowlist: list(100_000, 'bad') }, 400],
  ['a channel with 60,000 unknown settings', '/notification-channels', { name: 'x', type: 'slack', config: members(60_000) }, 400],
  ['a channel with 15,000 unknown settings', '/notification-channels', { name: 'x', type: 'slack', config: members(15_000) }, 400],
  ['an import of a record with 19,000 unknown fields', '/destinations/import', imported([members(19_000)]), 200],
  ['an application with 60,000 metadata', '/webhook-applications', { name: 'x', metadata: members(60_000) }, 400],
  ['a schema with 60,000 unknown keywords', '/schemas', { name: 'x', jsonSchema: members(60_000) }, 400],
  ['a filter that is tried on 50,000 members', '/filters/test', { conditions: [condition], payload: members(50_000) }, 200],
  ['a filter that is tried on 300,000 empty lists', '/filters/test', { conditions: [condition], payload: list(300_000, []) }, 200],
  [
    'an expression that is tried on 50,000 members',
    '/webhook-subscriptions/test',
    { filterExpression: 'event.data.unknown1 == 2', payload: members(50_000) },
    200,
  ],
  [
    'an expression at its bound that is tried',
    '/webhook-subscriptions/test',
    { filterExpression: costlyFilter(0), payload: { a: list(1000, 1), b: 'x'.repeat(5500) } },
    200,
  ],
  ['a schema that is tried on 50,000 members', '/schemas/test', { jsonSchema: { maxProperties: 1 }, payload: members(50_000) }, 200],
  ['a schema with 60,000 unknown keywords that is tried', '/schemas/test', { jsonSchema: members(60_000), payload: 1 }, 400],
  ['100 events with 8 MB of members', '/send-events', { events: list(100, { eventType: 'none', payload: members(5000) }) }, 201],
  ['an event with 100,000 members', '/send-event', { eventType: 'none', payload: members(100_000) }, 400],
  ['an event with 1.5 MB of members', '/send-event', { eventType: 'none', payload: list(2, members(45_000)) }, 404],
  ['an event with 600,000 empty lists', '/send-event', { eventType: 'none', payload: list(600_000, []) }, 404],
  ['an event with 60,000 labels', '/send-event', { eventType: 'none', payload: {}, labels: members(60_000, 'x') }, 400],
];

test.each(inputs)('No turn of the event loop is long for %s', async (_what, path, body, status) => {
  const rawBody = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const statuses: number[] = [];
  const texts: string[] = [];
  const send = async (headers: Record<string, string>): Promise<void> => {
    const answer = await world.request('POST', `/api${path}`, { rawBody, headers });
    statuses.push(answer.status);
    texts.push(answer.text.slice(0, 300));
  };
  await expectShortTurns(goalMs, () => send({}));
  await expectShortTurns(goalMs, () => send({ 'idempotency-key': `key-${Math.random()}` }));
  expect([[...new Set(statuses)], texts[0]]).toEqual([[status], texts[0]]);
});

test('a key whose requests keep the event loop busy leaves turns to another key of its organization', async () => {
  const rawBody = Buffer.from(JSON.stringify({ conditions: [condition], payload: members(50_000) }));
  const other = await world.addKey('acme');
  const order: string[] = [];
  const send = async (name: string, key: string): Promise<void> => {
    await world.request('POST', '/api/filters/test', { rawBody, key });
    order.push(name);
  };
  await Promise.all([...list(12, 'busy').map((name) => send(name, world.admin)), send('other', other)]);
  expect(order[0]).toBe('other');
});

test('No turn of the event loop is long for events for 250 subscriptions with filters at their bound', async () => {
  await subscribe(
    world,
    'costly.made',
    Array.from({ length: 250 }, (_, i) => costlyFilter(i)),
  );
  const body = { eventType: 'costly.made', payload: { a: list(1000, 1), b: 'x'.repeat(5500) } };
  const send = () => world.request('POST', '/api/send-event', { body });
  await send();
  let statuses: number[] = [];
  await expectShortTurns(goalMs, async () => {
    statuses = (await Promise.all([send(), send(), send(), send()])).map(({ status }) => status);
  });
  expect(statuses).toEqual([201, 201, 201, 201]);
});

test('No turn of the event loop is long for an event of 1 MB with a filter', async () => {
  await subscribe(world, 'wide.made', ['event.data.unknown1 == 2']);
  const rawBody = Buffer.from(JSON.stringify({ eventType: 'wide.made', payload: { ...members(28_000), more: members(28_000) } }));
  await expectShortTurns(goalMs, async () => {
    expect((await world.request('POST', '/api/send-event', { rawBody })).status).toBe(201);
  });
});

test('No turn of the event loop is long for a search of compressed payloads and forms of 1 MB', async () => {
  const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const text = JSON.stringify({ ...members(28_000), more: members(28_000) });
  const form = 'application/x-www-form-urlencoded; charset=iso-8859-1';
  const stored: [contentType: string, coding: string, payload: Buffer][] = [
    ['application/json', 'br', brotliCompressSync(text)],
    ['application/json', 'gzip, gzip', gzipSync(gzipSync(text))],
    ['application/json', 'deflate', deflateSync(Buffer.alloc(100 * 1_048_576))],
    ['application/json; charset=utf-16le', '', Buffer.from(text.slice(0, 500_000), 'utf16le')],
    [form, '', Buffer.from(list(4999, `a=${'%E4+'.repeat(50)}`).join('&'))],
  ];
  for (const [contentType, coding, payload] of stored) {
    const headers: [string, string][] = coding === '' ? [] : [['content-encoding', coding]];
    for (let i = 0; i < 5; i++) await world.acceptor.accept(newEvent({ org, payload, contentType, headers, destinations: [] }));
  }
  const query = `where=${encodeURIComponent('event.data.unknown27999 == 1.0')}&limit=100`;
  await expectShortTurns(goalMs, async () => {
    let found = 0;
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { status, body }: { status: number; body: { data: unknown[]; pagination: { nextCursor: string | null } } } =
        await world.request('GET', `/api/events?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`);
      expect(status).toBe(200);
      found += body.data.length;
      cursor = body.pagination.nextCursor;
    }
    expect(found).toBe(10);
  });
});

test('A request counts once more for each 64 KB of its body, and a small one once', async () => {
  await world.addOrganization('charged', 'free');
  const key = await world.addKey('charged');
  const remaining = async (payload: string): Promise<number> => {
    const { headers } = await world.request('POST', '/api/filters/test', { key, body: { conditions: [condition], payload } });
    return Number(headers.get('x-ratelimit-remaining'));
  };
  const before = await remaining('');
  expect(await remaining('')).toBe(before - 1);
  expect(await remaining('x'.repeat(10 * 64 * 1024))).toBe(before - 12);
});
