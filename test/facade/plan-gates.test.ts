import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Plan } from '../../src/core/records.ts';
import { hashFields } from '../../src/data/shard/hash-fields.ts';
import { recordKey } from '../../src/data/shard/record-key.ts';
import type { SpecInputOf } from '../../src/resources/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

/** Objects made by kubectl, even if the API would have refused them. */
let world: FacadeWorld;
let to: Receiver;
beforeAll(async () => {
  world = await startFacadeWorld({ inForceTimeoutMs: 200 });
  to = await startReceiver();
  await world.startWorker();
});
afterAll(async () => {
  await world.stop();
  await to.close();
});

async function plan(slug: string, wanted: Plan): Promise<void> {
  await world.addOrganization(slug, wanted);
  const id = await world.organizationId(slug);
  await eventually(async () => expect(await world.registry.get('organization', id)).toMatchObject({ plan: wanted }));
}
const named = (namespace: string) => ({ name: 'gated', namespace });
const destination = (namespace: string, spec: SpecInputOf<'Destination'>) =>
  world.store.apply({ kind: 'Destination', metadata: named(namespace), spec }, { manager: 'kubectl', force: true });
const cronJob = (namespace: string, spec: Partial<SpecInputOf<'HttpCronJob'>> = {}) =>
  world.store.apply(
    {
      kind: 'HttpCronJob',
      metadata: named(namespace),
      spec: { schedule: '0 6 1 1 *', url: to.url, useStaticIp: true, ...spec },
    },
    { manager: 'kubectl', force: true },
  );

/** Condition Accepted, and the reason of Programmed, once the controllers have seen the object. */
async function expectConditions(
  kind: 'Destination' | 'HttpCronJob',
  namespace: string,
  accepted: string,
  programmed: string,
): Promise<void> {
  await eventually(async () => {
    const { metadata, status } = await world.store.get(kind, named(namespace));
    const of = (type: string) => status?.conditions?.find((condition) => condition.type === type);
    expect(of('Accepted')).toMatchObject({ reason: accepted, observedGeneration: metadata.generation });
    expect(of('Programmed')).toMatchObject({ reason: programmed, observedGeneration: metadata.generation });
  });
}

/** A route to `gated`; returns how to send an event to it. */
async function routeTo(slug: string, key: string, fields: object = {}): Promise<() => Promise<string>> {
  const { id: sourceId } = await world.create('sources', {}, key);
  const { body } = await world.request('GET', '/api/destinations/gated', { key });
  const { id: routeId } = await world.create('routes', { sourceId, destinationIds: [body.id], ...fields }, key);
  const org = await world.organizationId(slug);
  return async () => {
    const { targets, ...event } = newEvent({ org, sourceId, destinations: [body.id] });
    await world.acceptor.accept({ ...event, targets: targets.map((target) => ({ ...target, routeId })) });
    return targets[0]?.messageId ?? '';
  };
}

test('after a downgrade the messages of a throttled destination wait, and go out once the plan or the spec is another', async () => {
  await plan('down', 'starter');
  const key = await world.addKey('down');
  const throttle = { mode: 'rate', rateLimit: 100, rateUnit: 'second' } as const;
  await destination('down', { http: { url: to.url }, throttle });
  await expectConditions('Destination', 'down', 'Accepted', 'Programmed');
  const send = await routeTo('down', key);
  await send();
  await to.arrived(1);
  const status = async (id: string) => (await world.request('GET', `/api/deliveries/${id}`, { key })).body.status;

  await plan('down', 'free');
  await expectConditions('Destination', 'down', 'PlanTooLow', 'Suspended');
  const held = await send();
  await eventually(async () => expect(await world.redis.client.scard('test:{s0}:paused')).toBe(1));
  await eventually(async () => expect(await status(held)).toBe('pending'));
  expect(to.requests).toHaveLength(1);
  const { routeId, destinationId, eventId } = (await world.request('GET', `/api/deliveries/${held}`, { key })).body;
  const explain = async (id: string) => (await world.request('GET', `/api/explain/${id}`, { key })).body;
  const why = 'throttle mode rate needs a paid plan; this organization has free';
  const route = await explain(routeId);
  const text = `The destination ${destinationId} is suspended: ${why}. Deliveries to it wait.`;
  expect(route.story).toContainEqual(expect.objectContaining({ what: 'destination_suspended', text }));
  expect(route.advice).toContainEqual(expect.objectContaining({ command: expect.stringContaining(`/explain/${destinationId}`) }));
  expect((await explain(destinationId)).summary).toContain(why);
  for (const id of [held, eventId])
    await eventually(async () => expect((await explain(id)).waitsFor).toMatchObject({ reason: 'destination_suspended' }));
  const tried = await world.request('POST', '/api/destinations/gated/test', { key, body: {} });
  expect(tried).toMatchObject({
    status: 403,
    body: {
      error: 'Forbidden',
      code: 'FORBIDDEN',
      message: 'The destination is suspended: throttle mode rate needs a paid plan; this organization has free.',
    },
  });

  await plan('down', 'starter');
  await expectConditions('Destination', 'down', 'Accepted', 'Programmed');
  await to.arrived(2);
  await eventually(async () => expect(await status(held)).toBe('delivered'));

  await plan('down', 'free');
  await expectConditions('Destination', 'down', 'PlanTooLow', 'Suspended');
  await send();
  await destination('down', { http: { url: to.url } });
  await to.arrived(3);
});

