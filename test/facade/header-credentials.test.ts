import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { canariesInRedis } from '../canary/canaries-in-redis.ts';
import { newCanary } from '../canary/canary.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { describeHeaderCredentials } from './suites/header-credentials.ts';

describeHeaderCredentials(() => startFacadeWorld());

describe('credentials in headers', () => {
  const credential = newCanary('headers', 'value');
  const url = 'https://shop.example/hooks';
  const headers = { 'X-Api-Key': credential.value };
  let world: FacadeWorld;
  let receiver: Receiver;
  beforeAll(async () => {
    world = await startFacadeWorld();
    await world.startWorker();
    receiver = await startReceiver((response, _, request) => response.end(JSON.stringify(request.headers)));
  });
  afterAll(async () => {
    await world.stop();
    await receiver.close();
  });
  const post = (path: string, body: object = {}) => world.request('POST', `/api/${path}`, { body });

  test('credentials in headers reach the receiver, and an answer that repeats them is masked', async () => {
    const destination = await post('destinations', { name: 'Shop', url: receiver.url, headers });
    const job = await post('cron', { name: 'Report', cronExpression: '0 0 1 1 *', url: receiver.url, headers });
    const application = (await post('webhook-applications', { name: 'Customer' })).body.data.id;
    const list = [{ name: 'X-Api-Key', value: credential.value }];
    const endpoint = await post('webhook-endpoints', { applicationId: application, url, headers: list });
    // Which the worker may reach, and an endpoint of the API may not be.
    await world.webhooks.updateEndpoint(await world.organizationId('acme'), endpoint.body.data.id, { url: receiver.url });
    for (const path of [
      `destinations/${destination.body.id}/test`,
      `cron/${job.body.cronJob.id}/trigger`,
      `webhook-endpoints/${endpoint.body.data.id}/test`,
    ]) {
      const { status, text: answer } = await post(path);
      // The response of a trigger lacks the body, which its executions show.
      const text = path.startsWith('cron') ? (await world.request('GET', `/api/${path.replace('trigger', 'executions')}`)).text : answer;
      expect([path, status, text]).toEqual([path, 200, expect.stringContaining('x-api-key')]);
      expect(text).not.toContain(credential.value);
      expect(receiver.requests.at(-1)?.headers['x-api-key']).toBe(credential.value);
    }
    expect((await canariesInRedis(world.redis.client, [credential])).found).toEqual([]);
    expect(world.logLines.join('')).not.toContain(credential.value);
  });

  test('credentials in headers of an endpoint that a custom resource declares are read of a Secret and follow it', async () => {
    const apply = (kind: 'WebhookApplication' | 'WebhookEndpoint', name: string, spec: object) =>
      world.store.apply({ kind, metadata: { namespace: 'acme', name }, spec }, { manager: 'kubectl', force: true });
    const put = (token: string) => {
      const data = { signing: `whsec_${Buffer.alloc(32, 7).toString('base64')}`, token };
      const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
      const metadata = { namespace: 'acme', name: 'hooks' };
      return world.store.apply({ kind: 'Secret', metadata, data: Object.fromEntries(encoded) }, { manager: 'kubectl', force: true });
    };
    await put('canary-token-abcd');
    await apply('WebhookApplication', 'declared', {});
    await apply('WebhookEndpoint', 'hooks', {
      applicationRef: { name: 'declared' },
      url,
      signingSecretRef: { name: 'hooks', key: 'signing' },
      headers: [{ name: 'X-Team', valueSecretRef: { name: 'hooks', key: 'token' } }],
    });
    const shown = async () => {
      const { status } = await world.store.get('WebhookEndpoint', { namespace: 'acme', name: 'hooks' });
      return (await world.request('GET', `/api/webhook-endpoints/${status?.id}`)).body.data?.headers;
    };
    await eventually(async () => expect(await shown()).toEqual([{ name: 'X-Team', value: '••••abcd' }]));
    await put('canary-token-wxyz');
    await eventually(async () => expect(await shown()).toEqual([{ name: 'X-Team', value: '••••wxyz' }]));
  });
});
