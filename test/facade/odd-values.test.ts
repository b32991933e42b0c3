import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

/** Values in the forms in which clients of all kinds write them. */
let world: FacadeWorld;
let application: { id: string };
beforeAll(async () => {
  world = await startFacadeWorld();
  ({ data: application } = await world.create('webhook-applications', { name: 'Caf\u00e9' }));
  await world.create('event-types', { name: 'order.paid' });
});
afterAll(() => world.stop());

const post = (path: string, rawBody: string) => world.request('POST', `/api/${path}`, { rawBody });

test.each([
  ['409.0', [409]],
  ['4.09e2', [409]],
  ['"2xx",404', ['2xx', 404]],
])('a status that may be a class, too, is written as any number: %s', async (sent, expected) => {
  const { body } = await post(
    'webhook-endpoints',
    `{"applicationId":"${application.id}","url":"https://a.example/","successStatusCodes":[${sent}]}`,
  );
  expect(body.data.successStatusCodes).toEqual(expected);
});

test.each([
  ['schemas', '{"name":"s","jsonSchema":"{\\"type\\":\\"object\\",\\"type\\":\\"array\\"}"}', /^jsonSchema: JSON that has type twice/],
  ['event-types', '{"name":"order.sent","schema":"{\\"a\\":{\\"b\\":1,\\"b\\":2}}"}', /^schema is JSON that has a.b twice/],
  [
    'cron',
    '{"name":"c","url":"https://a.example/","cronExpression":"0 0 1 1 *","headers":"{\\"x-a\\":\\"1\\",\\"x-a\\":\\"2\\"}"}',
    /^headers is JSON that has x-a twice/,
  ],
])('JSON as text in a body of %s has no repeated members', async (path, sent, message) => {
  const { status, body } = await post(path, sent);
  expect([status, body.message ?? body.error]).toEqual([400, expect.stringMatching(message)]);
});

test('a schema in text that was taken before comes back in its record, byte order mark and all', async () => {
  const { body } = await post('event-types', '{"name":"order.back","schema":"\\ufeff{\\"type\\":\\"object\\"}"}');
  const { schema, id } = body.data;
  const { status } = await world.request('PATCH', `/api/event-types/${id}`, { body: { schema, description: 'Back' } });
  expect(status).toBe(200);
});

test('headers of a cron job in text may have a byte order mark', async () => {
  const { status } = await post(
    'cron',
    '{"name":"marked","url":"https://a.example/","cronExpression":"0 0 1 1 *","headers":"\\ufeff{\\"x-a\\":\\"1\\"}"}',
  );
  expect(status).toBe(201);
});

test('idempotency keys that differ in half of a surrogate pair are different', async () => {
  const statuses: number[] = [];
  for (const key of ['k\\ud800', 'k\\udfff', 'k\\ufffd', 'k\\ud800'])
    statuses.push((await post('send-event', `{"eventType":"order.paid","payload":{},"idempotencyKey":"${key}"}`)).status);
  expect(statuses).toEqual([201, 201, 201, 200]);
});

test.each(['tomorrow', '2026-02-30T00:00:00Z', '2026-01-31T12:00:00'])('deliverAt %s is refused in words', async (deliverAt) => {
  const { status, body } = await post('send-event', JSON.stringify({ eventType: 'order.paid', payload: {}, deliverAt }));
  expect([status, body.details]).toEqual([400, { deliverAt: ['must be a time in ISO 8601 with an offset, such as 2026-01-31T12:00:00Z'] }]);
});

test.each(['2026-01-31T12:00:00+02:00', '2026-01-31T12:00:00.5+00:00'])(
  'the plus sign of %s in a query need not be encoded',
  async (time) => {
    expect((await world.request('GET', `/api/events?from=${time}`)).status).toBe(200);
  },
);

test.each(['webhook-applications', 'destinations'])('a search of %s finds a name whichever way its accents are written', async (list) => {
  if (list === 'destinations') await world.create(list, { name: 'Caf\u00e9', url: 'https://a.example/' });
  for (const search of ['caf\u00e9', 'CAFE\u0301'])
    expect((await world.request('GET', `/api/${list}?search=${encodeURIComponent(search)}`)).body.data).toHaveLength(1);
});

test.each([
  ['an empty body in chunks is none', '', '0\r\n\r\n', 200],
  ['a body in chunks without a type is refused', '', '2\r\n{}\r\n0\r\n\r\n', 415],
  ['a body in chunks of another type is refused', 'Content-Type: text/plain\r\n', '2\r\n{}\r\n0\r\n\r\n', 415],
])('%s', async (_, type, chunks, status) => {
  const source = await world.create('sources');
  const destination = await world.create('destinations', { url: 'https://a.example/' });
  const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id] });
  const socket = connect(Number(new URL(world.baseUrl).port), '127.0.0.1');
  socket.write(
    `POST /api/routes/${route.id}/reset-circuit HTTP/1.1\r\nHost: a\r\nx-api-key: ${world.admin}\r\n${type}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunks}`,
  );
  expect(await text(socket)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
});
