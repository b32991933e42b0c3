import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { silentLogger } from '../../test/support/logger.ts';
import { assertProperty } from '../../test/support/property.ts';
import { resourceId } from '../core/ids.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { type CacheChange, ResourceCache } from './cache.ts';
import type { Key } from './store.ts';

const uidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

function route(name: string, version: number, fields: { uid?: number; namespace?: string; source?: string } = {}): PosthornObject<'Route'> {
  return {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'Route',
    metadata: {
      name,
      namespace: fields.namespace ?? 'shop',
      uid: uidOf(fields.uid ?? 1),
      resourceVersion: `${version}`,
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      managedFields: [
        { manager: 'm', operation: 'Apply', apiVersion: 'posthorn.dev/v1alpha1', fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': {} } },
      ],
    },
    spec: { sourceRef: { name: fields.source ?? 'in' }, destinationRefs: [], priority: 0, enabled: true },
  };
}

function newCache(): { cache: ResourceCache<'Route'>; changes: [Key, CacheChange<'Route'>][] } {
  const cache = new ResourceCache('Route', {
    indexes: { source: (object) => [`${object.metadata.namespace}/${object.spec.sourceRef.name}`] },
    logger: silentLogger,
  });
  const changes: [Key, CacheChange<'Route'>][] = [];
  cache.onChange((key, change) => void changes.push([key, change]));
  return { cache, changes };
}

test('an object is found by key, uid, API id and index until it is removed', () => {
  const { cache } = newCache();
  const object = route('a', 1);
  cache.upsert(object);
  const found = cache.get({ namespace: 'shop', name: 'a' });
  expect(found?.metadata.name).toBe('a');
  expect(cache.getByUid(uidOf(1))).toBe(found);
  expect(cache.getById(resourceId('rte_', object.metadata))).toBe(found);
  expect(cache.byIndex('source', 'shop/in')).toEqual([found]);
  cache.remove(object);
  expect(cache.size).toBe(0);
  expect(cache.getByUid(uidOf(1))).toBeUndefined();
  expect(cache.getById(resourceId('rte_', object.metadata))).toBeUndefined();
  expect(cache.byIndex('source', 'shop/in')).toEqual([]);
});

test('an index follows a change of the value', () => {
  const { cache } = newCache();
  cache.upsert(route('a', 1, { source: 'old' }));
  cache.upsert(route('a', 2, { source: 'new' }));
  expect(cache.byIndex('source', 'shop/old')).toEqual([]);
  expect(cache.byIndex('source', 'shop/new')).toHaveLength(1);
});

test('an id that another namespace claims is found only there', () => {
  const { cache } = newCache();
  const mine = route('a', 1);
  const id = resourceId('rte_', mine.metadata);
  const thief = route('b', 2, { uid: 2, namespace: 'other' });
  thief.metadata.annotations = { 'posthorn.dev/id': id };
  cache.upsert(thief);
  cache.upsert(mine);
  expect(cache.getById(id, 'shop')?.metadata.name).toBe('a');
  expect(cache.getById(id, 'other')?.metadata.name).toBe('b');
});

test('managedFields are left out', () => {
  const { cache } = newCache();
  cache.upsert(route('a', 1));
  expect(cache.list()[0]?.metadata).not.toHaveProperty('managedFields');
});

test('managedFields are kept when requested', () => {
  const cache = new ResourceCache('Route', { logger: silentLogger, keepManagedFields: true });
  cache.upsert(route('a', 1));
  expect(cache.list()[0]?.metadata.managedFields).toHaveLength(1);
});

test('the same version again is no change', () => {
  const { cache, changes } = newCache();
  cache.upsert(route('a', 1));
  cache.upsert(route('a', 1));
  expect(changes).toHaveLength(1);
});

test('a new list reports what came, what changed and what is gone, and nothing of what stayed', () => {
  const { cache, changes } = newCache();
  cache.replace([route('stays', 1, { uid: 1 }), route('changes', 1, { uid: 2 }), route('goes', 1, { uid: 3 })]);
  changes.length = 0;
  cache.replace([route('stays', 1, { uid: 1 }), route('changes', 2, { uid: 2 }), route('comes', 2, { uid: 4 })]);
  const told = changes.map(([key, { before, after }]) => [key.name, before?.metadata.resourceVersion, after?.metadata.resourceVersion]);
  expect(told).toEqual([
    ['goes', '1', undefined],
    ['changes', '1', '2'],
    ['comes', undefined, '2'],
  ]);
});

test('a list of one namespace leaves the others', () => {
  const { cache } = newCache();
  cache.upsert(route('a', 1, { uid: 1, namespace: 'one' }));
  cache.upsert(route('a', 1, { uid: 2, namespace: 'two' }));
  cache.replace([], 'one');
  expect(cache.list().map((object) => object.metadata.namespace)).toEqual(['two']);
});

test('an object recreated under its name is reported with both uids, and the old one is no longer found', () => {
  const { cache, changes } = newCache();
  cache.upsert(route('a', 1, { uid: 1 }));
  cache.replace([route('a', 5, { uid: 2 })]);
  expect([changes[1]?.[1].before?.metadata.uid, changes[1]?.[1].after?.metadata.uid]).toEqual([uidOf(1), uidOf(2)]);
  expect(cache.getByUid(uidOf(1))).toBeUndefined();
});

test('a late deletion of the one before does not take its successor', () => {
  const { cache } = newCache();
  cache.upsert(route('a', 5, { uid: 2 }));
  cache.remove(route('a', 3, { uid: 1 }));
  expect(cache.size).toBe(1);
});

test('a listener that throws hinders no other', () => {
  const { cache, changes } = newCache();
  const second: Key[] = [];
  const end = cache.onChange(() => {
    throw new Error('broken');
  });
  cache.onChange((key) => void second.push(key));
  cache.upsert(route('a', 1));
  end();
  expect([changes.length, second]).toEqual([1, [{ namespace: 'shop', name: 'a' }]]);
});

test('a list by age holds those of its namespace, follows every change, and those of one moment are ordered by name', () => {
  const { cache } = newCache();
  const at = (name: string, uid: number, second: number, namespace = 'shop') => {
    const object = route(name, uid, { uid, namespace });
    return { ...object, metadata: { ...object.metadata, creationTimestamp: `2026-01-01T00:00:0${second}Z` } };
  };
  const names = () => cache.newestFirst('shop').map(({ metadata }) => metadata.name);
  const [old, young] = [at('old', 1, 1), at('young', 2, 3)];
  cache.replace([young, old, at('elsewhere', 3, 2, 'bank')]);
  expect(names()).toEqual(['young', 'old']);
  expect(cache.newestFirst('shop')).toBe(cache.newestFirst('shop'));
  cache.upsert(at('b', 4, 2));
  cache.upsert(at('a', 5, 2));
  expect(names()).toEqual(['young', 'a', 'b', 'old']);
  cache.remove(young);
  expect(names()).toEqual(['a', 'b', 'old']);
  const changed = route('old', 9, { uid: 1 });
  cache.upsert({ ...changed, metadata: { ...changed.metadata, creationTimestamp: old.metadata.creationTimestamp } });
  expect(cache.newestFirst('shop')[2]?.metadata.resourceVersion).toBe('9');
});

test('the oldest object of each namespace that claims an id is known after every change', () => {
  const id = resourceId('rte_', route('a', 1).metadata);
  const claim = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    namespace: fc.constantFrom('shop', 'other'),
    uid: fc.integer({ min: 2, max: 9 }),
    second: fc.integer({ min: 0, max: 3 }),
    isClaiming: fc.boolean(),
    isEnding: fc.boolean(),
    isRemoved: fc.boolean(),
  });
  assertProperty(
    fc.property(fc.array(claim, { maxLength: 40 }), fc.integer({ min: 2, max: 9 }), (claims, except) => {
      const { cache } = newCache();
      for (const [i, { name, namespace, uid, second, isClaiming, isEnding, isRemoved }] of claims.entries()) {
        const object = route(name, i, { namespace, uid });
        Object.assign(object.metadata, {
          creationTimestamp: `2026-01-01T00:00:0${second}Z`,
          ...(isClaiming && { annotations: { 'posthorn.dev/id': id } }),
          ...(isEnding && { deletionTimestamp: '2026-01-01T00:00:09Z' }),
        });
        if (isRemoved) cache.remove(cache.get(object.metadata) ?? object);
        else cache.upsert(object);
        for (const exceptUid of [undefined, uidOf(except)]) {
          const live = cache
            .list()
            .filter(({ metadata }) => resourceId('rte_', metadata) === id && metadata.deletionTimestamp === undefined);
          const others = live.filter(({ metadata }) => metadata.uid !== exceptUid);
          const byNamespace = Map.groupBy(others, ({ metadata }) => metadata.namespace);
          const age = ({ metadata }: PosthornObject<'Route'>): string => `${metadata.creationTimestamp} ${metadata.uid}`;
          const oldest = [...byNamespace.values()].map((all) => all.toSorted((one, other) => (age(one) < age(other) ? -1 : 1))[0]);
          const sorted = (all: readonly (PosthornObject<'Route'> | undefined)[]) => all.map((each) => each && age(each)).toSorted();
          expect(sorted(cache.oldestWithId(id, exceptUid))).toEqual(sorted(oldest));
        }
      }
    }),
  );
});
