import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { controllerSuite } from '../../../test/support/controller-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lintSuite } from '../../../test/support/lint-suite.ts';
import type { PosthornKind } from '../../resources/kinds.ts';
import type { Condition } from '../../resources/metadata.ts';
import type { ApplyObject } from '../../store/store.ts';
import type { LintFinding } from './finding.ts';

const root = new URL('../../../', import.meta.url).pathname;
const manifestFiles = lintSuite();
const { linted } = manifestFiles;

type Manifest = { kind: PosthornKind; metadata: { name: string; namespace?: string }; spec: object };

const of = (kind: PosthornKind, name: string, spec: object, namespace = 'acme'): Manifest => ({
  kind,
  metadata: { name, namespace },
  spec,
});
const text = (manifests: readonly Manifest[]): string =>
  manifests.map((manifest) => stringify({ apiVersion: 'posthorn.dev/v1alpha1', ...manifest })).join('---\n');
const source = of('Source', 'orders', {});
const shop = of('Destination', 'shop', { http: { url: 'https://shop.example.com/' } });
const route = (spec: object = {}, name = 'all') =>
  of('Route', name, { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }], ...spec });

const reasons = (findings: readonly LintFinding[]): string[] =>
  findings.map(({ severity, kind, name, reason }) => `${severity} ${kind} ${name} ${reason}`).sort();

test('The samples have no error', async () => {
  const { code, lines } = await linted(
    {},
    { paths: [join(root, 'config/samples')], output: 'text' },
    // The receiver of the quickstart for standalone is on the loopback address.
    { POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8' },
  );
  expect([code, lines]).toEqual([0, [expect.stringMatching(/^\d\d objects: 0 errors, 0 warnings$/)]]);
});

describe('What the API server would refuse is an error', () => {
  test.each<[string, Manifest, string]>([
    ['an address that is none', of('Destination', 'shop', { http: { url: 'nonsense' } }), 'spec.http.url'],
    ['an unknown field', of('Source', 'orders', { colour: 'red' }), 'spec.colour'],
    ['a number out of its range', of('Destination', 'shop', { http: { url: 'https://a.example/', timeoutMs: 1 } }), 'spec.http.timeoutMs'],
    ['a name that is too long', of('Source', `a${'b'.repeat(300)}`, {}), 'metadata.name'],
    [
      'an unknown field of the metadata',
      { ...of('Source', 'orders', {}), metadata: { name: 'orders', namespace: 'acme', label: {} } as object as { name: string } },
      'metadata.label',
    ],
    ['an unknown field of the status', { ...of('Source', 'orders', {}), status: { ready: true } } as Manifest, 'status.ready'],
    [
      'a pool with more workers at least than at most',
      of('DeliveryPool', 'p', { autoscaling: { enabled: true, min: 9, max: 3 } }),
      'spec.autoscaling',
    ],
  ])('%s', async (_what, manifest, field) => {
    const { code, findings } = await linted({ 'a.yaml': text([manifest]) });
    expect([code, findings[0]]).toMatchObject([
      1,
      { severity: 'error', kind: manifest.kind, reason: 'Invalid', field: expect.stringContaining(field) },
    ]);
  });
});

describe('What cannot be read is an error', () => {
  test.each([
    ['YAML', 'a: ['],
    ['a kind of Posthorn’s group that there is not', 'apiVersion: posthorn.dev/v1alpha1\nkind: Rout\nmetadata: {name: r}'],
    ['a version that there is not', 'apiVersion: posthorn.dev/v9\nkind: Route\nmetadata: {name: r}'],
    ['an object without a kind', 'metadata: {name: r}'],
  ])('%s', async (_what, content) => {
    const { code, findings } = await linted({ 'a.yaml': content });
    expect([code, findings]).toMatchObject([
      1,
      [{ severity: 'error', reason: 'Unreadable', file: join(manifestFiles.directory, 'a.yaml') }],
    ]);
  });

  test('a path that is not there', async () => {
    await expect(linted({}, { paths: [join(manifestFiles.directory, 'gone')] })).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
  });
});

test('Objects of other API groups are left out', async () => {
  const { code, lines } = await linted(
    { 'a.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {}\n' },
    { output: 'text' },
  );
  expect([code, lines]).toEqual([0, ['0 objects: 0 errors, 0 warnings']]);
});

test('An object that is in two files is an error at the second one', async () => {
  const { code, findings } = await linted({ 'a.yaml': text([source]), 'b/b.yaml': text([source]) });
  expect([code, findings]).toMatchObject([1, [{ reason: 'Duplicate', file: join(manifestFiles.directory, 'b/b.yaml') }]]);
});

test('A Secret without what its type requires is an error', async () => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'shop', namespace: 'acme' },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': 'a' },
  };
  const { code, findings } = await linted({ 'a.yaml': stringify(secret) });
  expect([code, findings]).toMatchObject([1, [{ severity: 'error', reason: 'Invalid', field: 'data.tls.key' }]]);
});

