import { describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { conditionOf, eachWithWebhookControllers, signingSecret, type WebhookControllers } from '../../test/support/webhook-controllers.ts';
import type { RedisRegistryPublisher } from '../data/registry/registry-publisher.ts';
import type { ConfigurationKind, ObjectOf } from '../resources/kinds.ts';

let world: WebhookControllers;
let registry: RedisRegistryPublisher;

const url = 'https://shop.example';
/** A Secret that is there once the test makes it. */
const late = { name: 'late', key: 'value' };
const withSecret = { http: { url, auth: { type: 'bearer', tokenSecretRef: late } } };
const destinations = (...names: string[]) => names.map((name) => ({ name }));
const connection = (...names: string[]) => ({ sourceRef: { name: 'orders' }, destinationRefs: destinations(...names) });
const subscription = { endpointRef: { name: 'customer' }, eventTypeRef: { name: 'order.paid' } };
const endpoint = { applicationRef: { name: 'shop' }, url, signingSecretRef: { name: 'signing', key: 'secret' } };

eachWithWebhookControllers(async (made) => {
  ({ world, registry } = made);
  await world.apply('Source', 'orders', {});
  for (const name of ['good', 'other']) await world.apply('Destination', name, { http: { url } });
});

const makeSecret = (): Promise<unknown> =>
  world.store.apply(
    { kind: 'Secret', metadata: { namespace: 'acme', name: late.name }, data: { value: Buffer.from(signingSecret(3)).toString('base64') } },
    { manager: 'test' },
  );

/** The conditions as `status reason`, and the message of ResolvedRefs, once they are these. */
async function expectConditions(
  kind: ConfigurationKind,
  name: string,
  expected: { resolvedRefs: string; ready: string; message: unknown },
): Promise<ObjectOf<ConfigurationKind>> {
  return eventually(async () => {
    const object = await world.store.get(kind, { namespace: 'acme', name });
    expect(object.status?.observedGeneration).toBe(object.metadata.generation);
    const [resolvedRefs, ready] = ['ResolvedRefs', 'Ready'].map((type) => conditionOf(object, type));
    expect({
      resolvedRefs: `${resolvedRefs?.status} ${resolvedRefs?.reason}`,
      ready: `${ready?.status} ${ready?.reason}`,
      message: resolvedRefs?.message,
    }).toEqual(expected);
    if (expected.ready !== 'True Ready') expect(ready?.message).toContain(resolvedRefs?.message);
    return object;
  });
}
const allReady = { resolvedRefs: 'True ResolvedRefs', ready: 'True Ready', message: '' };

interface Case {
  subject: [kind: ConfigurationKind, spec: object];
  /** The referenced object, which is not programmed. */
  broken: [kind: ConfigurationKind, name: string, spec: object];
  /** Makes it programmed. */
  mend(): Promise<unknown>;
  resolvedRefs: string;
  ready: string;
  message: string;
}

const cases: [title: string, Case][] = [
  [
    'a route whose only destination lacks its Secret is not ready',
    {
      subject: ['Route', connection('bad')],
      broken: ['Destination', 'bad', withSecret],
      mend: makeSecret,
      resolvedRefs: 'DestinationNotReady',
      ready: 'False DestinationNotReady',
      message: 'Destinations that are not ready: bad (SecretNotFound)',
    },
  ],
  [
    'a route with one destination of three that lacks its Secret is partially in force',
    {
      subject: ['Route', connection('good', 'bad', 'other')],
      broken: ['Destination', 'bad', withSecret],
      mend: makeSecret,
      resolvedRefs: 'DestinationNotReady',
      ready: 'True PartiallyInForce',
      message: 'Destinations that are not ready: bad (SecretNotFound)',
    },
  ],
  [
    'a route with a destination whose Secret is malformed is partially in force',
    {
      subject: ['Route', connection('good', 'bad')],
      broken: ['Destination', 'bad', { http: { url, signingSecretRef: { name: 'signing', key: 'other' } } }],
      mend: () => world.apply('Destination', 'bad', { http: { url } }),
      resolvedRefs: 'DestinationNotReady',
      ready: 'True PartiallyInForce',
      message: 'Destinations that are not ready: bad (SecretKeyNotFound)',
    },
  ],
  [
    'a route whose failover destination lacks its Secret is partially in force',
    {
      subject: ['Route', { ...connection('good'), failover: { destinationRefs: destinations('bad') } }],
      broken: ['Destination', 'bad', withSecret],
      mend: makeSecret,
      resolvedRefs: 'DestinationNotReady',
      ready: 'True PartiallyInForce',
      message: 'Destinations that are not ready: bad (SecretNotFound)',
    },
  ],
  [
    'a route whose source lacks its Secret is not ready',
    {
      subject: ['Route', { ...connection('good'), sourceRef: { name: 'signed' } }],
      broken: ['Source', 'signed', { provider: 'standard-webhooks', signingSecretRef: late }],
      mend: makeSecret,
      resolvedRefs: 'SourceNotReady',
      ready: 'False SourceNotReady',
      message: 'Sources that are not ready: signed (SecretNotFound)',
    },
  ],
  [
    'a route whose notification channel lacks its Secret is partially in force',
    {
      subject: ['Route', { ...connection('good'), notifications: { channelRefs: [{ name: 'pager' }] } }],
      broken: ['NotificationChannel', 'pager', { type: 'webhook', webhook: { url, signingSecretRef: late } }],
      mend: makeSecret,
      resolvedRefs: 'ChannelNotReady',
      ready: 'True PartiallyInForce',
      message: 'NotificationChannels that are not ready: pager (SecretNotFound)',
    },
  ],
];

describe('what refers to an object that is not in force', () => {
  test.each(cases)('%s, and is ready once all is in force', async (_, { subject: [kind, spec], broken, mend, ...expected }) => {
    await world.apply(...broken);
    await world.apply(kind, 'subject', spec);
    await expectConditions(kind, 'subject', { ...expected, resolvedRefs: `False ${expected.resolvedRefs}` });
    await mend();
    await expectConditions(kind, 'subject', allReady);
  });

  test('a route names all of its references that are not in force, with the reason of the worst', async () => {
    await world.apply('Destination', 'bad', withSecret);
    await world.apply('NotificationChannel', 'pager', { type: 'webhook', webhook: { url, signingSecretRef: late } });
    const notifications = { channelRefs: [{ name: 'pager' }, { name: 'none' }] };
    await world.apply('Route', 'subject', { ...connection('bad', 'good', 'lost'), notifications });
    await expectConditions('Route', 'subject', {
      resolvedRefs: 'False DestinationNotFound',
      ready: 'True PartiallyInForce',
      message:
        'Destinations that do not exist: lost; NotificationChannels that do not exist: none; ' +
        'Destinations that are not ready: bad (SecretNotFound); NotificationChannels that are not ready: pager (SecretNotFound)',
    });
  });
});

describe('what refers to an object of which an earlier generation is in force', () => {
  const tooLarge = { metadata: { text: 'x'.repeat(9000) } };
  test.each<
    [
      title: string,
      subject: [ConfigurationKind, object],
      broken: [ConfigurationKind, string, whole: object, broken: object],
      message: string,
    ]
  >([
    [
      'a route',
      ['Route', connection('bad')],
      ['Destination', 'bad', { http: { url } }, withSecret],
      'Destinations that are not ready: bad (SecretNotFound)',
    ],
    [
      'a route with a source',
      ['Route', { ...connection('good'), sourceRef: { name: 'signed' } }],
      ['Source', 'signed', {}, { provider: 'standard-webhooks', signingSecretRef: late }],
      'Sources that are not ready: signed (SecretNotFound)',
    ],
    [
      'an endpoint',
      ['WebhookEndpoint', endpoint],
      ['WebhookApplication', 'shop', {}, tooLarge],
      'WebhookApplications that are not ready: shop (MetadataTooLarge)',
    ],
    [
      'a subscription',
      ['WebhookSubscription', subscription],
      ['WebhookEndpoint', 'customer', endpoint, { ...endpoint, signingSecretRef: late }],
      'WebhookEndpoints that are not ready: customer (SecretNotFound)',
    ],
  ])('%s is partially in force, and ready again when that is', async (_, [kind, spec], [referred, name, whole, broken], message) => {
    await world.apply(referred, name, whole);
    await world.seen(referred, name);
    await world.apply(kind, 'subject', spec);
    await expectConditions(kind, 'subject', allReady);
    await world.apply(referred, name, broken);
    const reason = `${referred.replace('Webhook', '')}NotReady`;
    await expectConditions(kind, 'subject', { resolvedRefs: `False ${reason}`, ready: 'True PartiallyInForce', message });
    await world.apply(referred, name, whole);
    await expectConditions(kind, 'subject', allReady);
  });
});

test('a route with a destination that is not in force continues delivering to the others, and keeps its messages', async () => {
  await world.apply('Destination', 'bad', withSecret);
  await world.apply('Route', 'subject', connection('good', 'bad'));
  await world.seen('Route', 'subject', 'PartiallyInForce');
  const ids = await Promise.all(['good', 'bad'].map((name) => world.idOf('Destination', name)));
  const record = await registry.get('route', await world.idOf('Route', 'subject'));
  expect(record).toMatchObject({ enabled: true, destinations: ids.map((id) => ({ id })) });
});

test('a failover destination leaves the list of its route while it is not in force', async () => {
  await world.apply('Destination', 'bad', withSecret);
  await world.apply('Route', 'subject', { ...connection('good'), failover: { destinationRefs: destinations('bad', 'other') } });
  await world.seen('Route', 'subject', 'PartiallyInForce');
  const [bad, other] = await Promise.all(['bad', 'other'].map((name) => world.idOf('Destination', name)));
  const spares = async () => (await registry.get('route', await world.idOf('Route', 'subject')))?.failover.destinations.map(({ id }) => id);
  expect(await spares()).toEqual([other]);
  await makeSecret();
  await eventually(async () => expect(await spares()).toEqual([bad, other]));
});

test('an organization whose archive is not in force reports it', async () => {
  await world.apply('Destination', 'archive', {
    type: 's3',
    s3: { bucket: 'archive', region: 'eu-central-1', accessKeyId: 'AKIA', secretAccessKeySecretRef: late },
  });
  const archive = { destinationRef: { name: 'archive' } };
  await world.store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', archive } }, { manager: 'test' });
  const resolved = async () => conditionOf(await world.store.get('Organization', { name: 'acme' }), 'ResolvedRefs');
  await eventually(async () =>
    expect(await resolved()).toMatchObject({
      status: 'False',
      reason: 'DestinationNotReady',
      message: 'spec.archive.destinationRef: Destination archive is not ready (SecretNotFound)',
    }),
  );
  await makeSecret();
  await eventually(async () => expect(await resolved()).toMatchObject({ status: 'True' }));
});

test('a change of the status of a destination that its routes do not speak of writes nothing to them', async () => {
  await world.apply('Destination', 'bad', withSecret);
  await world.apply('Route', 'subject', connection('good', 'bad'));
  await world.seen('Route', 'subject', 'PartiallyInForce');
  const versionOf = async () => (await world.store.get('Route', { namespace: 'acme', name: 'subject' })).metadata.resourceVersion;
  const before = await versionOf();
  await world.apply('Destination', 'bad', { ...withSecret, description: 'another generation' });
  await world.seen('Destination', 'bad', 'SecretNotFound');
  await world.apply('Destination', 'good', { http: { url: 'https://other.example' } });
  await world.seen('Destination', 'good');
  expect(await versionOf()).toBe(before);
});
