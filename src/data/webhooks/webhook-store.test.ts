import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { commandConnection } from '../../redis/connection.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';

const org = 'org_a';
const prefix = 'test:';
let redis: RedisServer;
let clock: FakeClock;
let store: RedisWebhookStore;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  clock = new FakeClock();
  store = new RedisWebhookStore({ redis: redis.client, prefix, clock, logger: silentLogger });
});

const notFound = { code: 'RESOURCE_NOT_FOUND' };
const conflict = { code: 'CONFLICT' };
const eventTypes = Array.from({ length: 100 }, (_, i) => `etp_${String(i).padStart(4, '0').padStart(26, 'a')}`);
const [etpA = '', etpB = ''] = eventTypes;
const makeApplication = (more = {}) => store.createApplication({ org, name: 'Acme', shard: 0, ...more });

describe('an application', () => {
  test('an application is read as it was made, by id and by external id, in its organization alone', async () => {
    const made = await makeApplication({
      externalId: 'customer-1',
      metadata: { tier: 'gold', empty: [], none: {} },
      shard: 3,
      rateLimits: { perHour: 7 },
    });
    expect(made).toEqual({
      id: expect.stringMatching(/^app_[a-z2-7]{26}$/),
      org,
      externalId: 'customer-1',
      name: 'Acme',
      metadata: { tier: 'gold', empty: [], none: {} },
      rateLimits: { perSecond: 100, perMinute: 1000, perHour: 7 },
      isDisabled: false,
      disabledReason: null,
      disableAfterHours: null,
      shard: 3,
      createdAtMs: clock.now(),
      updatedAtMs: clock.now(),
      revision: 1,
      managedBy: null,
    });
    expect(await store.application(org, made.id)).toEqual(made);
    expect(await store.applicationByExternalId(org, 'customer-1')).toEqual(made);
    expect(await store.application('org_b', made.id)).toBeNull();
    expect(await store.applicationByExternalId('org_b', 'customer-1')).toBeNull();
  });

  test.each(['', 'app_', 'app_aaaaaaaaab', 'nonsense', 'app_aaaaaaaaabaaaaaaaaaaaaaaaa', 'ep_aaaaaaaaabaaaaaaaaaaaaaaaa', '../../x'])(
    'is not found by the id %j',
    async (id) => {
      await makeApplication();
      expect(await store.application(org, id)).toBeNull();
      await expect(store.updateApplication(org, id, { name: 'x' })).rejects.toMatchObject(notFound);
      await expect(store.deleteApplication(org, id)).rejects.toMatchObject(notFound);
    },
  );

  test('an application has an external id of its own, which is free again when it is deleted or changed', async () => {
    const first = await makeApplication({ externalId: 'one' });
    await expect(makeApplication({ externalId: 'one' })).rejects.toMatchObject(conflict);
    const second = await makeApplication({ externalId: 'two' });
    await expect(store.updateApplication(org, second.id, { externalId: 'one' })).rejects.toMatchObject(conflict);
    await store.updateApplication(org, first.id, { externalId: 'other' });
    await store.updateApplication(org, second.id, { externalId: 'one' });
    expect((await store.applicationByExternalId(org, 'one'))?.id).toBe(second.id);
    expect(await store.applicationByExternalId(org, 'two')).toBeNull();
    await store.deleteApplication(org, second.id);
    expect((await makeApplication({ externalId: 'one' })).id).not.toBe(second.id);
    expect((await store.createApplication({ org: 'org_b', name: 'b', shard: 0, externalId: 'one' })).externalId).toBe('one');
  });

  test('an application changes in what is given, with a new revision; an equal change is none', async () => {
    const made = await makeApplication({ metadata: { a: 1 } });
    await clock.advance(1000);
    expect(await store.updateApplication(org, made.id, { name: 'Acme', rateLimits: { perSecond: 100 } })).toEqual(made);
    const changed = await store.updateApplication(org, made.id, {
      rateLimits: { perSecond: 5 },
      isDisabled: true,
      disabledReason: 'unpaid',
    });
    expect(changed).toEqual({
      ...made,
      rateLimits: { perSecond: 5, perMinute: 1000, perHour: 10_000 },
      isDisabled: true,
      disabledReason: 'unpaid',
      updatedAtMs: made.createdAtMs + 1000,
      revision: 2,
    });
    expect(await store.application(org, made.id)).toEqual(changed);
    const enabled = await store.updateApplication(org, made.id, { isDisabled: false });
    expect(enabled).toMatchObject({ isDisabled: false, disabledReason: null, revision: 3 });
  });

  test('an application does not change when its revision is not the expected one', async () => {
    const { id } = await makeApplication();
    await store.updateApplication(org, id, { name: 'first' }, 1);
    await expect(store.updateApplication(org, id, { name: 'second' }, 1)).rejects.toMatchObject(conflict);
    expect((await store.application(org, id))?.name).toBe('first');
  });

  test('an application is made once by an upsert and changed by the next, which keeps what it does not name', async () => {
    const first = await store.upsertApplication({ org, externalId: 'x', name: 'One', metadata: { a: 1 }, shard: 2 });
    expect(first.created).toBe(true);
    const second = await store.upsertApplication({ org, externalId: 'x', name: 'Two', rateLimits: { perMinute: 6 }, shard: 5 });
    expect(second).toEqual({
      created: false,
      application: { ...first.application, name: 'Two', rateLimits: { perSecond: 100, perMinute: 6, perHour: 10_000 }, revision: 2 },
    });
  });

  test('an application of a custom resource keeps the id it comes with, which no other can have', async () => {
    const id = `app_${'q'.repeat(26)}`;
    const made = await makeApplication({ id, managedBy: 'acme/shop' });
    expect(made).toMatchObject({ id, managedBy: 'acme/shop' });
    expect(await store.application(org, id)).toEqual(made);
    await expect(makeApplication({ id })).rejects.toMatchObject(conflict);
    await store.updateApplication(org, id, { name: 'changed' });
    expect((await store.application(org, id))?.name).toBe('changed');
    await store.deleteApplication(org, id);
    expect(await store.application(org, id)).toBeNull();
    expect((await makeApplication({ id })).id).toBe(id);
  });
});