test('Objects refer to each other across files, and an object without a namespace is in the one of the flag', async () => {
  const { code } = await linted(
    {
      'a.yaml': text([route()]),
      'b.yaml': text([source]),
      'c.yaml': stringify({ apiVersion: 'posthorn.dev/v1alpha1', ...shop, metadata: { name: 'shop' } }),
    },
    { namespace: 'acme' },
  );
  expect(code).toBe(0);
});

test('What is missing is an error, and a warning where the files are a part', async () => {
  const files = { 'a.yaml': text([route({ transformRef: { name: 't' } }), source]) };
  expect(await linted(files)).toMatchObject({ code: 1, findings: [{ severity: 'error', reason: expect.stringMatching(/NotFound$/) }] });
  expect(await linted(files, { isPartial: true })).toMatchObject({ code: 0, findings: [{ severity: 'warning' }] });
});

test.each<[PosthornKind, object]>([
  ['Transform', { code: 'payload' }],
  ['Filter', { conditions: [{ field: 'payload.a', operator: 'exists' }] }],
  ['PayloadSchema', { jsonSchema: {} }],
])('A %s of another organization is permitted by its owner, in the same files or elsewhere', async (kind, content) => {
  const sharedBy = (name: string, sharedWith: string[]) => of(kind, 'shared', { ...content, sharedWith }, name);
  const organization = (name: string): Manifest => ({ kind: 'Organization', metadata: { name }, spec: { namespace: `ns-${name}` } });
  const taken = of(kind, 'mine', { sharedFrom: { organization: 'globex', name: 'shared' } }, 'ns-acme');
  const all = (...more: Manifest[]) => ({ 'a.yaml': text([organization('acme'), organization('globex'), taken, ...more]) });
  const refused = [{ severity: 'error', kind, name: 'mine', reason: 'RefNotPermitted' }];
  expect(await linted(all(sharedBy('ns-globex', ['acme'])))).toMatchObject({ code: 0, findings: [] });
  for (const organizations of [[], ['acme-labs'], ['ns-acme']])
    expect(await linted(all(sharedBy('ns-globex', organizations)))).toMatchObject({ code: 1, findings: refused });
  expect(await linted(all())).toMatchObject({ code: 1, findings: refused });
  expect(await linted(all(), { isPartial: true })).toMatchObject({
    code: 0,
    findings: [{ severity: 'warning', reason: 'RefNotPermitted' }],
  });
});

test('A route that works without one of its destinations is a warning', async () => {
  const files = { 'a.yaml': text([route({ destinationRefs: [{ name: 'shop' }, { name: 'gone' }] }), source, shop]) };
  expect(await linted(files)).toMatchObject({ code: 0, findings: [{ severity: 'warning', reason: 'PartiallyInForce' }] });
});

test('Secrets that the files do not hold are a warning', async () => {
  const auth = { type: 'bearer', tokenSecretRef: { name: 'shop', key: 'token' } };
  const withSecret = of('Destination', 'shop', { http: { url: 'https://shop.example.com/', auth } });
  expect(await linted({ 'a.yaml': text([withSecret, source, route()]) })).toMatchObject({
    code: 0,
    findings: [
      { kind: 'Destination', severity: 'warning', reason: 'SecretNotFound' },
      { kind: 'Route', severity: 'warning', reason: 'DestinationNotReady' },
    ],
  });
});

test('Settings of the installation are read from the environment', async () => {
  const files = { 'a.yaml': text([of('NotificationChannel', 'mail', { type: 'email', email: { addresses: ['a@other.example'] } })]) };
  expect((await linted(files)).code).toBe(0);
  expect(await linted(files, {}, { POSTHORN_MAIL_DOMAINS: 'acme.example' })).toMatchObject({ code: 1 });
  const inside = { 'a.yaml': text([of('Destination', 'shop', { http: { url: 'http://10.0.0.1/' } })]) };
  expect(await linted(inside)).toMatchObject({ code: 1, findings: [{ severity: 'error', reason: 'AddressNotAllowed' }] });
  expect((await linted(inside, {}, { POSTHORN_EGRESS_ALLOWED_CIDRS: '10.0.0.0/8' })).code).toBe(0);
});

