import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { anyPayload } from '../support/any-payload.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
let world: FacadeWorld;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  world = await startFacadeWorld();
  await world.startWorker();
});
afterAll(() => world.stop());
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function receiver(answer?: Parameters<typeof startReceiver>[0]): Promise<Receiver> {
  const started = await startReceiver(answer);
  ends.push(() => started.close());
  return started;
}
async function destination(url: string, more: object = {}): Promise<string> {
  const created = await world.request('POST', '/api/destinations', { body: { name: 'Orders', url, ...more } });
  expect(created.status).toBe(201);
  return created.body.id;
}
const testOf = (id: string, body?: object) => world.request('POST', `/api/destinations/${id}/test`, { body });

describe('a test of an http destination', () => {
  test('a test of an http destination sends the payload as a delivery would, marked as a test, and answers what came back', async () => {
    const to = await receiver((response) => response.writeHead(202).end('thanks'));
    const id = await destination(`${to.url}/hook?a=1`, {
      method: 'PUT',
      headers: { 'X-Shop': 'north' },
      authType: 'bearer',
      authConfig: { token: 'a-token-of-the-shop' },
      signingSecret: secret,
    });
    const answer = await testOf(id, { payload: { orderId: 7 } });
    expect(answer.status).toBe(200);
    const { detail, ...rest } = answer.body;
    expect(detail).toMatchObject({
      requestHeaders: { authorization: '••••', 'x-shop': 'north', 'x-posthorn-test': 'true' },
      peerAddress: new URL(to.url).host,
      requestBytes: 13,
      responseBytes: 6,
      phases: { totalMs: expect.any(Number) },
    });
    expect(rest).toEqual({
      success: true,
      statusCode: 202,
      latency: expect.any(Number),
      status: 202,
      latencyMs: answer.body.latency,
      responseBody: 'thanks',
      message: 'The destination answered 202.',
    });
    const [request] = to.requests;
    expect(request).toMatchObject({
      method: 'PUT',
      path: '/hook?a=1',
      headers: {
        'content-type': 'application/json',
        'x-shop': 'north',
        authorization: 'Bearer a-token-of-the-shop',
        'x-posthorn-test': 'true',
        'x-posthorn-attempt': '1',
        'user-agent': expect.stringMatching(/^Posthorn\//),
      },
    });
    expect(new Webhook(secret).verify(request?.body ?? '', request?.headers as Record<string, string>)).toEqual({ orderId: 7 });
    expect(await world.redis.client.keys('test:{s0}:*')).not.toContainEqual(expect.stringMatching(/:[mek]:/));
    expect((await world.request('GET', `/api/destinations/${id}`)).body).toMatchObject({ deliveriesCount: 0, lastDeliveryAt: null });
  });

  test('a test of an http destination sends any JSON object, as deep and with such keys as that of an event', async () => {
    const to = await receiver();
    const id = await destination(to.url);
    const payload = anyPayload();
    expect(await testOf(id, { payload: JSON.parse(payload) })).toMatchObject({ status: 200, body: { success: true } });
    expect(String(to.requests[0]?.body)).toBe(payload);
  });

  test('a test of an http destination sends the payload byte for byte as it was sent', async () => {
    const to = await receiver();
    const id = await destination(to.url);
    const payload = '{ "total": 1.0,  "id": 12345678901234567890, "id": 2, "ü": "\\u00fc" }';
    const rawBody = `{"payload": ${payload} }`;
    const answer = await world.request('POST', `/api/destinations/${id}/test`, { rawBody });
    expect(answer).toMatchObject({ status: 200, body: { success: true } });
    expect(String(to.requests[0]?.body)).toBe(payload);
  });

  test('a test of an http destination without a payload sends a sample event, also to a disabled destination and by its slug', async () => {
    const to = await receiver();
    await destination(to.url, { slug: 'paused', enabled: false });
    expect((await testOf('paused')).body).toMatchObject({ success: true, statusCode: 200, responseBody: 'ok' });
    expect(JSON.parse(String(to.requests[0]?.body))).toMatchObject({ type: 'posthorn.test', createdAt: expect.any(String) });
  });

  test('a test of an http destination uses what a change has just put in force', async () => {
    const [before, after] = [await receiver(), await receiver()];
    const id = await destination(before.url);
    for (let i = 0; i < 10; i++) {
      const to = i % 2 === 0 ? after : before;
      await world.request('PATCH', `/api/destinations/${id}`, { body: { url: to.url } });
      await testOf(id);
      expect(to.requests).toHaveLength(Math.floor(i / 2) + 1);
    }
  });

  test('a test of an http destination that fails is answered 200 with the kind of failure', async () => {
    const failing = await receiver((response) => response.writeHead(500).end('no'));
    expect(await testOf(await destination(failing.url))).toMatchObject({
      status: 200,
      body: { success: false, statusCode: 500, latency: expect.any(Number), error: 'http_error', message: expect.stringContaining('500') },
    });
    const silent = await receiver(() => undefined);
    expect(await testOf(await destination(silent.url, { timeoutMs: 1000 }))).toMatchObject({
      status: 200,
      body: { success: false, statusCode: null, error: 'timeout' },
    });
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const port = (closed.address() as { port: number }).port;
    await new Promise((resolve) => closed.close(resolve));
    expect((await testOf(await destination(`http://127.0.0.1:${port}/`))).body).toMatchObject({ statusCode: null, error: 'network' });
    expect((await testOf(await destination('http://169.254.169.254/'))).body).toMatchObject({ statusCode: null, error: 'blocked' });
  });

  test('a test of an http destination of a destination whose Secret is missing says that it is not in force', async () => {
    const http = { url: 'https://a.example/', signingSecretRef: { name: 'missing', key: 'key' } };
    await world.store.apply(
      { kind: 'Destination', metadata: { name: 'broken', namespace: 'acme' }, spec: { type: 'http', http } },
      { manager: 'kubectl' },
    );
    expect(await testOf('broken')).toMatchObject({ status: 200, body: { success: false, statusCode: null, error: 'not_ready' } });
  });

  test('a test of an http destination needs the scope write, a known destination and a payload that is an object', async () => {
    const to = await receiver();
    const id = await destination(to.url);
    const viewer = await world.addKey('acme', { role: 'viewer' });
    expect((await world.request('POST', `/api/destinations/${id}/test`, { key: viewer })).status).toBe(403);
    expect((await testOf('nowhere')).body).toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    for (const payload of [[], 'text', 7, null]) expect((await testOf(id, { payload })).body.code).toBe('VALIDATION_FAILED');
    expect((await testOf(id, { payloads: {} })).body.code).toBe('UNKNOWN_FIELD');
    expect(to.requests).toEqual([]);
  });
});

test('a test is 503 with Retry-After without a worker', async () => {
  const alone = await startFacadeWorld();
  ends.push(() => alone.stop());
  const created = await alone.request('POST', '/api/destinations', { body: { name: 'Orders', url: 'https://a.example/' } });
  const answer = await alone.request('POST', `/api/destinations/${created.body.id}/test`);
  expect(answer).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE', message: 'No delivery worker is running.' } });
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
});

test('a test that a stopping worker breaks off is 503', async () => {
  const silent = await receiver(() => undefined);
  const alone = await startFacadeWorld();
  ends.push(() => alone.stop());
  const worker = await alone.startWorker();
  const created = await alone.request('POST', '/api/destinations', { body: { name: 'Orders', url: silent.url } });
  const answered = alone.request('POST', `/api/destinations/${created.body.id}/test`);
  await silent.arrived(1);
  await worker.stop(200);
  expect(await answered).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE', message: 'The delivery worker is stopping.' } });
});
