import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { webhookOrganization } from '../../../src/core/webhook.ts';
import { RedisDeliveryQueue } from '../../../src/data/queue/redis-delivery-queue.ts';
import { newEvent } from '../../support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

const create = (body: object) => world.request('POST', '/api/webhook-applications', { body });
const upsert = (body: object) => world.request('PUT', '/api/webhook-applications/upsert', { body });
const change = (id: string, body: object) => world.request('PATCH', `/api/webhook-applications/${id}`, { body });
const read = (path: string) => world.request('GET', `/api/webhook-applications${path}`);

describe('creating an application', () => {
  test('creating an application answers 201 with the record and its defaults', async () => {
    const { status, body } = await create({ name: 'Acme' });
    expect(status).toBe(201);
    expect(body).toEqual({
      data: {
        id: expect.stringMatching(/^app_/),
        organizationId: expect.stringMatching(/^org_/),
        externalId: null,
        name: 'Acme',
        metadata: {},
        rateLimitPerSecond: 100,
        rateLimitPerMinute: 1000,
        rateLimitPerHour: 10_000,
        isDisabled: false,
        disabledReason: null,
        disableAfterHours: null,
        totalEndpoints: 0,
        totalMessagesSent: 0,
        totalMessagesFailed: 0,
        lastEventAt: null,
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
      },
    });
    expect((await read(`/${body.data.id}`)).body).toEqual(body);
  });

  test('creating an application takes everything that can be set, and is found by its external id', async () => {
    const sent = {
      name: 'Initech',
      externalId: `customer/7 ü ${'🚀'.repeat(242)}`,
      metadata: { tier: 'gold', nested: { a: [1, null] } },
      rateLimitPerSecond: 5,
      rateLimitPerMinute: 50,
      rateLimitPerHour: 500,
      isDisabled: true,
      disabledReason: 'Not yet signed.',
    };
    const { body } = await create(sent);
    expect(body.data).toMatchObject(sent);
    expect((await read(`/by-external-id/${encodeURIComponent(sent.externalId)}`)).body).toEqual(body);
    expect((await read('/by-external-id/nobody')).body).toEqual({ error: 'Not found', message: expect.any(String), details: {} });
  });

  test('creating an application takes a reason without being disabled', async () => {
    const { body } = await create({ name: 'Enabled', disabledReason: 'Not yet paid.' });
    expect(body.data).toMatchObject({ isDisabled: false, disabledReason: 'Not yet paid.' });
    expect((await read(`/${body.data.id}`)).body).toEqual(body);
  });

  test('creating an application with an external id that is taken is 409', async () => {
    await create({ name: 'First', externalId: 'taken' });
    const { status, body } = await create({ name: 'Second', externalId: 'taken' });
    expect([status, body.error]).toEqual([409, 'Conflict']);
  });

  test.each([
    [{}, 'name'],
    [{ name: ' ' }, 'name'],
    [{ name: 'x'.repeat(201) }, 'name'],
    [{ name: 'a', externalId: '' }, 'externalId'],
    [{ name: 'a', externalId: 'a\u0000b' }, 'externalId'],
    [{ name: 'a', externalId: '\ud800' }, 'externalId'],
    [{ name: 'a', externalId: '🚀'.repeat(256) }, 'externalId'],
    [{ name: 'a', metadata: 'x' }, 'metadata'],
    [{ name: 'a', metadata: { x: 'y'.repeat(8192) } }, 'metadata'],
    [{ name: 'a', rateLimitPerSecond: 0 }, 'rateLimitPerSecond'],
    [{ name: 'a', rateLimitPerMinute: 1.5 }, 'rateLimitPerMinute'],
    [{ name: 'a', rateLimitPerHour: '10' }, 'rateLimitPerHour'],
    [{ name: 'a', rateLimitPerSecond: 1_000_001 }, 'rateLimitPerSecond'],
    [{ name: 'a', rateLimitPerMinute: 60_000_001 }, 'rateLimitPerMinute'],
    [{ name: 'a', rateLimitPerHour: 3_600_000_001 }, 'rateLimitPerHour'],
    [{ name: 'a', disabledReason: 'x'.repeat(501) }, 'disabledReason'],
    [{ name: 'a', isDisabledd: true }, 'isDisabledd'],
  ])('creating an application of %j is 400 with the field in the details', async (sent, field) => {
    const { status, body } = await create(sent);
    expect(status).toBe(400);
    expect(body).toEqual({ error: 'Invalid input', message: expect.stringContaining(field), details: { [field]: [expect.any(String)] } });
  });
});

