import { beforeEach, expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { OwnedRecordKind } from '../core/records.ts';
import type { PosthornKind } from '../resources/kinds.ts';
import { idOf } from './held-ids.ts';

const suite = controllerSuite();

beforeEach(async () => {
  suite.start();
  await organization('victim');
  await organization('thief');
});

async function organization(name: string, id?: string, spec: object = {}): Promise<void> {
  const annotations = id === undefined ? {} : { annotations: { 'posthorn.dev/id': id } };
  await suite.store.apply(
    { kind: 'Organization', metadata: { name, ...annotations }, spec: { namespace: name, ...spec } },
    { manager: 'test', force: true },
  );
  await eventually(async () => expect((await suite.store.get('Organization', { name })).status?.conditions).toContainEqual(ready));
}
const ready = expect.objectContaining({ type: 'Ready', status: 'True' });

const kinds: [kind: PosthornKind, record: OwnedRecordKind, spec: object][] = [
  ['Source', 'source', {}],
  ['Destination', 'destination', { http: { url: 'https://shop.example/hook' } }],
  ['Transform', 'transform', { type: 'javascript', code: 'function transform(event) { return event.payload; }' }],
  ['PayloadSchema', 'payloadSchema', { jsonSchema: { type: 'object' } }],
  ['NotificationChannel', 'notificationChannel', { type: 'email', email: { addresses: ['ops@example.com'] } }],
  ['HttpCronJob', 'cronJob', { schedule: '0 0 * * *', url: 'https://shop.example/run' }],
  ['Replay', 'replay', { what: 'deliveries' }],
  ['WebhookEventType', 'eventType', { name: 'one' }],
  ['ApiKey', 'apiKey', { sha256: 'a'.repeat(64), role: 'developer' }],
];

async function put(kind: PosthornKind, namespace: string, spec: object, id?: string) {
  const metadata = { namespace, name: 'one', ...(id !== undefined && { annotations: { 'posthorn.dev/id': id } }) };
  return await suite.store.apply({ kind, metadata, spec } as Parameters<typeof suite.store.apply>[0], { manager: 'test', force: true });
}

async function reasonOf(kind: PosthornKind, namespace: string): Promise<string | undefined> {
  const { metadata, status } = await suite.store.get(kind, { namespace, name: 'one' });
  if (status?.observedGeneration !== metadata.generation) return undefined;
  return status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
}

test.each(kinds)('the id of a deleted %s is not given to another organization, and comes back to its own', async (kind, record, spec) => {
  const { metadata } = await put(kind, 'victim', spec);
  const id = idOf(kind, { metadata });
  await eventually(async () => expect(await reasonOf(kind, 'victim')).toBe('Ready'));
  await put(kind, 'thief', spec, id);
  await eventually(async () => expect(await reasonOf(kind, 'thief')).toBe('IdTaken'));
  const own = await suite.controllers.registry.get(record, id);

  await suite.store.delete(kind, { namespace: 'victim', name: 'one' });
  await eventually(async () => expect(await suite.controllers.registry.get(record, id)).toBeNull());
  // Another reconcile of the other object finds the same.
  await put(kind, 'thief', { ...spec, description: 'changed' }, id).catch(() => put(kind, 'thief', spec, id));
  await eventually(async () => expect(await reasonOf(kind, 'thief')).toBe('IdTaken'));
  expect(await suite.controllers.registry.get(record, id)).toBeNull();

  // It is younger than the other object, and has the id all the same.
  await put(kind, 'victim', spec, id);
  await eventually(async () => expect(await suite.controllers.registry.get(record, id)).toMatchObject({ org: own?.org }));
  await eventually(async () => expect(await reasonOf(kind, 'victim')).toBe('Ready'));
  expect(await reasonOf(kind, 'thief')).toBe('IdTaken');
});

const signed = {
  metadata: { name: 'signing' },
  data: { secret: Buffer.from(`whsec_${Buffer.alloc(32, 1).toString('base64')}`).toString('base64') },
};
const webhookKinds: [kind: 'WebhookApplication' | 'WebhookEndpoint' | 'WebhookSubscription', spec: object][] = [
  ['WebhookApplication', {}],
  [
    'WebhookEndpoint',
    { applicationRef: { name: 'one' }, url: 'https://shop.example/hook', signingSecretRef: { name: 'signing', key: 'secret' } },
  ],
  ['WebhookSubscription', { endpointRef: { name: 'one' }, eventTypeRef: { name: 'one' } }],
];

/** What the kind refers to, and it. */
async function putWebhooks(namespace: string, last: string, id?: string): Promise<string> {
  const options = { manager: 'test', force: true };
  await suite.store.apply({ kind: 'Secret', ...signed, metadata: { ...signed.metadata, namespace } }, options);
  await put('WebhookEventType', namespace, { name: 'one' });
  let made = '';
  for (const [kind, spec] of webhookKinds) {
    made = idOf(kind, await put(kind, namespace, spec, kind === last ? id : undefined));
    if (kind === last) break;
  }
  return made;
}

test.each(webhookKinds.map(([kind]) => kind))(
  'the id of a %s is not given to another organization, also once it is deleted',
  async (kind) => {
    const id = await putWebhooks('victim', kind);
    await eventually(async () => expect(await reasonOf(kind, 'victim')).toBe('Ready'));
    await putWebhooks('thief', kind, id);
    await eventually(async () => expect(await reasonOf(kind, 'thief')).toBe('IdTaken'));
    await suite.store.delete(kind, { namespace: 'victim', name: 'one' });
    await put(
      kind,
      'thief',
      { ...webhookKinds.find(([each]) => each === kind)?.[1], ...(kind === 'WebhookApplication' && { name: 'changed' }) },
      id,
    );
    await eventually(async () => expect(await reasonOf(kind, 'thief')).toBe('IdTaken'));
    await putWebhooks('victim', kind, id);
    await eventually(async () => expect(await reasonOf(kind, 'victim')).toBe('Ready'));
  },
);

test.each([
  ['WebhookApplication', 'app_aaaaaaaaabcdefghijklmnopqr'],
  ['WebhookEndpoint', 'ep_aaaaaaaaabcdefghijklmnopqr'],
  ['WebhookSubscription', 'sub_aaaaaaaaabcdefghijklmnopqr'],
] as const)('a %s does not get an id of those that the API gives out, whosever it is', async (kind, id) => {
  await putWebhooks('thief', kind, id);
  await eventually(async () => expect(await reasonOf(kind, 'thief')).toBe('IdTaken'));
});

test('an API key with the hash of that of another organization is refused, and requests with the key stay those of its own', async () => {
  const spec = { sha256: 'a'.repeat(64), role: 'developer' };
  const { metadata } = await put('ApiKey', 'victim', spec);
  await eventually(async () => expect(await reasonOf('ApiKey', 'victim')).toBe('Ready'));
  await put('ApiKey', 'thief', spec);
  await eventually(async () => expect(await reasonOf('ApiKey', 'thief')).toBe('KeyTaken'));
  expect(await suite.redis.client.hget(`${suite.prefix}{cfg}:ix:api-key`, spec.sha256)).toBe(idOf('ApiKey', { metadata }));
  await put('ApiKey', 'thief', { ...spec, sha256: 'b'.repeat(64) });
  await eventually(async () => expect(await reasonOf('ApiKey', 'thief')).toBe('Ready'));
});

test('another organization does not get the id of a deleted object from a new leader', async () => {
  const [kind, record, spec] = ['Destination', 'destination', { http: { url: 'https://shop.example/hook' } }] as const;
  const { metadata } = await put(kind, 'victim', spec);
  const id = idOf(kind, { metadata });
  await eventually(async () => expect(await reasonOf(kind, 'victim')).toBe('Ready'));
  await suite.controllers.stop();
  await suite.store.delete(kind, { namespace: 'victim', name: 'one' });
  await put(kind, 'thief', spec, id);
  suite.start();
  await eventually(async () => expect(await reasonOf(kind, 'thief')).toBe('IdTaken'));
  await eventually(async () => expect(await suite.controllers.registry.get(record, id)).toBeNull());
});

test('an object of another organization keeps nobody from an id of a kind that each organization has for itself', async () => {
  const spec = { logic: 'AND', conditions: [{ field: 'payload.a', operator: 'exists' }] };
  const { metadata } = await put('Filter', 'victim', spec);
  const id = idOf('Filter', { metadata });
  await eventually(async () => expect(await reasonOf('Filter', 'victim')).toBe('Ready'));
  await put('Filter', 'thief', spec, id);
  await eventually(async () => expect(await reasonOf('Filter', 'thief')).toBe('Ready'));
  await suite.store.delete('Filter', { namespace: 'victim', name: 'one' });
  await put('Filter', 'victim', spec, id);
  await eventually(async () => expect(await reasonOf('Filter', 'victim')).toBe('Ready'));
});

test('a route does not refer to an object that requests the id of another organization', async () => {
  const { metadata } = await put('Destination', 'victim', { http: { url: 'https://shop.example/hook' } });
  const id = idOf('Destination', { metadata });
  await eventually(async () => expect(await reasonOf('Destination', 'victim')).toBe('Ready'));
  await suite.store.delete('Destination', { namespace: 'victim', name: 'one' });
  await eventually(async () => expect(await suite.controllers.registry.get('destination', id)).toBeNull());
  await put('Destination', 'thief', { http: { url: 'https://thief.example' } }, id);
  await put('Source', 'thief', {});
  await put('Route', 'thief', { sourceRef: { name: 'one' }, destinationRefs: [{ name: 'one' }] });
  await eventually(async () => expect(await reasonOf('Route', 'thief')).toBe('DestinationNotFound'));
  const routes = await suite.controllers.registry.ids('route');
  for (const route of routes) expect(await suite.controllers.registry.get('route', route)).toMatchObject({ destinations: [] });
});

test('a restored organization gets the ids of its objects back under its own id, and without it they are taken, which their condition says', async () => {
  const { metadata } = await put('Destination', 'victim', { http: { url: 'https://shop.example/hook' } });
  const id = idOf('Destination', { metadata });
  const organizationId = idOf('Organization', await suite.store.get('Organization', { name: 'victim' }));
  await eventually(async () => expect(await reasonOf('Destination', 'victim')).toBe('Ready'));
  await organization('victim', undefined, { deletionPolicy: 'Delete' });
  await suite.store.delete('Organization', { name: 'victim' });
  const isGone = () => expect(suite.store.get('Organization', { name: 'victim' })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  await eventually(isGone);

  await organization('victim');
  await put('Destination', 'victim', { http: { url: 'https://shop.example/hook' } }, id);
  await eventually(async () => expect(await reasonOf('Destination', 'victim')).toBe('IdTaken'));
  const { status } = await suite.store.get('Destination', { namespace: 'victim', name: 'one' });
  expect(status?.conditions).toContainEqual(
    expect.objectContaining({ message: expect.stringContaining('first set the same annotation of the Organization to its former id') }),
  );

  await organization('victim', organizationId);
  await eventually(async () => expect(await reasonOf('Destination', 'victim')).toBe('Ready'));
});
