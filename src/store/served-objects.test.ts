import { beforeEach, expect, test } from '@jest/globals';
import { silentLogger } from '../../test/support/logger.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { ResourceCache } from './cache.ts';
import { type ReflectorSink, ServedObjects } from './served-objects.ts';

let version = 0;
let organizations: ResourceCache<'Organization'>;
let sources: ResourceCache<'Source'>;
let ofOrganizations: ReflectorSink<'Organization'>;
let ofSources: ReflectorSink<'Source'>;
let served: ServedObjects;
let moved: string[];

beforeEach(() => start('default'));

function start(installation: string | null): void {
  served = new ServedObjects(installation);
  organizations = new ResourceCache('Organization', { logger: silentLogger });
  sources = new ResourceCache('Source', { logger: silentLogger });
  ofOrganizations = served.before(organizations);
  ofSources = served.before(sources);
  moved = [];
  served.onChange((namespace) => void moved.push(namespace));
}

const metadata = (name: string, age: number) => ({
  name,
  uid: `${name} of ${age}`,
  resourceVersion: String(++version),
  generation: 1,
  creationTimestamp: new Date(Date.UTC(2026, 0, 1) + age * 1000).toISOString(),
});

function organization(
  name: string,
  spec: { installation?: string; namespace?: string },
  { age = 1, isEnding = false } = {},
): PosthornObject<'Organization'> {
  const ending = isEnding ? { deletionTimestamp: '2026-02-01T00:00:00Z' } : {};
  return {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'Organization',
    metadata: { ...metadata(name, age), ...ending },
    spec: { namespace: name, ...spec },
  } as PosthornObject<'Organization'>;
}

function source(namespace: string, name = 'orders'): PosthornObject<'Source'> {
  const object = { apiVersion: 'posthorn.dev/v1alpha1', kind: 'Source', metadata: { ...metadata(name, 1), namespace }, spec: {} };
  return object as PosthornObject<'Source'>;
}

const seen = (): string[] => [
  ...organizations.list().map(({ metadata: { name } }) => name),
  ...sources.list().map(({ metadata: { namespace, name } }) => `${namespace}/${name}`),
];

test.each([
  ['default', ['old', 'one', 'one/orders', 'nobody/orders', 'old/orders']],
  ['two', ['two', 'two/orders', 'nobody/orders']],
  [null, ['old', 'one', 'two', 'one/orders', 'two/orders', 'nobody/orders', 'old/orders']],
])('an installation (%s) sees its organizations, what is in their namespaces, and what is in none, whatever comes first', (name, all) => {
  // One of a release that had no installations is of default.
  const claims = [organization('old', {}), organization('one', { installation: 'default' }), organization('two', { installation: 'two' })];
  const objects = ['one', 'two', 'nobody', 'old'].map((namespace) => source(namespace));
  const orders: (() => void)[] = [
    () => {
      ofOrganizations.replace(claims);
      ofSources.replace(objects);
    },
    () => {
      ofSources.replace(objects);
      ofOrganizations.replace(claims);
    },
    () => {
      for (const object of objects) ofSources.upsert(object);
      for (const claim of claims) ofOrganizations.upsert(claim);
    },
    () => {
      for (const claim of claims) ofOrganizations.upsert(claim);
      for (const object of objects) ofSources.upsert(object);
    },
  ];
  for (const put of orders) {
    start(name);
    put();
    expect(seen().sort()).toEqual([...all].sort());
  }
});

test('what is in a namespace comes and goes with the Organization of another installation, also by a complete list', () => {
  ofSources.upsert(source('two'));
  const other = organization('two', { installation: 'two' });
  ofOrganizations.upsert(other);
  expect([seen(), served.isElsewhere('two'), moved]).toEqual([[], true, ['two']]);
  ofSources.upsert(source('two'));
  ofSources.upsert(source('two', 'more'));
  ofSources.remove(source('two', 'more'));
  expect(seen()).toEqual([]);
  ofOrganizations.remove(other);
  expect([seen(), served.isElsewhere('two'), moved]).toEqual([['two/orders'], false, ['two', 'two']]);
  ofOrganizations.replace([other]);
  expect(seen()).toEqual([]);
  ofOrganizations.replace([]);
  expect(seen()).toEqual(['two/orders']);
  ofOrganizations.replace([other]);
  ofSources.replace([]);
  ofOrganizations.replace([]);
  expect(seen()).toEqual([]);
});

