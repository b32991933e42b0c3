import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { webhookSecretSealingContext } from '../../../src/core/sealing-contexts.ts';
import { webhookOrganization } from '../../../src/core/webhook.ts';
import { RedisDeliveryQueue } from '../../../src/data/queue/redis-delivery-queue.ts';
import { hashFields } from '../../../src/data/shard/hash-fields.ts';
import { testKeyring } from '../../support/controllers.ts';
import { newEvent } from '../../support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

let world: FacadeWorld;
let org: string;
let applicationId: string;
beforeAll(async () => {
  world = await startFacadeWorld();
  org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
});
afterAll(() => world.stop());
beforeEach(async () => {
  applicationId = (await world.request('POST', '/api/webhook-applications', { body: { name: 'Customer' } })).body.data.id;
});

const url = 'https://customer.example/hooks?a=1';
const create = (body: object = {}) => world.request('POST', '/api/webhook-endpoints', { body: { applicationId, url, ...body } });
const made = async (body: object = {}) => (await create(body)).body.data;
const change = (id: string, body: object) => world.request('PATCH', `/api/webhook-endpoints/${id}`, { body });
const read = (path: string) => world.request('GET', `/api/webhook-endpoints${path}`);
const post = (path: string, body?: object) => world.request('POST', `/api/webhook-endpoints/${path}`, { body });

const circuit = { failureThreshold: 5, cooldownSeconds: 60, probeSuccessThreshold: 2 };

/** Messages for an endpoint with an end each, as a worker would settle them. */
async function deliver(endpointId: string, outcomes: readonly (typeof delivered | typeof dead)[]): Promise<void> {
  const queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  for (const outcome of outcomes) {
    const event = newEvent({ org: webhookOrganization(org), destinations: [endpointId] });
    await world.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId: applicationId })) });
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64, { circuit }), outcome);
  }
}

/** The cooldown of the endpoint's open circuit is over, and a worker has seen it. */
async function endCooldown(endpointId: string): Promise<void> {
  const { client } = world.redis;
  const target = await client.hget(`test:{s0}:tn:${webhookOrganization(org)}`, `${applicationId} ${endpointId}`);
  await client.hset(`test:{s0}:t:${target}`, hashFields.target.cooldownEndMs, 0);
  await client.zadd('test:{s0}:waiting', 0, `!${target}`);
  await new RedisDeliveryQueue({ redis: client, prefix: 'test:' }).promote();
}