describe('an endpoint', () => {
  test('an endpoint is read as it was made; its secret is sealed for its id', async () => {
    const application = await makeApplication();
    const made = await store.createEndpoint(
      newWebhookEndpoint(application.id, {
        headers: [{ name: 'x-a', value: '1' }],
        circuit: { cooldownSeconds: 5 },
        rateLimitPerSecond: 9,
      }),
    );
    expect(made).toEqual({
      id: expect.stringMatching(/^ep_[a-z2-7]{26}$/),
      org,
      applicationId: application.id,
      url: 'https://customer.example/hooks',
      description: null,
      headers: [{ name: 'x-a', value: '1' }],
      headerTemplates: [],
      timeoutSeconds: 30,
      rateLimitPerSecond: 9,
      rateLimitStrict: false,
      ordered: false,
      retryDelaysSeconds: null,
      expiresAfterSeconds: null,
      successStatusCodes: null,
      circuit: { failureThreshold: 5, successThreshold: 2, cooldownSeconds: 5 },
      payloadForm: 'full',
      signatureScheme: 'hmac-sha256',
      secret: { sealed: `sealed for ${made.id}`, prefix: 'whsec_abcd', version: 1, previous: [] },
      signingKey: null,
      isDisabled: false,
      disabledReason: null,
      disableAfterHours: null,
      createdAtMs: clock.now(),
      updatedAtMs: clock.now(),
      revision: 1,
      managedBy: null,
    });
    expect(await store.endpoint(org, made.id)).toEqual(made);
    expect(await store.endpointCounts(org, [application.id, 'app_x'])).toEqual(
      new Map([
        [application.id, 1],
        ['app_x', 0],
      ]),
    );
  });

  test('an endpoint needs an application that is there', async () => {
    await expect(store.createEndpoint(newWebhookEndpoint(`app_${'a'.repeat(26)}`))).rejects.toMatchObject(notFound);
    const { id } = await makeApplication();
    await store.deleteApplication(org, id);
    await expect(store.createEndpoint(newWebhookEndpoint(id))).rejects.toMatchObject(notFound);
  });

  test('an endpoint rotates its secret once of two rotations that begin with the same one', async () => {
    const { id: applicationId } = await makeApplication();
    const { id, secret, revision } = await store.createEndpoint(newWebhookEndpoint(applicationId));
    const rotate = (sealed: string) =>
      store.updateEndpoint(
        org,
        id,
        { secret: { sealed, prefix: 'whsec_efgh', version: 2, previous: [{ sealed: secret.sealed, validUntilMs: 5 }] } },
        revision,
      );
    const rotations = await Promise.allSettled([rotate('one'), rotate('two')]);
    expect(rotations.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const after = await store.endpoint(org, id);
    expect(['one', 'two']).toContain(after?.secret.sealed);
    expect(after?.secret).toMatchObject({ version: 2, previous: [{ sealed: secret.sealed, validUntilMs: 5 }] });
  });
});

describe('a subscription', () => {
  const makeEndpoint = async () => store.createEndpoint(newWebhookEndpoint((await makeApplication()).id));

  test('a subscription is read as it was made, and changes', async () => {
    const endpoint = await makeEndpoint();
    const made = await store.createSubscription({
      org,
      endpointId: endpoint.id,
      eventTypeId: etpA,
      filterExpression: 'event.data.total > 5',
      labelFilters: { region: ['eu', 'us'], tier: 'gold' },
      labelFilterMode: 'any',
    });
    expect(made).toEqual({
      id: expect.stringMatching(/^sub_[a-z2-7]{26}$/),
      org,
      endpointId: endpoint.id,
      applicationId: endpoint.applicationId,
      eventTypeId: etpA,
      filterExpression: 'event.data.total > 5',
      labelFilters: { region: ['eu', 'us'], tier: 'gold' },
      labelFilterMode: 'any',
      transformId: null,
      isEnabled: true,
      lastFilterError: null,
      createdAtMs: clock.now(),
      updatedAtMs: clock.now(),
      revision: 1,
      managedBy: null,
    });
    expect(await store.subscription(org, made.id)).toEqual(made);
    const changed = await store.updateSubscription(org, made.id, { filterExpression: null, labelFilters: {}, isEnabled: false });
    expect(changed).toEqual({ ...made, filterExpression: null, labelFilters: {}, isEnabled: false, revision: 2 });
    expect(await store.subscription(org, made.id)).toEqual(changed);
  });

  test('a subscription shows what its filter failed with until it has another, also when that is noted late', async () => {
    const { id: endpointId } = await makeEndpoint();
    const [first, second] = ['event.data.total > 5', 'event.data.total > 6'];
    const { id } = await store.createSubscription({ org, endpointId, eventTypeId: etpA, filterExpression: first });
    const shown = async () => (await store.subscription(org, id))?.lastFilterError;
    for (const [before, after] of [
      [first, second],
      [second, null],
    ] as const) {
      const failed = { filterExpression: before, error: 'no total' };
      await store.noteFilterError(org, id, failed);
      await store.updateSubscription(org, id, { labelFilterMode: 'any' });
      expect(await shown()).toBe('no total');
      await store.updateSubscription(org, id, { filterExpression: after });
      expect(await shown()).toBeNull();
      await store.noteFilterError(org, id, failed);
      expect(await shown()).toBeNull();
    }
  });

  test('a subscription is the only one of its endpoint and event type', async () => {
    const one = await makeEndpoint();
    const other = await makeEndpoint();
    const first = await store.createSubscription({ org, endpointId: one.id, eventTypeId: etpA });
    await expect(store.createSubscription({ org, endpointId: one.id, eventTypeId: etpA })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: 'Duplicate subscription',
    });
    await store.createSubscription({ org, endpointId: one.id, eventTypeId: etpB });
    await store.createSubscription({ org, endpointId: other.id, eventTypeId: etpA });
    expect(await store.subscriptionCounts(org, [etpA, etpB, 'etp_none'])).toEqual(
      new Map([
        [etpA, 2],
        [etpB, 1],
        ['etp_none', 0],
      ]),
    );
    expect(await store.subscriptionCountsOfEndpoints(org, [one.id, other.id])).toEqual(
      new Map([
        [one.id, 2],
        [other.id, 1],
      ]),
    );
    await store.deleteSubscription(org, first.id);
    expect((await store.createSubscription({ org, endpointId: one.id, eventTypeId: etpA })).id).not.toBe(first.id);
  });

  test('a subscription in bulk is made where there is none, and the rest is counted', async () => {
    const { id: endpointId } = await makeEndpoint();
    await store.createSubscription({ org, endpointId, eventTypeId: etpB });
    const { created, skipped } = await store.createSubscriptions({ org, endpointId, labelFilters: { a: 'b' } }, [
      ...eventTypes.slice(0, 99),
      etpA,
    ]);
    expect([created.length, skipped]).toEqual([98, 2]);
    expect(created[0]).toMatchObject({ eventTypeId: etpA, labelFilters: { a: 'b' } });
    expect(await store.subscription(org, created[50]?.id ?? '')).toEqual(created[50]);
    await expect(store.createSubscriptions({ org, endpointId: `ep_${'a'.repeat(26)}` }, [etpA])).rejects.toMatchObject(notFound);
  });
});

