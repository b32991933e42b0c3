import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { webhookSecretSealingContext } from '../../../src/core/sealing-contexts.ts';
import type { NewWebhookEndpoint, WebhookEndpoint } from '../../../src/data/webhooks/webhooks.ts';
import { testKeyring } from '../../support/controllers.ts';
import { MemoryDirectory } from '../../support/memory-directory.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { newWebhookEndpoint } from '../../support/webhooks.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const oldSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
let world: FacadeWorld;
let org: string;
let applicationId: string;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  world = await startFacadeWorld();
  await world.startWorker();
  org = await world.organizationId('acme');
  applicationId = (await world.webhooks.createApplication({ org, name: 'Customer', shard: 0 })).id;
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
const sealed = (id: string, text: string) => testKeyring.seal(text, webhookSecretSealingContext(org, id));
function endpoint(url: string, more: Partial<NewWebhookEndpoint> = {}): Promise<WebhookEndpoint> {
  const sealSecret = (id: string) => ({ sealed: sealed(id, secret), prefix: 'whsec_abcd', version: 1, previous: [] });
  return world.webhooks.createEndpoint(newWebhookEndpoint(applicationId, { org, url, sealSecret, ...more }));
}
const testOf = (id: string, body?: object, key?: string) =>
  world.request('POST', `/api/webhook-endpoints/${id}/test`, { body, ...(key !== undefined && { key }) });

