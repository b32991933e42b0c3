import { describe, expect, test } from '@jest/globals';
import type { FieldNode } from './field-tree.ts';
import { type ConfigurationKind, configurationKinds, kinds, type PosthornKind, type PosthornObject, posthornKinds } from './kinds.ts';
import {
  kindsWithSecrets,
  namespaceOf,
  namesReferredTo,
  references,
  referrersOf,
  refersTo,
  retractionOrder as retracted,
  specTrees,
  targetsFirst,
} from './references.ts';
import { isSecretRefName } from './secret-use.ts';

test.each(posthornKinds)('the references of kind %s lead to kinds that there are', (kind) => {
  for (const reference of references[kind]) expect(posthornKinds).toContain(reference.kind);
});

test.each(configurationKinds)('every field of kind %s that is called a reference names a kind or a Secret', (kind) => {
  const declared = references[kind].map(({ path }) => path.join('.'));
  const found = fieldsCalledReference(specTrees[kind], []);
  expect(found.filter(({ name }) => !isSecretRefName(name)).map(({ path }) => path)).toEqual(declared);
  expect(found.some(({ name }) => isSecretRefName(name))).toBe(kindsWithSecrets.includes(kind));
});

function fieldsCalledReference(node: FieldNode, path: readonly string[]): { name: string; path: string }[] {
  if (node.type === 'list') return fieldsCalledReference(node.item, path);
  if (node.type !== 'object') return [];
  return [...node.fields].flatMap(([name, field]) =>
    /Refs?$/.test(name) ? [{ name, path: [...path, name].join('.') }] : fieldsCalledReference(field, [...path, name]),
  );
}

describe('the names that an object refers to', () => {
  const metadata = { namespace: 'acme', name: 'orders', uid: 'u', generation: 1 };
  const route = {
    kind: 'Route',
    metadata,
    spec: {
      sourceRef: { name: 'shop' },
      destinationRefs: [{ name: 'erp' }, { name: 'crm' }],
      failover: { destinationRefs: [{ name: 'crm' }, { name: 'backup' }] },
      transformRef: { name: 'flat' },
      notifications: { channelRefs: [{ name: 'ops' }] },
    },
  } as unknown as PosthornObject<PosthornKind>;
  const organization = {
    kind: 'Organization',
    metadata: { name: 'acme' },
    spec: { namespace: 'acme-events', archive: { destinationRef: { name: 'bucket' } } },
  } as unknown as PosthornObject<PosthornKind>;

  test.each<[PosthornObject<PosthornKind>, PosthornKind, string[]]>([
    [route, 'Source', ['shop']],
    [route, 'Destination', ['erp', 'crm', 'backup']],
    [route, 'Transform', ['flat']],
    [route, 'NotificationChannel', ['ops']],
    [route, 'Filter', []],
    [route, 'WebhookEndpoint', []],
    [organization, 'Destination', ['bucket']],
  ])('each are listed once (case %#)', (object, target, names) => {
    expect(namesReferredTo(object, target)).toEqual(names);
    const candidates = ['shop', 'erp', 'crm', 'backup', 'flat', 'ops', 'bucket', 'acme'];
    expect(candidates.filter((name) => refersTo(object, target, name)).sort()).toEqual([...names].sort());
  });

  test('those of an organization lead to its namespace, those of others to their own', () => {
    expect([namespaceOf(organization), namespaceOf(route)]).toEqual(['acme-events', 'acme']);
  });
});

test('an object comes behind what it refers to in the order of application, and before it in the order of retraction', () => {
  expect([...targetsFirst].sort()).toEqual([...configurationKinds].sort());
  const published = configurationKinds.filter((kind) => kind !== 'Organization' && kinds[kind].recordKind !== null);
  const retractionOrder = retracted.map(({ kind }) => kind);
  expect([...retractionOrder].sort()).toEqual(published.sort());
  const namespaced = (kind: ConfigurationKind): boolean => kind !== 'Organization';
  for (const target of configurationKinds)
    for (const referrer of referrersOf(target).filter(namespaced)) {
      expect(targetsFirst.indexOf(referrer)).toBeGreaterThan(targetsFirst.indexOf(target));
      if (target !== 'Source' && retractionOrder.includes(referrer) && retractionOrder.includes(target))
        expect(retractionOrder.indexOf(referrer)).toBeLessThan(retractionOrder.indexOf(target));
    }
  expect(targetsFirst[0]).toBe('Organization');
  expect(retractionOrder.slice(0, 2)).toEqual(['Source', 'WebhookEventType']);
});