describe('many at a time', () => {
  const clients = 64;
  const connections = (): RedisWebhookStore[] =>
    Array.from({ length: clients }, () => new RedisWebhookStore({ redis: commandConnectionOf(), prefix, clock, logger: silentLogger }));
  const opened: ReturnType<typeof commandConnection>[] = [];
  const commandConnectionOf = () => {
    const connection = commandConnection(redis.url, { commandTimeoutMs: 20_000 });
    opened.push(connection);
    return connection;
  };
  afterAll(() => {
    for (const connection of opened) connection.disconnect();
  });

  test('64 clients that upsert the same external id make one application, and every change comes through', async () => {
    const stores = connections();
    await Promise.all(opened.map((connection) => connection.connect()));
    const answers = await Promise.all(
      stores.map((each, i) => each.upsertApplication({ org, externalId: 'same', name: `client ${i}`, shard: 0 })),
    );
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(answers.map(({ application }) => application.id)).size).toBe(1);
    expect((await store.applications(org, {}, { limit: 100 })).items).toHaveLength(1);
    expect((await store.applicationByExternalId(org, 'same'))?.revision).toBe(clients);
  });

  test('bulk subscriptions that race make no duplicates', async () => {
    const stores = connections();
    await Promise.all(opened.filter(({ status }) => status === 'wait').map((connection) => connection.connect()));
    const { id: endpointId } = await store.createEndpoint(newWebhookEndpoint((await makeApplication()).id));
    const answers = await Promise.all(
      stores.map((each, i) =>
        each.createSubscriptions({ org, endpointId }, i % 2 === 0 ? eventTypes : eventTypes.toReversed().slice(0, 50)),
      ),
    );
    expect(
      answers
        .flatMap(({ created }) => created)
        .map(({ eventTypeId }) => eventTypeId)
        .toSorted(),
    ).toEqual(eventTypes);
    expect(answers.reduce((sum, { created, skipped }) => sum + created.length + skipped, 0)).toBe(32 * 100 + 32 * 50);
    expect(await store.subscriptionCountsOfEndpoints(org, [endpointId])).toEqual(new Map([[endpointId, 100]]));
  });
});

