import { describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { WorkerEgress } from '../compile/outgoing-address.ts';
import { RefusedAddresses } from '../core/egress-policy.ts';
import type { PosthornKind } from '../resources/kinds.ts';
import { ResourceCache } from '../store/cache.ts';
import type { ApplyObject } from '../store/store.ts';
import { PoolEgressSource, sameEgressForAll } from './delivery-pool/pool-egress.ts';

const suite = controllerSuite();
const meta = { namespace: 'acme', name: 'one' };
const refused = new RefusedAddresses();
refused.add('10.96.0.1', 443);
refused.add('kubernetes.default.svc', 443);

const egressOf = (egress: Partial<WorkerEgress['egress']> = {}, endpoints: WorkerEgress['endpoints'] = {}): WorkerEgress => ({
  egress: { allowedCidrs: [], allowedHosts: [], ...egress },
  endpoints,
  refused,
});
const apply = (object: ApplyObject<PosthornKind | 'Secret'>) => suite.store.apply(object, { manager: 'test', force: true });
const organization = (egress: object = {}) =>
  apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', egress } });

async function start(rules: WorkerEgress, egress: object = {}): Promise<void> {
  suite.start({ egressSource: sameEgressForAll(rules), allowsInsecureUrls: true });
  await apply({ kind: 'Namespace' as PosthornKind, metadata: { name: 'acme' } } as ApplyObject<PosthornKind>);
  await organization(egress);
}

async function secret(name: string, value: string): Promise<void> {
  await apply({ kind: 'Secret', metadata: { namespace: 'acme', name }, data: { value: Buffer.from(value).toString('base64') } });
}

type Sending = 'Destination' | 'HttpCronJob' | 'NotificationChannel' | 'WebhookEndpoint';

/** Each kind that names a URL, with it. */
const kindsWithUrl: Record<Sending, (url: string) => Promise<unknown>> = {
  Destination: (url) => apply({ kind: 'Destination', metadata: meta, spec: { http: { url } } }),
  HttpCronJob: (url) => apply({ kind: 'HttpCronJob', metadata: meta, spec: { schedule: '0 0 1 1 *', url } }),
  NotificationChannel: (url) => apply({ kind: 'NotificationChannel', metadata: meta, spec: { type: 'webhook', webhook: { url } } }),
  WebhookEndpoint: async (url) => {
    await secret('signing', `whsec_${Buffer.alloc(32, 7).toString('base64')}`);
    await apply({ kind: 'WebhookApplication', metadata: { namespace: 'acme', name: 'customer' }, spec: {} });
    await apply({
      kind: 'WebhookEndpoint',
      metadata: meta,
      spec: { applicationRef: { name: 'customer' }, url, signingSecretRef: { name: 'signing', key: 'value' } },
    });
  },
};
const kindNames = Object.keys(kindsWithUrl) as Sending[];

async function expectRefused(kind: Sending, named: string): Promise<void> {
  await eventually(async () => {
    const { metadata, status } = await suite.store.get(kind, meta);
    expect(status?.observedGeneration).toBe(metadata.generation);
    const finding = { status: 'False', reason: 'AddressNotAllowed', message: expect.stringContaining(named) };
    for (const type of ['Accepted', 'Ready']) expect(status?.conditions).toContainEqual(expect.objectContaining({ type, ...finding }));
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Programmed', status: 'True' }));
  });
}
async function expectReady(kind: Sending): Promise<void> {
  await eventually(async () => {
    const { metadata, status } = await suite.store.get(kind, meta);
    expect(status?.observedGeneration).toBe(metadata.generation);
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
  });
}

describe.each(kindNames)('a %s', (kind) => {
  const put = kindsWithUrl[kind];

  test('a resource with an address that no delivery reaches is published, and has the reason AddressNotAllowed', async () => {
    await start(egressOf());
    for (const host of ['169.254.169.254', '127.0.0.1', '[::1]', '10.1.2.3', 'localhost', 'LOCALHOST.', 'kubernetes.default.svc']) {
      await put(`https://${host}/hook`);
      await expectRefused(kind, host.replace(/^\[|\]$/g, '').toLowerCase());
    }
    expect(suite.controllers.events.some(({ reason }) => reason === 'AddressNotAllowed')).toBe(true);
    await put('https://hooks.example.com/hook');
    await expectReady(kind);
  });

  test('is checked again when the networks change that its organization allows', async () => {
    await start(egressOf());
    await put('https://10.1.2.3/hook');
    await expectRefused(kind, '10.1.2.3');
    await organization({ allowedCidrs: ['10.0.0.0/8'] });
    await expectReady(kind);
    await organization({ allowedCidrs: ['10.2.0.0/16'] });
    await expectRefused(kind, '10.1.2.3');
    await organization({ allowedHosts: ['10.1.2.3'] });
    await expectReady(kind);
  });

  test('may name what the installation allows, but never the metadata service and the API server', async () => {
    await start(egressOf({ allowedCidrs: ['127.0.0.0/8', '10.0.0.0/8', '169.254.0.0/16'] }));
    for (const host of ['127.0.0.1', 'localhost', '10.1.2.3', 'shop.default.svc']) {
      await put(`https://${host}/hook`);
      await expectReady(kind);
    }
    for (const host of ['169.254.169.254', '10.96.0.1']) {
      await put(`https://${host}/hook`);
      await expectRefused(kind, host);
    }
  });

  test('is held to the list of hosts, where there is one', async () => {
    const onlyHosts = [
      { organization: null, pattern: '*.example.com' },
      { organization: 'other', pattern: 'hooks.other.example' },
    ];
    await start(egressOf({ onlyHosts }));
    await put('https://hooks.other.example/hook');
    await expectRefused(kind, 'hooks.other.example');
    await put('https://hooks.example.com/hook');
    await expectReady(kind);
  });
});

const channel = (type: string, settings: object) =>
  apply({ kind: 'NotificationChannel', metadata: meta, spec: { type, [type]: settings } } as ApplyObject<'NotificationChannel'>);
const inSecret = { webhookUrlSecretRef: { name: 'url', key: 'value' } };
const keys = { accessKeyId: 'AKIAEXAMPLE', secretAccessKeySecretRef: { name: 'url', key: 'value' } };

test.each<[string, Sending, string, string, () => Promise<unknown>]>([
  ['slack', 'NotificationChannel', 'hooks.slack.com', 'https://hooks.slack.com/services/T/B/x', () => channel('slack', inSecret)],
  ['teams', 'NotificationChannel', '10.0.0.1', 'https://10.0.0.1/workflows', () => channel('teams', inSecret)],
  [
    'pagerduty',
    'NotificationChannel',
    'events.pagerduty.com',
    'a'.repeat(32),
    () => channel('pagerduty', { routingKeySecretRef: { name: 'url', key: 'value' } }),
  ],
  [
    's3',
    'Destination',
    's3.eu-west-1.amazonaws.com',
    'x'.repeat(20),
    () => apply({ kind: 'Destination', metadata: meta, spec: { type: 's3', s3: { bucket: 'events', region: 'eu-west-1', ...keys } } }),
  ],
  [
    'r2',
    'Destination',
    'abc.r2.cloudflarestorage.com',
    'x'.repeat(20),
    () =>
      apply({
        kind: 'Destination',
        metadata: meta,
        spec: { type: 'r2', r2: { bucket: 'events', endpoint: 'https://abc.r2.cloudflarestorage.com', ...keys } },
      }),
  ],
])('the host of %s is checked by the list of hosts', async (_, kind, host, value, put) => {
  await start(egressOf({ onlyHosts: [{ organization: null, pattern: 'hooks.example.com' }] }));
  await secret('url', value);
  await put();
  await expectRefused(kind, host);
  await suite.controllers.stop();
  suite.start({
    egressSource: sameEgressForAll(egressOf({ allowedCidrs: ['10.0.0.0/8'], onlyHosts: [{ organization: null, pattern: host }] })),
  });
  await expectReady(kind);
});

test('files go to the server that represents the cloud, which is checked instead', async () => {
  const endpoints = { s3: 'http://10.0.0.9:9000' };
  await start(egressOf({}, endpoints));
  await secret('url', 'x'.repeat(20));
  await apply({ kind: 'Destination', metadata: meta, spec: { type: 's3', s3: { bucket: 'events', region: 'eu-west-1', ...keys } } });
  await expectRefused('Destination', '10.0.0.9');
  await organization({ allowedCidrs: ['10.0.0.9/32'] });
  await expectReady('Destination');
});

test('the pool that serves an organization decides, once its environment is known and whenever it changes; a verdict outlives the leader', async () => {
  const pools = new ResourceCache('DeliveryPool', { logger: pino({ level: 'silent' }) });
  const run = () => {
    const made: { egressSource?: PoolEgressSource } = {};
    suite.start({
      egressSource: {
        of: (each) => made.egressSource?.of(each) ?? null,
        onChange: (listener) => {
          made.egressSource = new PoolEgressSource({ pools, organizations: suite.controllers.caches.Organization, refused });
          return made.egressSource.onChange(listener);
        },
      },
    });
    return made;
  };
  const first = run();
  await apply({ kind: 'Namespace' as PosthornKind, metadata: { name: 'acme' } } as ApplyObject<PosthornKind>);
  await organization();
  await kindsWithUrl.Destination('https://10.1.2.3/hook');
  await expectReady('Destination');
  first.egressSource?.note('default', { egress: { allowedCidrs: [], allowedHosts: [] }, endpoints: {} });
  await expectRefused('Destination', '10.1.2.3');
  await suite.controllers.stop();

  const second = run();
  await apply({ kind: 'Destination', metadata: { namespace: 'acme', name: 'two' }, spec: { http: { url: 'https://hooks.example.com/' } } });
  await eventually(async () =>
    expect((await suite.store.get('Destination', { namespace: 'acme', name: 'two' })).status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Ready', status: 'True' }),
    ),
  );
  await expectRefused('Destination', '10.1.2.3');
  expect(suite.controllers.events.filter(({ object }) => object.metadata.name === 'one')).toEqual([]);
  second.egressSource?.note('default', { egress: { allowedCidrs: ['10.0.0.0/8'], allowedHosts: [] }, endpoints: {} });
  await expectReady('Destination');
});