describe('creating an endpoint', () => {
  test('creating an endpoint answers 201 with the record, its defaults, the secret and a warning', async () => {
    const { status, body } = await create();
    expect(status).toBe(201);
    const { secret, ...record } = body.data;
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(body.warning).toMatch(/not shown again/);
    expect(record).toEqual({
      id: expect.stringMatching(/^ep_/),
      organizationId: expect.stringMatching(/^org_/),
      applicationId,
      url,
      description: null,
      headers: [],
      headerTemplates: [],
      timeoutSeconds: 30,
      rateLimitPerSecond: 0,
      rateLimitStrict: false,
      ordered: false,
      expiresAfterSeconds: null,
      retryDelays: null,
      successStatusCodes: null,
      circuitFailureThreshold: 5,
      circuitSuccessThreshold: 2,
      circuitCooldownSeconds: 60,
      circuitState: 'closed',
      circuitFailureCount: 0,
      secretPrefix: `${secret.slice(0, 10)}…`,
      hasSecret: true,
      secretVersion: 1,
      payloadForm: 'full',
      signatureScheme: 'hmac-sha256',
      publicKey: null,
      previousPublicKeys: [],
      isDisabled: false,
      disabledReason: null,
      disableAfterHours: null,
      isVerified: false,
      totalMessages: 0,
      totalSuccesses: 0,
      totalFailures: 0,
      avgResponseTimeMs: null,
      lastSuccessAt: null,
      lastFailureAt: null,
      subscriptionCount: 0,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect((await read(`/${record.id}`)).body).toEqual({ data: record });
    expect((await world.request('GET', `/api/webhook-applications/${applicationId}`)).body.data.totalEndpoints).toBe(1);
  });

  test('creating an endpoint keeps the secret sealed', async () => {
    const { id, secret } = await made();
    const stored = (await world.webhooks.endpoint(org, id))?.secret.sealed ?? '';
    expect(stored).not.toContain(secret);
    expect(testKeyring.open(stored, webhookSecretSealingContext(org, id))).toBe(secret);
    expect(world.logLines.join('\n')).not.toContain(secret);
  });

  test('creating an endpoint takes everything that can be set', async () => {
    const sent = {
      description: 'x'.repeat(500),
      headers: Array.from({ length: 20 }, (_, n) => ({ name: `X-Tenant-${n}`, value: 'acme' })),
      headerTemplates: Array.from({ length: 20 }, (_, n) => ({ name: `X-Order-${n}`, template: 't'.repeat(1024) })),
      timeoutSeconds: 120,
      rateLimitPerSecond: 5,
      rateLimitStrict: true,
      ordered: true,
      retryDelays: [5, 60],
      successStatusCodes: ['2xx', 409],
      circuitFailureThreshold: 1,
      circuitSuccessThreshold: 1,
      circuitCooldownSeconds: 10,
      isDisabled: true,
      disabledReason: 'Not yet ready.',
    };
    expect(await made(sent)).toMatchObject(sent);
  });

  test('creating an endpoint takes what is at its bounds', async () => {
    const sent = {
      rateLimitPerSecond: 100_000,
      circuitFailureThreshold: 1000,
      circuitSuccessThreshold: 100,
      circuitCooldownSeconds: 86_400,
      disabledReason: 'x'.repeat(500),
    };
    expect(await made(sent)).toMatchObject(sent);
  });

  test.each([
    [{ url: 'http://customer.example' }, 'url'],
    [{ url: 'HTTP://customer.example' }, 'url'],
    [{ url: 'customer.example' }, 'url'],
    [{ url: 'https://user:pass@customer.example' }, 'url'],
    [{ url: undefined }, 'url'],
    [{ applicationId: undefined }, 'applicationId'],
    [{ description: 'x'.repeat(501) }, 'description'],
    [{ headers: { 'X-A': 'b' } }, 'headers'],
    [{ headers: [{ name: 'webhook-id', value: 'x' }] }, 'headers[0].name'],
    [{ headers: [{ name: 'X-Posthorn-Event-Id', value: 'x' }] }, 'headers[0].name'],
    [{ headers: [{ name: 'Transfer-Encoding', value: 'x' }] }, 'headers[0].name'],
    [{ headers: [{ name: 'Content-Type', value: 'x' }] }, 'headers[0].name'],
    [{ headers: [{ name: 'X-A', value: 'a\nb' }] }, 'headers[0].value'],
    [
      {
        headers: [
          { name: 'X-A', value: '1' },
          { name: 'x-a', value: '2' },
        ],
      },
      'headers[1].name',
    ],
    [{ headers: Array.from({ length: 21 }, (_, n) => ({ name: `X-${n}`, value: '' })) }, 'headers'],
    [{ timeoutSeconds: 0 }, 'timeoutSeconds'],
    [{ timeoutSeconds: 121 }, 'timeoutSeconds'],
    [{ rateLimitPerSecond: -1 }, 'rateLimitPerSecond'],
    [{ rateLimitStrict: 'yes' }, 'rateLimitStrict'],
    [{ ordered: 'yes' }, 'ordered'],
    [{ circuitFailureThreshold: 0 }, 'circuitFailureThreshold'],
    [{ circuitSuccessThreshold: 0 }, 'circuitSuccessThreshold'],
    [{ circuitCooldownSeconds: 0 }, 'circuitCooldownSeconds'],
    [{ rateLimitPerSecond: 100_001 }, 'rateLimitPerSecond'],
    [{ circuitFailureThreshold: 1001 }, 'circuitFailureThreshold'],
    [{ circuitSuccessThreshold: 101 }, 'circuitSuccessThreshold'],
    [{ circuitCooldownSeconds: 86_401 }, 'circuitCooldownSeconds'],
    [{ disabledReason: 'x'.repeat(501) }, 'disabledReason'],
    [{ secret: 'whsec_mine' }, 'secret'],
  ])('creating an endpoint of %j is 400 with the field in the details', async (sent, field) => {
    const { status, body } = await create(sent);
    expect(status).toBe(400);
    expect(body).toEqual({ error: 'Invalid input', message: expect.any(String), details: { [field]: [expect.any(String)] } });
  });

  test('creating an endpoint for an application that is not there is 404', async () => {
    const { status, body } = await create({ applicationId: 'app_aaaaaaaaaaaaaaaaaaaaaaaaaa' });
    expect([status, body.error]).toEqual([404, 'Not found']);
  });
});

describe('changing an endpoint', () => {
  test('changing an endpoint keeps what is not sent', async () => {
    const { id } = await made({ description: 'Old', timeoutSeconds: 10, circuitFailureThreshold: 9 });
    const sent = { url: 'https://new.example/', description: null, headers: [{ name: 'X-B', value: '' }], circuitCooldownSeconds: 5 };
    const { status, body } = await change(id, sent);
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ ...sent, timeoutSeconds: 10, circuitFailureThreshold: 9 });
    expect((await read(`/${id}`)).body).toEqual(body);
  });

  test('changing an endpoint disables it with a reason, and enabling takes the reason away', async () => {
    const { id } = await made();
    expect((await change(id, { isDisabled: true, disabledReason: 'Moved.' })).body.data).toMatchObject({
      isDisabled: true,
      disabledReason: 'Moved.',
    });
    expect((await change(id, { isDisabled: false })).body.data).toMatchObject({ isDisabled: false, disabledReason: null });
  });

  test('changing an endpoint sets disableAfterHours from 0 to a year, and null takes it away', async () => {
    const { id } = await made();
    for (const disableAfterHours of [72, 0, 8760, null])
      expect((await change(id, { disableAfterHours })).body.data).toMatchObject({ disableAfterHours });
    for (const disableAfterHours of [-1, 8761, 1.5, '72'])
      expect((await change(id, { disableAfterHours })).body.details).toEqual({ disableAfterHours: [expect.any(String)] });
  });

  test('changing an endpoint sets the reason alone, too, and keeps it when it is disabled', async () => {
    const { id } = await made();
    const { body } = await change(id, { disabledReason: 'Moves.' });
    expect(body.data).toMatchObject({ isDisabled: false, disabledReason: 'Moves.' });
    expect((await read(`/${id}`)).body).toEqual(body);
    expect((await change(id, { isDisabled: true })).body.data).toMatchObject({ isDisabled: true, disabledReason: 'Moves.' });
    expect((await change(id, { disabledReason: null })).body.data).toMatchObject({ isDisabled: true, disabledReason: null });
  });

  test('changing an endpoint ignores what is read-only and refuses another application', async () => {
    const { secret: _, ...record } = await made();
    expect((await change(record.id, { ...record, circuitState: 'open', totalMessages: 9 })).body.data).toMatchObject({
      circuitState: 'closed',
      totalMessages: 0,
    });
    expect((await change(record.id, { applicationId: 'app_other' })).body.details).toEqual({ applicationId: [expect.any(String)] });
    expect((await change(record.id, { url: 'http://new.example' })).body.details).toEqual({ url: [expect.any(String)] });
  });
});

