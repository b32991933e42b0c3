import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let sourceId: string;
let first: string;
let other: string;
let made = 0;

beforeAll(async () => {
  world = await startFacadeWorld();
  sourceId = await create('sources', {});
});
afterAll(() => world.stop());
beforeEach(async () => {
  first = await create('destinations', { url: 'https://shop.example/' });
  other = await create('destinations', { url: 'https://spare.example/' });
});

const send = (method: string, path: string, body: object) => world.request(method, `/api/${path}`, { body });
async function create(path: string, body: object): Promise<string> {
  const { status, body: record, text } = await send('POST', path, { name: `n${++made}`, ...body });
  if (status !== 201) throw new Error(text);
  return record.id;
}
const newRoute = (body: object) => send('POST', 'routes', { name: `n${++made}`, sourceId, destinationIds: [first], ...body });

test('order is switched on and off, and shown', async () => {
  expect((await send('PATCH', `destinations/${first}`, { ordered: true })).body).toMatchObject({ ordered: true });
  expect((await world.request('GET', `/api/destinations/${first}`)).body).toMatchObject({ ordered: true });
  expect((await send('PATCH', `destinations/${first}`, { timeoutMs: 5000 })).body).toMatchObject({ ordered: true });
  expect((await send('PATCH', `destinations/${first}`, { ordered: false })).body).toMatchObject({ ordered: false });
});

test.each(['first', 'failover'])('a destination that is a %s destination of a route with failover is not made ordered', async (place) => {
  const { body: route } = await newRoute({ failoverDestinationIds: [other] });
  const id = place === 'first' ? first : other;
  const refused = await send('PATCH', `destinations/${id}`, { ordered: true });
  expect([refused.status, refused.body]).toMatchObject([
    400,
    { message: expect.stringContaining(`the route "${route.slug}" has failover`) },
  ]);
  expect((await send('PATCH', `routes/${route.id}`, { failoverDestinationIds: [] })).status).toBe(200);
  expect((await send('PATCH', `destinations/${id}`, { ordered: true })).status).toBe(200);
});

test.each(['first', 'failover'])('a route gets no failover whose %s destination is ordered', async (place) => {
  expect((await send('PATCH', `destinations/${place === 'first' ? first : other}`, { ordered: true })).status).toBe(200);
  const { status, body } = await newRoute({ failoverDestinationIds: [other] });
  expect([status, body.message]).toEqual([
    400,
    expect.stringMatching(/^failoverDestinationIds cannot be set: the destination ".+" is ordered/),
  ]);
  const { body: route } = await newRoute({});
  expect((await send('PATCH', `routes/${route.id}`, { failoverDestinationIds: [other] })).status).toBe(400);
  expect((await send('PATCH', `routes/${route.id}`, { priority: 3 })).status).toBe(200);
});

test('a warehouse has no order, and takes the default that clients send', async () => {
  const config = { bucket: 'acme-events', region: 'eu-central-1', accessKeyId: 'AKIA1', secretAccessKey: 'canary-s3-key' };
  const warehouse = (ordered: boolean) => send('POST', 'destinations', { name: `n${++made}`, type: 's3', config, ordered });
  expect(await warehouse(true)).toMatchObject({ status: 400, body: { message: 'ordered does not belong to type s3.' } });
  const { status, body } = await warehouse(false);
  expect([status, 'ordered' in body]).toEqual([201, false]);
});