test('A line of text names file, place, object, reason and field', async () => {
  const { lines } = await linted({ 'a.yaml': text([of('Destination', 'shop', { http: { url: 'nonsense' } })]) }, { output: 'text' });
  expect(lines).toEqual([
    expect.stringMatching(/a\.yaml:8:5: error: Destination acme\/shop: Invalid: spec\.http\.url: must be an absolute http or https URL/),
    '1 object: 1 error, 0 warnings',
  ]);
});

describe('beside the controllers of a cluster', () => {
  const suite = controllerSuite();

  test('the findings are what the conditions of the objects say', async () => {
    const manifests = [
      source,
      shop,
      route(),
      route({ sourceRef: { name: 'gone' } }, 'without-source'),
      route({ destinationRefs: [{ name: 'gone' }] }, 'without-destination'),
      route({ transformRef: { name: 'broken' } }, 'with-broken-transform'),
      route({ schemaRef: { name: 'gone' } }, 'without-schema'),
      of('Transform', 'broken', { type: 'jsonata', code: '{{{' }),
      of('Transform', 'not-shared', { sharedFrom: { organization: 'globex', name: 'any' } }),
      of('Filter', 'not-shared', { sharedFrom: { organization: 'acme', name: 'not-shared' } }),
      route({ filterRef: { name: 'not-shared' } }, 'with-foreign-filter'),
      of('PayloadSchema', 'broken', { jsonSchema: { type: 'nothing' } }),
      of('HttpCronJob', 'nowhere', { schedule: '* * * * *', timeZone: 'Nowhere/Land', url: 'https://a.example/' }),
      of('Replay', 'without-route', { what: 'deliveries', filter: { routeRef: { name: 'gone' } } }),
      of('Replay', 'wrong-filter', { what: 'deliveries', filter: { where: 'event.' } }),
      of('Replay', 'fine-replay', { what: 'messages' }),
      of('HttpCronJob', 'fine', { schedule: '* * * * *', url: 'https://a.example/' }),
      of('WebhookApplication', 'app', { externalId: 'same' }),
      of('WebhookApplication', 'second', { externalId: 'same' }),
      of('WebhookEventType', 'order.paid', { name: 'order.paid' }),
      of('WebhookSubscription', 'sub', { endpointRef: { name: 'gone' }, eventTypeRef: { name: 'order.paid' } }),
    ];
    const organization: Manifest = { kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } };
    const all = [organization, ...manifests];
    suite.start();
    await suite.store.apply({ kind: 'Namespace', metadata: { name: 'acme' } }, { manager: 'test', force: true });
    for (const manifest of all) await suite.store.apply(manifest as ApplyObject, { manager: 'test', force: true });
    const { findings } = await linted({ 'a.yaml': text(all) });
    const expected = async (): Promise<string[]> => {
      const found: string[] = [];
      for (const { kind, metadata } of all) {
        const conditions: readonly Condition[] = (await suite.store.get(kind, metadata)).status?.conditions ?? [];
        const ready = conditions.find(({ type }) => type === 'Ready');
        const severity = ready?.reason.endsWith('NotReady') ? 'warning' : 'error';
        if (ready?.status !== 'True') found.push(`${severity} ${kind} ${metadata.name} ${ready?.reason}`);
      }
      return found.sort();
    };
    await eventually(async () => expect(reasons(findings)).toEqual(await expected()));
    expect(findings.length).toBeGreaterThan(7);
  });
});

test('A route with failover to or from an ordered destination is an error', async () => {
  const ordered = of('Destination', 'shop', { http: { url: 'https://shop.example.com/' }, ordered: true });
  const spare = of('Destination', 'spare', { http: { url: 'https://spare.example.com/' } });
  const failover = { failover: { destinationRefs: [{ name: 'spare' }] } };
  const { code, findings } = await linted({ 'a.yaml': text([source, ordered, spare, route(failover), route({}, 'plain')]) });
  expect([code, reasons(findings)]).toEqual([1, ['error Route all OrderedDestination']]);
});