test('deleting answers success and takes its subscriptions along', async () => {
  const { id } = await made();
  const type = (await world.request('POST', '/api/event-types', { body: { name: 'endpoint.deleted' } })).body.data.id;
  const subscription = await world.webhooks.createSubscription({ org, endpointId: id, eventTypeId: type });
  expect((await read(`/${id}`)).body.data.subscriptionCount).toBe(1);
  const answer = await world.request('DELETE', `/api/webhook-endpoints/${id}`);
  expect([answer.status, answer.body]).toEqual([200, { success: true }]);
  expect((await read(`/${id}`)).status).toBe(404);
  expect(await world.webhooks.subscription(org, subscription.id)).toBeNull();
});

describe('rotating the secret', () => {
  test('rotating the secret answers the new one and until when the old one holds, an hour by default', async () => {
    const { id, secret } = await made();
    const { status, body } = await post(`${id}/rotate-secret`, {});
    expect(status).toBe(200);
    const previousSecretExpiresAt = expect.any(String);
    const keys = { signatureScheme: 'hmac-sha256', publicKey: null, previousPublicKey: null };
    expect(body).toEqual({ secret: expect.stringMatching(/^whsec_/), ...keys, previousSecretExpiresAt, secretVersion: 2 });
    expect(body.secret).not.toBe(secret);
    expect(Math.abs(Date.parse(body.previousSecretExpiresAt) - Date.now() - 3_600_000)).toBeLessThan(60_000);
    expect((await read(`/${id}`)).body.data).toMatchObject({ secretVersion: 2, secretPrefix: `${body.secret.slice(0, 10)}…` });
    const stored = (await world.webhooks.endpoint(org, id))?.secret;
    expect(testKeyring.open(stored?.sealed ?? '', webhookSecretSealingContext(org, id))).toBe(body.secret);
    expect(stored?.previous.map(({ sealed }) => testKeyring.open(sealed, webhookSecretSealingContext(org, id)))).toEqual([secret]);
  });

  test('rotating the secret with gracePeriodSeconds 0 ends the old ones at once', async () => {
    const { id } = await made();
    await post(`${id}/rotate-secret`, { gracePeriodSeconds: 60 });
    expect((await post(`${id}/rotate-secret`, { gracePeriodSeconds: 0 })).body).toMatchObject({
      previousSecretExpiresAt: null,
      secretVersion: 3,
    });
    expect((await world.webhooks.endpoint(org, id))?.secret.previous).toEqual([]);
  });

  test('rotating the secret takes a day of grace', async () => {
    const { id } = await made();
    const { status, body } = await post(`${id}/rotate-secret`, { gracePeriodSeconds: 86_400 });
    expect(status).toBe(200);
    expect(Math.abs(Date.parse(body.previousSecretExpiresAt) - Date.now() - 86_400_000)).toBeLessThan(60_000);
  });

  test('rotating the secret ends no old one before its time: with four that hold it is 409, and gracePeriodSeconds 0 ends all', async () => {
    const { id } = await made();
    const ends: string[] = [];
    for (const gracePeriodSeconds of [300, 60, 300, 300])
      ends.push((await post(`${id}/rotate-secret`, { gracePeriodSeconds })).body.previousSecretExpiresAt);
    const previous = async () => (await world.webhooks.endpoint(org, id))?.secret.previous ?? [];
    const held = await previous();
    expect(held.map(({ validUntilMs }) => new Date(validUntilMs).toISOString())).toEqual(ends.toReversed());
    const fifth = await post(`${id}/rotate-secret`, {});
    expect([fifth.status, fifth.body]).toEqual([409, { error: 'Conflict', message: expect.stringContaining(ends[1] ?? ''), details: {} }]);
    expect(await previous()).toEqual(held);
    expect((await post(`${id}/rotate-secret`, { gracePeriodSeconds: 0 })).body).toMatchObject({ secretVersion: 6 });
    expect(await previous()).toEqual([]);
  });

  test('rotating the secret by several at the same time gives each a version of its own', async () => {
    const { id } = await made();
    const answers = await Promise.all([1, 2, 3].map(() => post(`${id}/rotate-secret`, {})));
    expect(answers.map(({ body }) => body.secretVersion).sort()).toEqual([2, 3, 4]);
  });

  test.each([-1, 86_401, 1.5, 'x'])('rotating the secret with gracePeriodSeconds %s is 400', async (gracePeriodSeconds) => {
    const { id } = await made();
    const { status, body } = await post(`${id}/rotate-secret`, { gracePeriodSeconds });
    expect([status, Object.keys(body.details)]).toEqual([400, ['gracePeriodSeconds']]);
  });
});

