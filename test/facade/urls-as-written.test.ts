import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let authority: CertificateAuthority;
let receiver: Receiver;
let applicationId: string;

beforeAll(async () => {
  authority = createCertificateAuthority();
  receiver = await startReceiver((response) => response.end(), authority.issue(['127.0.0.1']));
  world = await startFacadeWorld();
  await world.startWorker({ extraCa: authority.text });
  applicationId = (await world.create('webhook-applications', {})).data.id;
});
afterAll(async () => {
  await Promise.all([world.stop(), receiver.close()]);
  authority.remove();
});

/** Makes an object with the URL, has it called once, and returns the URL that the API shows. */
const callers: Record<string, (url: string) => Promise<string>> = {
  'a destination': async (url) => {
    const { id } = await world.create('destinations', { url });
    expect((await world.request('POST', `/api/destinations/${id}/test`)).body).toMatchObject({ success: true });
    return (await world.request('GET', `/api/destinations/${id}`)).body.url;
  },
  'a webhook endpoint': async (url) => {
    const { id } = (await world.request('POST', '/api/webhook-endpoints', { body: { applicationId, url } })).body.data;
    expect((await world.request('POST', `/api/webhook-endpoints/${id}/test`)).body).toMatchObject({ data: { success: true } });
    return (await world.request('GET', `/api/webhook-endpoints/${id}`)).body.data.url;
  },
  'a cron job': async (url) => {
    const { id } = (await world.create('cron', { cronExpression: '0 6 * * *', url })).cronJob;
    expect((await world.request('POST', `/api/cron/${id}/trigger`)).status).toBe(200);
    return (await world.request('GET', `/api/cron/${id}`)).body.cronJob.url;
  },
  'a notification channel': async (url) => {
    const { id } = await world.create('notification-channels', { type: 'webhook', config: { url } });
    expect((await world.request('POST', `/api/notification-channels/${id}/test`)).body).toMatchObject({ success: true });
    return (await world.request('GET', `/api/notification-channels/${id}`)).body.config.url;
  },
  'an incoming webhook': async (url) => {
    const { id } = await world.create('notification-channels', { type: 'teams', config: { webhookUrl: url } });
    expect((await world.request('POST', `/api/notification-channels/${id}/test`)).body).toMatchObject({ success: true });
    return url;
  },
};

describe.each(Object.keys(callers))('the URL of %s', (name) => {
  test.each(["/?y='q'", '/a%2fb%7E/~c?sig=a%2bb%2Fc%3d&d="e"', '/a|b^c{d}`e`?f|g^h{i}`j`<k>', '/x/../y/./%2E%2e//z', '/a?'])(
    'is requested and shown as it is written: %s',
    async (target) => {
      const { port } = new URL(receiver.url);
      const url = `https://127.0.0.1:${port}${target}`;
      expect(await callers[name]?.(url)).toBe(url);
      expect(receiver.requests.at(-1)).toMatchObject({ path: target, headers: { host: `127.0.0.1:${port}` } });
    },
  );

  test.each(['HTTPS', 'hTTps'])('may have the scheme %s', async (scheme) => {
    const before = receiver.requests.length;
    const url = `${scheme}://127.0.0.1:${new URL(receiver.url).port}/a`;
    expect(await callers[name]?.(url)).toBe(url);
    expect(receiver.requests).toHaveLength(before + 1);
  });
});

/** Bodies with a URL. */
const writes: Record<string, [path: string, body: (url: string) => object]> = {
  'a destination': ['destinations', (url) => ({ name: 'a', url })],
  'a store': [
    'destinations',
    (endpoint) => ({
      name: 'a',
      type: 'r2',
      config: { bucket: 'files', endpoint, accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'secret-of-the-store' },
    }),
  ],
  'a webhook endpoint': ['webhook-endpoints', (url) => ({ applicationId, url })],
  'an event type': ['event-types', (documentationUrl) => ({ name: 'a.b', documentationUrl })],
  'a cron job': ['cron', (url) => ({ name: 'a', cronExpression: '0 6 * * *', url })],
  'a notification channel': ['notification-channels', (url) => ({ name: 'a', type: 'webhook', config: { url } })],
  'an incoming webhook': ['notification-channels', (webhookUrl) => ({ name: 'a', type: 'teams', config: { webhookUrl } })],
};

test.each(Object.entries(writes))('the URL of %s may not have port 0', async (_, [path, body]) => {
  const refused = await world.request('POST', `/api/${path}`, { body: body('https://shop.example:0/a') });
  expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining('port 0')]);
  const { status } = await world.request('POST', `/api/${path}`, { body: body('https://shop.example:1/a') });
  expect(status).toBeLessThan(300);
});