test('a warehouse keeps its messages below the plan pro', async () => {
  await plan('lake', 'starter');
  const key = await world.addKey('lake');
  const s3 = { bucket: 'acme-events', region: 'eu-central-1' };
  await destination('lake', { type: 's3', s3, warehouse: { identity: 'platform' } });
  await expectConditions('Destination', 'lake', 'PlanTooLow', 'Suspended');
  const send = await routeTo('lake', key);
  const before = await world.redis.client.scard('test:{s0}:paused');
  const held = await send();
  await eventually(async () => expect(await world.redis.client.scard('test:{s0}:paused')).toBe(before + 1));
  await eventually(async () => {
    const { body } = await world.request('GET', `/api/deliveries/${held}`, { key });
    expect(body).toMatchObject({ status: 'pending', attempts: 0 });
  });
  await plan('lake', 'pro');
  await expectConditions('Destination', 'lake', 'Accepted', 'Programmed');
});

test('after a downgrade a cron job with a static address does not run, keeps its history, and runs again with the plan', async () => {
  await plan('cron', 'pro');
  const key = await world.addKey('cron');
  await cronJob('cron');
  await expectConditions('HttpCronJob', 'cron', 'Accepted', 'Programmed');
  const { cronJob: job } = (await world.request('GET', '/api/cron/gated', { key })).body;
  expect(job.nextRunAt).not.toBeNull();
  expect((await world.request('POST', '/api/cron/gated/trigger', { key })).status).toBe(200);

  await plan('cron', 'free');
  await expectConditions('HttpCronJob', 'cron', 'PlanTooLow', 'Suspended');
  await eventually(async () => expect(await world.registry.getOfAny('cronJob', job.id)).toMatchObject({ enabled: false }));
  const triggered = await world.request('POST', '/api/cron/gated/trigger', { key });
  expect([triggered.status, triggered.body]).toEqual([
    403,
    { error: 'The cron job is suspended: useStaticIp needs a paid plan; this organization has free.' },
  ]);
  expect((await world.request('GET', '/api/cron/gated', { key })).body.cronJob).toMatchObject({ isActive: true, nextRunAt: null });
  expect((await world.request('GET', '/api/cron/gated/executions', { key })).body.executions).toHaveLength(1);

  await plan('cron', 'pro');
  await expectConditions('HttpCronJob', 'cron', 'Accepted', 'Programmed');
  await eventually(async () => expect(await world.registry.getOfAny('cronJob', job.id)).toMatchObject({ enabled: true }));
});

test('a destination with a static address needs a paid plan too', async () => {
  await plan('fixed', 'free');
  await destination('fixed', { http: { url: to.url, useStaticIp: true } });
  await expectConditions('Destination', 'fixed', 'PlanTooLow', 'Suspended');
  await destination('fixed', { http: { url: to.url } });
  await expectConditions('Destination', 'fixed', 'Accepted', 'Programmed');
});

test.each([
  ['Filter', 'filters', { conditions: [{ field: 'a', operator: 'matches', value: '(' }] }, { logic: 'OR' }],
  ['Transform', 'transforms', { type: 'jsonata', code: '(' }, { code: '{' }],
  ['PayloadSchema', 'schemas', { jsonSchema: { type: 'objekt' } }, { jsonSchema: { type: 'sting' } }],
] as const)('a %s whose code does not compile is judged when a change is of its code', async (kind, collection, code, other) => {
  await world.store.apply({ kind, metadata: { name: 'uncompiled', namespace: 'acme' }, spec: code }, { manager: 'kubectl' });
  const path = `/api/${collection}/uncompiled`;
  const patch = (body: object) => world.request('PATCH', path, { body });
  const renamed = { name: 'Other', description: 'That of the old shop.' };
  expect(await patch(renamed)).toMatchObject({ status: 200, body: { ...renamed, ...code } });
  const { body: record } = await world.request('GET', path);
  expect(await patch({ ...record, name: 'Sent back' })).toMatchObject({ status: 200, body: { name: 'Sent back', ...code } });
  expect(await patch(other)).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } });
});

