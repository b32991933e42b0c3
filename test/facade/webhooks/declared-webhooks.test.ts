import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ConfigurationKind } from '../../../src/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const options = { manager: 'kubectl', force: true };
const declared = { application: '', endpoint: '', subscription: '' };
let world: FacadeWorld;

beforeAll(async () => {
  world = await startFacadeWorld({ inForceTimeoutMs: 20_000 });
  for (const name of ['order.paid', 'order.sent']) await request('POST', 'event-types', { name });
  const data = { secret: Buffer.from(secret).toString('base64') };
  await world.store.apply({ kind: 'Secret', metadata: { namespace: 'acme', name: 'signing' }, data }, options);
  declared.application = await apply('WebhookApplication', 'shop', { externalId: 'shop-17' });
  declared.endpoint = await apply('WebhookEndpoint', 'hooks', {
    applicationRef: { name: 'shop' },
    url: 'https://shop.example/hooks',
    signingSecretRef: { name: 'signing', key: 'secret' },
    retryDelaysSeconds: [5, 60],
    expiresAfterSeconds: 3600,
    successStatusCodes: ['2xx', 409],
    ordered: true,
    headerTemplates: [{ name: 'X-Order', template: '{{ payload.order.id }}' }],
    payloadForm: 'thin',
  });
  declared.subscription = await apply('WebhookSubscription', 'paid', {
    endpointRef: { name: 'hooks' },
    eventTypeRef: { name: 'order.paid' },
    labelFilters: [{ key: 'country', values: ['at', 'de'] }],
  });
});
afterAll(() => world.stop());

/** Returns its id once it is in force. */
async function apply(kind: ConfigurationKind, name: string, spec: object): Promise<string> {
  await world.store.apply({ kind, metadata: { namespace: 'acme', name }, spec }, options);
  return await eventually(async () => {
    const { status } = await world.store.get(kind, { namespace: 'acme', name });
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
    return status?.id ?? '';
  });
}
const request = (method: string, path: string, body?: object) => world.request(method, `/api/${path}`, body === undefined ? {} : { body });
const read = async (path: string) => (await request('GET', path)).body.data;

test('what resources declare is listed and shown as what the API makes, its secret never', async () => {
  expect(await read('webhook-applications/by-external-id/shop-17')).toMatchObject({ id: declared.application, name: 'shop' });
  const [endpoint] = await read(`webhook-endpoints?applicationId=${declared.application}`);
  expect(endpoint).toMatchObject({
    id: declared.endpoint,
    url: 'https://shop.example/hooks',
    hasSecret: true,
    secretPrefix: `${secret.slice(0, 10)}…`,
    secretVersion: 1,
    retryDelays: [5, 60],
    expiresAfterSeconds: 3600,
    successStatusCodes: ['2xx', 409],
    ordered: true,
    headerTemplates: [{ name: 'X-Order', template: '{{ payload.order.id }}' }],
    payloadForm: 'thin',
    circuitState: 'closed',
    subscriptionCount: 1,
  });
  expect(JSON.stringify(endpoint)).not.toContain(secret);
  expect(await read(`webhook-subscriptions/${declared.subscription}`)).toMatchObject({
    endpointId: declared.endpoint,
    applicationId: declared.application,
    eventTypeName: 'order.paid',
    labelFilters: { country: ['at', 'de'] },
  });
});

test('the API changes nothing of it, and names the resource', async () => {
  const { application, endpoint, subscription } = declared;
  const answers = await Promise.all([
    request('PATCH', `webhook-applications/${application}`, { name: 'Other' }),
    request('PUT', 'webhook-applications/upsert', { externalId: 'shop-17', name: 'Other' }),
    request('DELETE', `webhook-applications/${application}`),
    request('PATCH', `webhook-endpoints/${endpoint}`, { timeoutSeconds: 5 }),
    request('POST', `webhook-endpoints/${endpoint}/rotate-secret`, {}),
    request('DELETE', `webhook-endpoints/${endpoint}`),
    request('PATCH', `webhook-subscriptions/${subscription}`, { isEnabled: false }),
    request('DELETE', `webhook-subscriptions/${subscription}`),
  ]);
  const names = ['shop', 'shop', 'shop', 'hooks', 'hooks', 'hooks', 'paid', 'paid'];
  for (const [i, { status, headers, body }] of answers.entries()) {
    expect([status, headers.get('x-error-code')]).toEqual([409, 'FIELD_MANAGED']);
    expect(body.message).toContain(`acme/${names[i]}`);
  }
});

test('what the API is sent of it as it is, is no change', async () => {
  const paths = ['webhook-applications/shop', 'webhook-endpoints/hooks', 'webhook-subscriptions/paid'];
  for (const path of paths) {
    const record = await read(path);
    for (const sent of [record, {}]) {
      const { status, body } = await request('PATCH', path, sent);
      expect([status, body.data]).toEqual([200, record]);
    }
  }
  const { externalId, name, metadata, rateLimitPerSecond } = await read('webhook-applications/shop');
  const { status, body } = await request('PUT', 'webhook-applications/upsert', { externalId, name, metadata, rateLimitPerSecond });
  expect([status, body]).toEqual([200, { created: false, data: await read('webhook-applications/shop') }]);
});

test('in paths it goes by its name, too', async () => {
  const { application, endpoint, subscription } = declared;
  for (const [path, id] of [
    ['webhook-applications/shop', application],
    ['webhook-endpoints/hooks', endpoint],
    ['webhook-subscriptions/paid', subscription],
  ] as const) {
    expect(await read(path)).toMatchObject({ id });
    const refused = await request('DELETE', path);
    expect([refused.status, refused.headers.get('x-error-code')]).toEqual([409, 'FIELD_MANAGED']);
  }
  expect((await read('webhooks/analytics/endpoints/hooks')).endpoint.id).toBe(endpoint);
  expect((await request('POST', 'webhook-endpoints/hooks/reset-circuit')).body).toEqual({ success: true, circuitState: 'closed' });
  await world.addOrganization('other');
  const key = await world.addKey('other');
  for (const path of ['webhook-applications/hooks', 'webhook-endpoints/shop', 'webhook-subscriptions/No_name'])
    expect((await request('GET', path)).status).toBe(404);
  expect((await world.request('GET', '/api/webhook-applications/shop', { key })).status).toBe(404);
});

test('what the API makes below it goes with the resource', async () => {
  const made = (await request('POST', 'webhook-endpoints', { applicationId: declared.application, url: 'https://shop.example/more' })).body;
  const subscription = (await request('POST', 'webhook-subscriptions', { endpointId: declared.endpoint, eventTypeId: 'order.sent' })).body;
  expect((await request('POST', 'webhook-subscriptions', { endpointId: declared.endpoint, eventTypeId: 'order.paid' })).status).toBe(409);
  const gone = (path: string) => eventually(async () => expect((await request('GET', path)).status).toBe(404));
  await world.store.delete('WebhookEndpoint', { namespace: 'acme', name: 'hooks' });
  await gone(`webhook-subscriptions/${subscription.data.id}`);
  await gone(`webhook-subscriptions/${declared.subscription}`);
  expect((await read(`webhook-endpoints/${made.data.id}`)).url).toBe('https://shop.example/more');
  await world.store.delete('WebhookApplication', { namespace: 'acme', name: 'shop' });
  await gone(`webhook-endpoints/${made.data.id}`);
  await gone('webhook-applications/by-external-id/shop-17');
});