test('an endpoint that a custom resource keeps cannot be changed through the API', async () => {
  const sealSecret = () => ({ sealed: 'x', prefix: 'whsec_abcd', version: 1, previous: [] });
  const { id } = await world.webhooks.createEndpoint({ org, applicationId, url, managedBy: 'acme/endpoint', sealSecret });
  const answers = [
    await change(id, { description: 'x' }),
    await post(`${id}/rotate-secret`, {}),
    await world.request('DELETE', `/api/webhook-endpoints/${id}`),
  ];
  for (const { status, headers } of answers) expect([status, headers.get('x-error-code')]).toEqual([409, 'FIELD_MANAGED']);
});

describe('what deliveries have done', () => {
  test('what deliveries have done is counted, verifies the endpoint and shows in its circuit', async () => {
    const { id } = await made();
    await deliver(id, [dead]);
    expect((await read(`/${id}`)).body.data).toMatchObject({
      isVerified: false,
      totalMessages: 1,
      totalFailures: 1,
      lastFailureAt: expect.any(String),
    });
    await deliver(id, [delivered, delivered]);
    expect((await read(`/${id}`)).body.data).toMatchObject({
      isVerified: true,
      totalMessages: 3,
      totalSuccesses: 2,
      totalFailures: 1,
      avgResponseTimeMs: expect.any(Number),
      lastSuccessAt: expect.any(String),
    });
  });

  test('what deliveries have done opens its circuit, by which the list filters and which reset-circuit closes', async () => {
    const [open, closed] = [await made(), await made()];
    await deliver(open.id, [dead, dead, dead, dead, dead]);
    const ids = async (state: string) =>
      (await read(`?applicationId=${applicationId}&circuitState=${state}`)).body.data.map(({ id }: { id: string }) => id);
    expect((await read(`/${open.id}`)).body.data).toMatchObject({ circuitState: 'open', circuitFailureCount: 5 });
    expect(await ids('open')).toEqual([open.id]);
    expect(await ids('closed')).toEqual([closed.id]);
    expect(await ids('half_open')).toEqual([]);
    await endCooldown(open.id);
    expect((await read(`/${open.id}`)).body.data.circuitState).toBe('half_open');
    expect([await ids('half_open'), await ids('open'), await ids('closed')]).toEqual([[open.id], [], [closed.id]]);
    const { status, body } = await post(`${open.id}/reset-circuit`);
    expect([status, body]).toEqual([200, { success: true, circuitState: 'closed' }]);
    expect((await read(`/${open.id}`)).body.data).toMatchObject({ circuitState: 'closed', circuitFailureCount: 0 });
  });
});