test('a destination whose credential no header can carry is not accepted, and takes back what it gave', async () => {
  const applied = { manager: 'kubectl', force: true } as const;
  for (const [i, value] of ['a-token-of\n€\ud83d\udca9!', 'short\n€'].entries()) {
    const name = `unsendable-${i}`;
    const path = `/api/destinations/${name}`;
    const data = { token: Buffer.from(value).toString('base64') };
    await world.store.apply({ kind: 'Secret', metadata: { name, namespace: 'acme' }, data }, applied);
    const spec = { http: { url: to.url, auth: { type: 'bearer' as const, tokenSecretRef: { name, key: 'token' } } } };
    await world.store.apply({ kind: 'Destination', metadata: { name, namespace: 'acme' }, spec }, applied);
    await eventually(async () => {
      const { status } = await world.store.get('Destination', { name, namespace: 'acme' });
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Accepted', status: 'False', reason: 'InvalidAuth' }));
    });
    const { body: before } = await world.request('GET', path);
    expect(before.authConfig.token).toMatch(/^•{4}/);
    const changed = await world.request('PATCH', path, { body: { ...before, description: value.slice(0, 5) } });
    expect([changed.status, changed.body.authConfig]).toEqual([200, before.authConfig]);
    const sent = await world.request('PATCH', path, { body: { authConfig: { token: value } } });
    expect([sent.status, sent.body.code]).toEqual([400, 'VALIDATION_FAILED']);
  }
});

test('a warehouse whose access key id no header can carry is not accepted, and takes back what it gave', async () => {
  await plan('lakes', 'pro');
  const key = await world.addKey('lakes');
  const data = { secret: Buffer.from('a-secret-key').toString('base64') };
  await world.store.apply({ kind: 'Secret', metadata: named('lakes'), data }, { manager: 'kubectl' });
  const s3 = { bucket: 'acme-events', region: 'eu-central-1', secretAccessKeySecretRef: { name: 'gated', key: 'secret' } };
  await destination('lakes', { type: 's3', s3: { ...s3, accessKeyId: 'AKIA€' } });
  await expectConditions('Destination', 'lakes', 'InvalidCredentials', 'NothingInForce');
  const { body: before } = await world.request('GET', '/api/destinations/gated', { key });
  expect(before.config.accessKeyId).toBe('AKIA€');
  const changed = await world.request('PATCH', '/api/destinations/gated', { key, body: { ...before, description: 'Kept.' } });
  expect(changed).toMatchObject({ status: 200, body: { config: before.config, description: 'Kept.' } });
});

test('a route whose filter, and a destination whose Secret, is gone are disabled all the same: their messages wait', async () => {
  await plan('parts', 'pro');
  const key = await world.addKey('parts');
  const applied = { manager: 'kubectl', force: true } as const;
  const restore = async (): Promise<void> => {
    const conditions = [{ field: 'payload', operator: 'exists' as const }];
    await world.store.apply({ kind: 'Filter', metadata: named('parts'), spec: { conditions } }, applied);
    const data = { token: Buffer.from('first').toString('base64') };
    await world.store.apply({ kind: 'Secret', metadata: named('parts'), data }, applied);
  };
  await restore();
  await destination('parts', { http: { url: to.url, auth: { type: 'bearer', tokenSecretRef: { name: 'gated', key: 'token' } } } });
  await expectConditions('Destination', 'parts', 'Accepted', 'Programmed');
  const send = await routeTo('parts', key, { filterId: 'gated' });
  let arrived = to.requests.length;
  await send();
  await to.arrived(++arrived);

  const paused = () => world.redis.client.smembers('test:{s0}:paused');
  const isGone = async (kind: 'Filter' | 'Secret', path: string): Promise<void> => {
    await world.store.delete(kind, named('parts'));
    const disabled = await world.request('PATCH', path, { key, body: { enabled: false } });
    expect([disabled.status, disabled.body.enabled]).toEqual([200, false]);
    const record = path.includes('routes') ? ('route' as const) : ('destination' as const);
    await eventually(async () => expect(await world.registry.getOfAny(record, disabled.body.id)).toMatchObject({ enabled: false }));
    const held = await send();
    const target = await world.redis.client.hget(`test:{s0}:m:${recordKey(held, 0)}`, hashFields.message.target);
    await eventually(async () => expect(await paused()).toContain(target));
    await eventually(async () => {
      const { body } = await world.request('GET', `/api/deliveries/${held}`, { key });
      expect(body).toMatchObject({ status: 'pending', attempts: 0 });
    });
    await restore();
    expect((await world.request('PATCH', path, { key, body: { enabled: true } })).status).toBe(200);
    await to.arrived(++arrived);
  };
  const [route] = (await world.request('GET', '/api/routes', { key })).body.data;
  await isGone('Filter', `/api/routes/${route.id}`);
  await isGone('Secret', '/api/destinations/gated');
});