test('a script that is sent again does nothing again', async () => {
  const calls: [string, ...unknown[]][] = [];
  const twice = new Proxy(redis.client, {
    get(target, name) {
      if (name !== 'call') return Reflect.get(target, name).bind?.(target) ?? Reflect.get(target, name);
      return async (...args: [string, ...string[]]) => {
        calls.push(args);
        const first = await target.call(...args);
        // What was to be answered is lost with the connection; the client sends again.
        return args[0] === 'EVALSHA' ? await target.call(...args) : first;
      };
    },
  });
  const again = new RedisWebhookStore({ redis: twice, prefix, clock, logger: silentLogger });
  const application = await again.createApplication({ org, name: 'A', shard: 0, externalId: 'x' });
  const endpoint = await again.createEndpoint(newWebhookEndpoint(application.id));
  const { created } = await again.createSubscriptions({ org, endpointId: endpoint.id }, [etpA, etpB]);
  expect(created).toHaveLength(2);
  expect((await again.updateApplication(org, application.id, { name: 'B' })).revision).toBe(2);
  expect((await store.applications(org, {}, { limit: 10 })).items).toHaveLength(1);
  expect((await store.endpoints(org, {}, { limit: 10 })).items).toEqual([endpoint]);
  expect(await store.endpointCounts(org, [application.id])).toEqual(new Map([[application.id, 1]]));
  expect(await store.subscriptionCounts(org, [etpA])).toEqual(new Map([[etpA, 1]]));
  await again.deleteSubscription(org, created[0]?.id ?? '');
  await again.deleteEndpoint(org, endpoint.id);
  await again.deleteApplication(org, application.id);
  expect(await store.subscriptionCounts(org, [etpA, etpB])).toEqual(
    new Map([
      [etpA, 0],
      [etpB, 0],
    ]),
  );
  expect(calls.length).toBeGreaterThan(10);
});

test('creations under one mark at once make one, and so do later ones, until it is deleted', async () => {
  const create = () => store.createApplication({ org, name: 'Marked', shard: 0, mark: 'of one request' });
  const made = await Promise.all(Array.from({ length: 16 }, create));
  expect(new Set(made.map(({ id }) => id)).size).toBe(1);
  const [application] = made;
  expect(await create()).toEqual(application);
  expect((await store.createApplication({ org, name: 'Marked', shard: 0, mark: 'of another' })).id).not.toBe(application?.id);
  await store.deleteApplication(org, application?.id ?? '');
  expect((await create()).id).not.toBe(application?.id);
});