describe('the list', () => {
  test('the list is newest first, of an application, by isDisabled and by cursor', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.unshift((await made()).id);
    await change(ids[1] ?? '', { isDisabled: true });
    const list = async (query: string) => (await read(`?applicationId=${applicationId}${query}`)).body;
    const idsOf = (body: { data: { id: string }[] }) => body.data.map(({ id }) => id);
    expect(idsOf(await list(''))).toEqual(ids);
    expect(idsOf(await list('&isDisabled=true'))).toEqual([ids[1]]);
    expect(idsOf(await list('&isDisabled=false'))).toEqual([ids[0], ids[2]]);
    const first = await list('&limit=2');
    expect(first.pagination).toEqual({ hasMore: true, nextCursor: expect.any(String) });
    expect([...idsOf(first), ...idsOf(await list(`&limit=2&cursor=${encodeURIComponent(first.pagination.nextCursor)}`))]).toEqual(ids);
    expect((await read('?limit=100')).body.data.length).toBeGreaterThan(3);
  });

  test.each(['limit=0', 'circuitState=broken', 'isDisabled=1', 'cursor=abc'])('the list with %s is 400', async (query) => {
    const { status, body } = await read(`?${query}`);
    expect([status, Object.keys(body.details)]).toEqual([400, [query.split('=')[0]]]);
  });
});