describe('a test of an endpoint', () => {
  test('a test of an endpoint posts the payload as a message would be, signed and marked as a test, and answers what came back', async () => {
    const to = await receiver((response) => response.writeHead(202).end('thanks'));
    const { id } = await endpoint(`${to.url}/hooks?a=1`, { headers: [{ name: 'X-Tenant', value: 'acme' }] });
    await world.create('event-types', { name: 'test.sent' });
    const answer = await testOf(id, { eventType: 'test.sent', payload: { orderId: 7 } });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      data: {
        success: true,
        responseStatus: 202,
        responseTimeMs: expect.any(Number),
        responseBody: 'thanks',
        errorType: null,
        errorMessage: null,
        detail: expect.objectContaining({ peerAddress: new URL(to.url).host, responseBytes: 6 }),
      },
    });
    const [request] = to.requests;
    expect(request).toMatchObject({
      method: 'POST',
      path: '/hooks?a=1',
      headers: {
        'content-type': 'application/json',
        'x-tenant': 'acme',
        'x-posthorn-test': 'true',
        'x-posthorn-attempt': '1',
        'x-posthorn-event-type': 'test.sent',
        'user-agent': expect.stringMatching(/^Posthorn\//),
      },
    });
    const headers = request?.headers as Record<string, string>;
    expect(new Webhook(secret).verify(request?.body ?? '', headers)).toEqual({ orderId: 7 });
    expect(() => new SvixWebhook(secret).verify(request?.body ?? '', headers)).not.toThrow();
    expect(await world.redis.client.keys('test:{s0}:*')).not.toContainEqual(expect.stringMatching(/:[mek]:/));
    expect((await world.request('GET', `/api/webhook-endpoints/${id}`)).body.data).toMatchObject({ totalMessages: 0, isVerified: false });
  });

  test('a test of an endpoint posts JSON as it was sent: its numbers, and keys that come twice', async () => {
    const to = await receiver();
    const { id } = await endpoint(to.url);
    const payload = '{ "id": 12345678901234567890, "price": 1.50, "tag": "a", "tag": "b" }';
    await world.request('POST', `/api/webhook-endpoints/${id}/test`, { rawBody: `{"payload": ${payload}}` });
    expect(to.requests.map(({ body }) => String(body))).toEqual([payload]);
  });

  test('a test of an endpoint is signed with the old secret, too, while a rotation lasts', async () => {
    const to = await receiver();
    const sealSecret = (id: string) => ({
      sealed: sealed(id, secret),
      prefix: 'whsec_abcd',
      version: 2,
      previous: [{ sealed: sealed(id, oldSecret), validUntilMs: Date.now() + 60_000 }],
    });
    await testOf((await endpoint(to.url, { sealSecret })).id, { payload: [] });
    const [request] = to.requests;
    for (const each of [secret, oldSecret])
      expect(new Webhook(each).verify(request?.body ?? '', request?.headers as Record<string, string>)).toEqual([]);
  });

  test('a test of an endpoint without a payload sends the example of the event type, or a sample', async () => {
    const to = await receiver();
    const { id } = await endpoint(to.url);
    await world.create('event-types', { name: 'test.example', examplePayload: '{ "id": 1 }' });
    await testOf(id, { eventType: 'test.example' });
    await testOf(id, {});
    await testOf(id);
    const sample = { type: 'posthorn.test', createdAt: expect.any(String), data: expect.anything() };
    expect(to.requests.map(({ body }) => JSON.parse(String(body)))).toEqual([{ id: 1 }, sample, sample]);
    expect(to.requests[1]?.headers['x-posthorn-event-type']).toBe('posthorn.test');
  });

  test('a test of an endpoint reaches a disabled endpoint, and sees at once what was changed', async () => {
    const [before, after] = [await receiver(), await receiver()];
    const { id } = await endpoint(before.url);
    for (let i = 0; i < 6; i++) {
      const to = i % 2 === 0 ? after : before;
      await world.webhooks.updateEndpoint(org, id, { url: to.url, isDisabled: i > 2 });
      expect((await testOf(id, {})).body.data).toMatchObject({ success: true, responseStatus: 200 });
      expect(to.requests).toHaveLength(Math.floor(i / 2) + 1);
    }
  });

  test('a test of an endpoint that fails is answered 200 with the kind of failure', async () => {
    const failing = await receiver((response) => response.writeHead(500).end('no'));
    expect(await testOf((await endpoint(failing.url)).id, {})).toMatchObject({
      status: 200,
      body: {
        data: {
          success: false,
          responseStatus: 500,
          responseBody: 'no',
          errorType: 'http_error',
          errorMessage: expect.stringContaining('500'),
        },
      },
    });
    const silent = await receiver(() => undefined);
    const unanswered = { success: false, responseStatus: null, responseBody: null };
    expect((await testOf((await endpoint(silent.url, { timeoutSeconds: 1 })).id, {})).body.data).toMatchObject({
      ...unanswered,
      errorType: 'timeout',
    });
    const refused = await endpoint('https://169.254.169.254/');
    expect((await testOf(refused.id, {})).body.data).toMatchObject({ ...unanswered, errorType: 'blocked' });
    const sealSecret = () => ({ sealed: 'of another keyring', prefix: 'whsec_abcd', version: 1, previous: [] });
    const closed = await endpoint(failing.url, { sealSecret });
    expect((await testOf(closed.id, {})).body.data).toMatchObject({ ...unanswered, errorType: 'secret_decryption_failed' });
    expect(failing.requests).toHaveLength(1);
  });

  test('a test of an endpoint that is answered 410 reports it and disables nothing', async () => {
    const leaving = await receiver((response) => response.writeHead(410).end());
    const { id } = await endpoint(leaving.url);
    expect((await testOf(id, {})).body.data).toMatchObject({ success: false, responseStatus: 410, errorType: 'gone' });
    expect(await world.webhooks.endpoint(org, id)).toMatchObject({ isDisabled: false });
  });

  test('a test of an endpoint succeeds with a success status of the endpoint, and with no other', async () => {
    const leaving = await receiver((response, number) => response.writeHead(number === 1 ? 410 : 200).end());
    const { id } = await endpoint(leaving.url, { successStatusCodes: [410] });
    expect((await testOf(id, {})).body.data).toMatchObject({ success: true, responseStatus: 410, errorType: null });
    expect((await testOf(id, {})).body.data).toMatchObject({ success: false, responseStatus: 200, errorType: 'http_error' });
  });

  test('a test of an endpoint needs the scope write, a known endpoint and event type, and no other fields', async () => {
    const to = await receiver();
    const { id } = await endpoint(to.url);
    expect((await testOf(id, {}, await world.addKey('acme', { role: 'viewer' }))).status).toBe(403);
    await world.addOrganization('other');
    expect((await testOf(id, {}, await world.addKey('other'))).body.error).toBe('Not found');
    expect((await testOf('nowhere', {})).body.error).toBe('Not found');
    expect((await testOf(id, { eventType: 'no.such' })).body.error).toBe('Not found');
    expect((await testOf(id, { eventType: '' })).body.details).toEqual({ eventType: [expect.any(String)] });
    expect((await testOf(id, { payloads: {} })).body.details).toEqual({ payloads: [expect.any(String)] });
    expect(to.requests).toEqual([]);
  });
});

test('an endpoint on http is not tested where the installation does not allow it', async () => {
  const alone = await startFacadeWorld();
  ends.push(() => alone.stop());
  const owner = await alone.organizationId('acme');
  const application = await alone.webhooks.createApplication({ org: owner, name: 'Customer', shard: 0 });
  const sealSecret = (id: string) => ({
    sealed: testKeyring.seal(secret, webhookSecretSealingContext(owner, id)),
    prefix: 'whsec_abcd',
    version: 1,
    previous: [],
  });
  const { id } = await alone.webhooks.createEndpoint(
    newWebhookEndpoint(application.id, { org: owner, url: 'http://127.0.0.1:9/', sealSecret }),
  );
  const ask = () => alone.request('POST', `/api/webhook-endpoints/${id}/test`, { body: {} });
  const answer = await ask();
  expect([answer.status, answer.headers.get('x-error-code')]).toEqual([503, 'UNAVAILABLE']);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  await alone.startWorker({ webhooks: { ...new MemoryDirectory().sources(), allowsInsecureUrls: false } });
  expect((await ask()).body.data).toMatchObject({ success: false, errorType: 'blocked', errorMessage: expect.stringContaining('http') });
});