test('limits of an application go so far that no hour bounds what a second allows', async () => {
  const limits = { rateLimitPerSecond: 1_000_000, rateLimitPerMinute: 60_000_000, rateLimitPerHour: 3_600_000_000 };
  const { status, body } = await create({ name: 'a', ...limits });
  expect([status, body.data]).toEqual([201, expect.objectContaining(limits)]);
});

describe('an upsert', () => {
  test('an upsert creates with 201, then changes with 200 and keeps what is not sent', async () => {
    const first = await upsert({ externalId: 'up-1', name: 'One', metadata: { a: 1 }, rateLimitPerSecond: 7 });
    expect([first.status, first.body.created]).toEqual([201, true]);
    const second = await upsert({ externalId: 'up-1', name: 'Two', rateLimitPerHour: 70 });
    expect([second.status, second.body.created]).toEqual([200, false]);
    expect(second.body.data).toMatchObject({
      id: first.body.data.id,
      name: 'Two',
      metadata: { a: 1 },
      rateLimitPerSecond: 7,
      rateLimitPerHour: 70,
    });
  });

  test('an upsert at the same time as others makes one application', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => upsert({ externalId: 'up-together', name: `n${n}` })));
    expect(answers.filter(({ status }) => status === 201).length).toBe(1);
    expect(answers.filter(({ status }) => status === 200).length).toBe(19);
    expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(1);
  });

  test.each([
    [{ name: 'a' }, 'externalId'],
    [{ externalId: 'a' }, 'name'],
  ])('an upsert of %j is 400', async (sent, field) => {
    const { status, body } = await upsert(sent);
    expect([status, Object.keys(body.details)]).toEqual([400, [field]]);
  });
});

describe('changing an application', () => {
  test('changing an application keeps what is not sent', async () => {
    const { body } = await create({ name: 'Keep', metadata: { a: 1 }, rateLimitPerMinute: 60 });
    const changed = await change(body.data.id, { rateLimitPerSecond: 3, metadata: { b: 2 } });
    expect(changed.status).toBe(200);
    expect(changed.body.data).toMatchObject({ name: 'Keep', metadata: { b: 2 }, rateLimitPerSecond: 3, rateLimitPerMinute: 60 });
    expect((await read(`/${body.data.id}`)).body).toEqual(changed.body);
  });

  test('changing an application disables it with a reason, and enabling takes the reason away', async () => {
    const { id } = (await create({ name: 'Off' })).body.data;
    expect((await change(id, { isDisabled: true, disabledReason: 'Unpaid.' })).body.data).toMatchObject({
      isDisabled: true,
      disabledReason: 'Unpaid.',
    });
    expect((await change(id, { isDisabled: false })).body.data).toMatchObject({ isDisabled: false, disabledReason: null });
  });

  test('changing an application sets disableAfterHours, and null takes it away', async () => {
    const { id } = (await create({ name: 'Failing' })).body.data;
    expect((await change(id, { disableAfterHours: 72 })).body.data).toMatchObject({ disableAfterHours: 72 });
    expect((await change(id, { disableAfterHours: null })).body.data).toMatchObject({ disableAfterHours: null });
    expect((await change(id, { disableAfterHours: 8761 })).status).toBe(400);
  });

  test('changing an application sets the reason alone, too, and keeps it when it is disabled', async () => {
    const { id } = (await create({ name: 'Late' })).body.data;
    const { body } = await change(id, { disabledReason: 'Unpaid.' });
    expect(body.data).toMatchObject({ isDisabled: false, disabledReason: 'Unpaid.' });
    expect((await read(`/${id}`)).body).toEqual(body);
    expect((await change(id, body.data)).body).toEqual(body);
    expect((await change(id, { isDisabled: true })).body.data).toMatchObject({ isDisabled: true, disabledReason: 'Unpaid.' });
    expect((await change(id, { disabledReason: null })).body.data).toMatchObject({ isDisabled: true, disabledReason: null });
  });

  test('changing an application ignores what is read-only, takes the same external id and refuses another', async () => {
    const { body } = await create({ name: 'Same', externalId: 'same-1' });
    expect((await change(body.data.id, { ...body.data, totalEndpoints: 9 })).body.data.totalEndpoints).toBe(0);
    expect((await change(body.data.id, { externalId: 'same-2' })).body).toMatchObject({
      error: 'Invalid input',
      details: { externalId: [expect.any(String)] },
    });
  });
});

