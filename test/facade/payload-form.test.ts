import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { maxTestPayloadBytes } from '../../src/core/payload-link.ts';
import { MemoryDirectory } from '../support/memory-directory.ts';
import { fetchLink, linkIn } from '../support/payload-links.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let applicationId: string;
let made = 0;
const ends: (() => Promise<unknown>)[] = [];
const url = 'https://shop.example/hooks';

beforeAll(async () => {
  world = await startFacadeWorld({ inForceTimeoutMs: 20_000 });
  applicationId = (await send('POST', 'webhook-applications', { name: 'Customer' })).body.data.id;
});
afterAll(() => world?.stop());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const send = (method: string, path: string, body?: object, request = world.request) => request(method, `/api/${path}`, { body });
const destination = (more: object, request = world.request) => send('POST', 'destinations', { name: `n${++made}`, url, ...more }, request);
const endpoint = (more: object, request = world.request) => send('POST', 'webhook-endpoints', { applicationId, url, ...more }, request);
async function receiver(): Promise<Receiver> {
  const started = await startReceiver((response, _, { body }) => response.end(`got ${body.toString()}`));
  ends.push(() => started.close());
  return started;
}

interface Shown {
  id: string;
  payloadForm: string;
}
type Body = Shown & { data: Shown };

describe.each([
  ['a destination', destination, 'destinations', (body: Body): Shown => body],
  ['an endpoint', endpoint, 'webhook-endpoints', ({ data }: Body): Shown => data],
] as const)('the payload form of %s', (_, create, path, of) => {
  test('is full by default, is set and changed, and stays when other fields change', async () => {
    expect(of((await create({})).body)).toMatchObject({ payloadForm: 'full' });
    const { id } = of((await create({ payloadForm: 'thin' })).body);
    const read = async () => of((await send('GET', `${path}/${id}`)).body).payloadForm;
    expect(await read()).toBe('thin');
    expect((await send('PATCH', `${path}/${id}`, { description: 'Orders' })).status).toBe(200);
    expect(await read()).toBe('thin');
    expect(of((await send('PATCH', `${path}/${id}`, { payloadForm: 'full' })).body)).toMatchObject({ payloadForm: 'full' });
    expect(await read()).toBe('full');
  });

  test.each(['link', '', null, true])('is not %j', async (payloadForm) => {
    expect((await create({ payloadForm })).status).toBe(400);
  });

  test('is not thin where the installation has no public address; what is thin already may be sent back', async () => {
    const { id } = of((await create({ payloadForm: 'thin' })).body);
    const without = await world.startReplica({ hasPublicUrl: false });
    const { status, body } = await create({ payloadForm: 'thin' }, without);
    expect([status, body.message]).toEqual([
      400,
      expect.stringMatching(/^payloadForm thin needs the public address .+ POSTHORN_PUBLIC_URL/),
    ]);
    expect((await create({ payloadForm: 'full' }, without)).status).toBe(201);
    expect((await send('PATCH', `${path}/${id}`, { payloadForm: 'thin', description: 'x' }, without)).status).toBe(200);
  });
});

test('a warehouse has no payload form, and takes the default that clients send', async () => {
  const config = { bucket: 'acme-events', region: 'eu-central-1', accessKeyId: 'AKIA1', secretAccessKey: 'canary-s3-key' };
  const warehouse = (payloadForm: string) => send('POST', 'destinations', { name: `n${++made}`, type: 's3', config, payloadForm });
  expect(await warehouse('thin')).toMatchObject({ status: 400, body: { message: 'payloadForm does not belong to type s3.' } });
  const { status, body } = await warehouse('full');
  expect([status, 'payloadForm' in body]).toEqual([201, false]);
});

describe('a test', () => {
  beforeAll(async () => {
    await world.startWorker({ webhooks: { ...new MemoryDirectory().sources(), allowsInsecureUrls: true } });
  });
  const thinEndpoint = async (to: Receiver) => {
    const { id } = (await endpoint({ payloadForm: 'thin' })).body.data;
    await world.webhooks.updateEndpoint(await world.organizationId('acme'), id, { url: to.url });
    return id;
  };

  test('a test of a thin destination has its payload behind the link; the answer does not repeat the link', async () => {
    const to = await receiver();
    const { id } = (await destination({ url: to.url, payloadForm: 'thin' })).body;
    const { body } = await send('POST', `destinations/${id}/test`, { payload: { order: 7 } });
    const [request] = await to.arrived(1);
    if (request === undefined) throw new Error('nothing arrived');
    expect(JSON.parse(request.body.toString())).toEqual({
      id: request.headers['webhook-id'],
      type: null,
      timestamp: expect.any(String),
      url: expect.stringContaining(`${world.baseUrl}/api/payload?token=`),
    });
    expect((await fetchLink(linkIn(request))).body.toString()).toBe('{"order":7}');
    expect(body).toMatchObject({ success: true, responseBody: expect.stringContaining('got {') });
    expect(JSON.stringify(body)).not.toContain(new URL(linkIn(request)).searchParams.get('token')?.slice(20, 60));
  });

  test('a test of a thin endpoint has its payload behind the link, and the type of the event', async () => {
    const to = await receiver();
    await world.create('event-types', { name: 'order.paid' });
    const { body } = await send('POST', `webhook-endpoints/${await thinEndpoint(to)}/test`, {
      eventType: 'order.paid',
      payload: { total: 12 },
    });
    expect(body.data).toMatchObject({ success: true });
    const [request] = await to.arrived(1);
    if (request === undefined) throw new Error('nothing arrived');
    expect(JSON.parse(request.body.toString())).toMatchObject({ type: 'order.paid', url: expect.any(String) });
    const { headers, body: payload } = await fetchLink(linkIn(request));
    expect([payload.toString(), headers['content-type']]).toEqual(['{"total":12}', 'application/json']);
  });

  test('a test of a thin target with a payload that a link cannot hold is not sent, and says why', async () => {
    const to = await receiver();
    const payload = { text: 'x'.repeat(maxTestPayloadBytes) };
    const { id } = (await destination({ url: to.url, payloadForm: 'thin' })).body;
    const ofDestination = await send('POST', `destinations/${id}/test`, { payload });
    expect(ofDestination.body).toMatchObject({ success: false, error: 'blocked', message: expect.stringContaining('at most 4096 bytes') });
    const ofEndpoint = await send('POST', `webhook-endpoints/${await thinEndpoint(to)}/test`, { payload });
    expect(ofEndpoint.body.data).toMatchObject({
      success: false,
      errorType: 'blocked',
      errorMessage: expect.stringContaining('at most 4096 bytes'),
    });
    expect(to.requests).toEqual([]);
  });
});
