import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { largePayload, mebibyte } from '../support/large-payloads.ts';
import { newEvent } from '../support/new-event.ts';
import { expectShortTurns } from '../support/short-work.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let org: string;
beforeAll(async () => {
  world = await startFacadeWorld();
  org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
});
afterAll(() => world.stop());

async function accept(payload: Buffer, changes: Parameters<typeof newEvent>[0] = {}): Promise<string> {
  const event = newEvent({ org, payload, ...changes });
  await world.acceptor.accept(event);
  return event.id;
}
const download = (path: string) => fetch(`${world.baseUrl}${path}`, { headers: { authorization: `Bearer ${world.admin}` } });
const get = (path: string) => world.request('GET', `/api/${path}`);

test.each([
  ['text', Buffer.from('ä'.repeat(mebibyte)), 'ä'.repeat(32_768)],
  ['JSON', Buffer.from(JSON.stringify({ text: 'x'.repeat(2 * mebibyte) })), `{"text":"${'x'.repeat(65_536 - 9)}`],
])('an event shows the first 64 KiB of %s above 1 MiB as text, and reports it', async (_what, payload, shown) => {
  const id = await accept(payload);
  const { body } = await get(`events/${id}`);
  expect(body).toMatchObject({ size: payload.length, payloadEncoding: 'text', payloadTruncated: true });
  expect(body.payload === shown).toBe(true);
  const listed = (await get('events')).body.data.find((each: { id: string }) => each.id === id);
  expect(listed).toMatchObject({ size: payload.length });
  expect(listed).not.toHaveProperty('payload');
});

test('an event shows the first 64 KiB of other bytes above 1 MiB in Base64', async () => {
  const payload = largePayload();
  const { body } = await get(`events/${await accept(payload)}`);
  expect(body).toMatchObject({ payloadEncoding: 'base64', payloadTruncated: true });
  expect(Buffer.from(body.payload, 'base64').equals(payload.subarray(0, 65_536))).toBe(true);
});

test('an event shows all of a payload of up to 1 MiB', async () => {
  const { body } = await get(`events/${await accept(Buffer.from('{"a":1}'))}`);
  expect(body).toMatchObject({ payload: { a: 1 }, payloadEncoding: 'json' });
  expect(body).not.toHaveProperty('payloadTruncated');
});

test.each([7, mebibyte, mebibyte + 1, 25 * mebibyte])(
  'the payload of an event of %i bytes is downloaded as it was received',
  async (bytes) => {
    const payload = largePayload(bytes);
    const id = await accept(payload);
    const answer = await download(`/api/events/${id}/payload`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    expect(answer.headers.get('content-length')).toBe(String(bytes));
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(Buffer.from(await answer.arrayBuffer()).equals(payload)).toBe(true);
  },
);

test('the payload of an event that is not there, or is of another organization, is 404', async () => {
  const other = await accept(largePayload(), { org: 'org_other' });
  for (const id of [other, 'evt_00nothing', 'x'])
    expect((await get(`events/${id}/payload`)).body).toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
});

test('a download whose chunks go meanwhile is broken off, so that nobody takes it for whole', async () => {
  const id = await accept(largePayload(5 * mebibyte));
  for (const key of await world.redis.client.keys('test:{s0}:c:*:7')) await world.redis.client.del(key);
  const answer = await download(`/api/events/${id}/payload`);
  await expect(answer.arrayBuffer()).rejects.toThrow();
});

test('no turn of the event loop is long while a payload of 25 MiB is downloaded, or its event is shown', async () => {
  const id = await accept(largePayload(25 * mebibyte));
  await expectShortTurns(100, async () => {
    await get(`events/${id}`);
    const answer = await download(`/api/events/${id}/payload`);
    for await (const _ of answer.body ?? []);
  });
});