test('deleting answers success, and the external id is free again', async () => {
  const { body } = await create({ name: 'Gone', externalId: 'gone-1' });
  const answer = await world.request('DELETE', `/api/webhook-applications/${body.data.id}`);
  expect([answer.status, answer.body]).toEqual([200, { success: true }]);
  expect((await read(`/${body.data.id}`)).status).toBe(404);
  expect((await change(body.data.id, { name: 'x' })).status).toBe(404);
  expect((await create({ name: 'Again', externalId: 'gone-1' })).status).toBe(201);
});

test('an application that a custom resource keeps cannot be changed through the API', async () => {
  const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const kept = await world.webhooks.createApplication({ org, shard: 0, name: 'Git', externalId: 'git-1', managedBy: 'acme/customer' });
  const answers = [
    await change(kept.id, { name: 'API' }),
    await upsert({ externalId: 'git-1', name: 'API' }),
    await world.request('DELETE', `/api/webhook-applications/${kept.id}`),
  ];
  for (const { status, body, headers } of answers) {
    expect([status, headers.get('x-error-code'), body.error]).toEqual([409, 'FIELD_MANAGED', 'Conflict']);
    expect(body.message).toContain('acme/customer');
  }
});

describe('the list', () => {
  const names = async (query: string) => (await read(query)).body.data.map(({ name }: { name: string }) => name);
  beforeAll(async () => {
    for (const name of ['list b', 'list a', 'list c']) await create({ name, externalId: `ext-${name.replace(' ', '-')}` });
    const { id } = (await read('?search=list%20c')).body.data[0];
    await change(id, { isDisabled: true });
  });

  test('the list is newest first, or as requested', async () => {
    expect(await names('?search=list')).toEqual(['list c', 'list a', 'list b']);
    expect(await names('?search=list&order=asc')).toEqual(['list b', 'list a', 'list c']);
    expect(await names('?search=list&orderBy=name&order=asc')).toEqual(['list a', 'list b', 'list c']);
    expect(await names('?search=list&orderBy=name')).toEqual(['list c', 'list b', 'list a']);
  });

  test('filters by a part of the name or the external id, and by isDisabled', async () => {
    expect(await names('?search=EXT-LIST-A')).toEqual(['list a']);
    expect(await names('?search=list&isDisabled=true')).toEqual(['list c']);
    expect(await names('?search=list&isDisabled=false')).toEqual(['list a', 'list b']);
  });

  test('the list continues by cursor, each once', async () => {
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await read(`?search=list&limit=1${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`);
      seen.push(...body.data.map(({ name }: { name: string }) => name));
      expect(body.pagination.hasMore).toBe(body.pagination.nextCursor !== null);
      if (body.pagination.nextCursor === null) break;
      cursor = body.pagination.nextCursor;
    }
    expect(seen).toEqual(['list c', 'list a', 'list b']);
  });

  test.each(['limit=0', 'limit=101', 'orderBy=id', 'order=up', 'isDisabled=1', 'cursor=abc'])('the list with %s is 400', async (query) => {
    const { status, body } = await read(`?${query}`);
    expect([status, Object.keys(body.details)]).toEqual([400, [query.split('=')[0]]]);
  });
});

test('the totals count what was delivered and what was given up for all endpoints together, and when the last event came', async () => {
  const { id } = (await create({ name: 'Counted' })).body.data;
  const org = webhookOrganization((await world.store.get('Organization', { name: 'acme' })).status?.id ?? '');
  const queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  for (const [endpoint, outcome] of [
    ['ep_a', delivered],
    ['ep_b', delivered],
    ['ep_b', dead],
  ] as const) {
    const event = newEvent({ org, destinations: [endpoint] });
    await world.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId: id })) });
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), outcome);
  }
  const { data } = (await read(`/${id}`)).body;
  expect(data).toMatchObject({ totalMessagesSent: 2, totalMessagesFailed: 1, lastEventAt: expect.any(String) });
  expect((await read('?search=Counted')).body.data).toEqual([data]);
});