test('what is kept back is the latest state of it, and is reported when it comes back', () => {
  const other = organization('two', { installation: 'two' });
  ofOrganizations.upsert(other);
  ofSources.upsert(source('two'));
  const latest = source('two');
  ofSources.upsert(latest);
  const told: unknown[] = [];
  sources.onChange((key, { before, after }) => void told.push([key.name, before, after?.metadata.resourceVersion]));
  ofOrganizations.remove(other);
  expect(told).toEqual([['orders', undefined, latest.metadata.resourceVersion]]);
});

test.each<[string, PosthornObject<'Organization'>[], boolean]>([
  [
    'the older one',
    [organization('a', { namespace: 's' }, { age: 1 }), organization('b', { namespace: 's', installation: 'two' }, { age: 2 })],
    false,
  ],
  [
    'the older one, of another',
    [organization('a', { namespace: 's' }, { age: 2 }), organization('b', { namespace: 's', installation: 'two' }, { age: 1 })],
    true,
  ],
  [
    'the younger one, as the other is being deleted',
    [
      organization('a', { namespace: 's' }, { age: 2 }),
      organization('b', { namespace: 's', installation: 'two' }, { age: 1, isEnding: true }),
    ],
    false,
  ],
  ['the only one, while it is being deleted', [organization('b', { namespace: 's', installation: 'two' }, { isEnding: true })], true],
])('one of several Organizations has the namespace: %s', (_, claims, isElsewhere) => {
  for (const each of [claims, claims.toReversed()]) {
    start('default');
    for (const claim of each) ofOrganizations.upsert(claim);
    ofSources.upsert(source('s'));
    expect([served.isElsewhere('s'), seen().includes('s/orders')]).toEqual([isElsewhere, !isElsewhere]);
    // Our own one remains to be reported.
    expect(organizations.size).toBe(claims.filter(({ spec }) => spec.installation === undefined).length);
  }
});

test('an Organization that was recreated under its name is not removed with the former', () => {
  const former = organization('two', { installation: 'two' }, { age: 1 });
  ofOrganizations.upsert(former);
  ofOrganizations.upsert(organization('two', { installation: 'two' }, { age: 2 }));
  ofOrganizations.remove(former);
  expect(served.isElsewhere('two')).toBe(true);
  // In another installation, between two lists.
  ofOrganizations.upsert(organization('two', {}, { age: 3 }));
  expect([served.isElsewhere('two'), seen()]).toEqual([false, ['two']]);
  ofOrganizations.upsert(organization('two', { installation: 'two' }, { age: 4 }));
  expect([served.isElsewhere('two'), seen()]).toEqual([true, []]);
});

test.each(['default', 'two'])('an Organization keeps the installation that it was seen with when the field is lost (%s)', (name) => {
  start(name);
  const known = organization('one', { installation: name });
  const other = organization('other', { installation: 'three' });
  ofOrganizations.replace([known, other]);
  const lost = ({ metadata: { uid } }: PosthornObject<'Organization'>, called: string) => {
    const again = organization(called, {});
    return { ...again, metadata: { ...again.metadata, uid } };
  };
  ofOrganizations.upsert(lost(known, 'one'));
  ofOrganizations.upsert(lost(other, 'other'));
  expect(seen()).toEqual(['one']);
  ofOrganizations.replace([lost(known, 'one'), lost(other, 'other')]);
  expect(seen()).toEqual(['one']);
  // Recreated under its name, it is another one.
  ofOrganizations.replace([organization('one', { installation: 'three' }, { age: 2 }), lost(other, 'other')]);
  expect(seen()).toEqual([]);
});
