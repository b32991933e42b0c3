import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { fromFieldsV1, pathText } from '../../../src/store/objects/field-set.ts';
import { type ApplyObject, versionOf } from '../../../src/store/store.ts';
import { condition, expectCode, type StoreContext } from '../store-context.ts';

export function applyCases(c: StoreContext): void {
  describe('apply', () => {
    test('makes the object when it is missing', async () => {
      const made = await c.store.apply(c.route('a', { priority: 4 }), { manager: 'one' });
      expect(await c.store.get('Route', c.key('a'))).toEqual(made);
    });

    test('the same again leaves the version', async () => {
      const first = await c.store.apply(c.route('a', { priority: 4 }), { manager: 'one' });
      await sleep(1100);
      const second = await c.store.apply(c.route('a', { priority: 4 }), { manager: 'one' });
      expect(versionOf(second)).toBe(versionOf(first));
    });

    test('a change gives a new version, and a stale ifVersion is CONFLICT', async () => {
      const first = await c.store.apply(c.route('a'), { manager: 'one' });
      const second = await c.store.apply(c.route('a', { priority: 1 }), { manager: 'one', ifVersion: versionOf(first) });
      expect(versionOf(second)).not.toBe(versionOf(first));
      await expectCode(c.store.apply(c.route('a', { priority: 2 }), { manager: 'one', ifVersion: versionOf(first) }), 'CONFLICT');
      expect((await c.store.get('Route', c.key('a'))).spec.priority).toBe(1);
    });

    test('ifVersion of an object that is gone is CONFLICT and does not bring it back', async () => {
      const first = await c.store.apply(c.route('a'), { manager: 'one' });
      await c.store.delete('Route', c.key('a'));
      await expectCode(c.store.apply(c.route('a'), { manager: 'one', ifVersion: versionOf(first) }), 'CONFLICT');
      await expectCode(c.store.get('Route', c.key('a')), 'RESOURCE_NOT_FOUND');
    });

    test('generation grows with the spec only', async () => {
      await c.store.apply(c.route('a'), { manager: 'one' });
      const labelled = await c.store.apply(c.route('a', {}, { labels: { team: 'x' } }), { manager: 'one' });
      expect(labelled.metadata.generation).toBe(1);
      const changed = await c.store.apply(c.route('a', { priority: 1 }, { labels: { team: 'x' } }), { manager: 'one' });
      expect(changed.metadata.generation).toBe(2);
      const seen = await c.store.applyStatus('Route', c.key('a'), { observedGeneration: 2 }, { manager: 'status' });
      expect(seen.metadata.generation).toBe(2);
    });

    test('a field given before and no longer is removed', async () => {
      await c.store.apply(c.route('a', { priority: 5, description: 'first', failover: { destinationRefs: [{ name: 'b' }] } }), {
        manager: 'one',
      });
      const after = await c.store.apply(c.route('a', {}), { manager: 'one' });
      expect(after.spec).toEqual({ sourceRef: { name: 'in' }, destinationRefs: [{ name: 'out' }], priority: 0, enabled: true });
    });

    test('a list whose items are all removed is empty, and has not gone', async () => {
      const specOf = (out: { name: string }[], spare: { name: string }[], emails: string[]) => ({
        destinationRefs: out,
        failover: { destinationRefs: spare, afterAttempts: 2 },
        notifications: { channelRefs: spare, emails },
      });
      await c.store.apply(c.route('a', specOf([{ name: 'out' }], [{ name: 'b' }], ['a@b.example'])), { manager: 'one' });
      const after = await c.store.apply(c.route('a', specOf([], [], [])), { manager: 'one' });
      expect(after.spec).toMatchObject(specOf([], [], []));
      expect((await c.store.get('Route', c.key('a'))).spec).toMatchObject(specOf([], [], []));
    });

    test('an empty list that was given goes with a null', async () => {
      const given = (channelRefs: unknown) => c.route('a', { notifications: { onFailure: true, channelRefs } });
      await c.store.apply(given([]), { manager: 'one' });
      expect((await c.store.apply(given(null), { manager: 'one' })).spec.notifications).not.toHaveProperty('channelRefs');
      expect((await c.store.get('Route', c.key('a'))).spec.notifications).toEqual({
        onFailure: true,
        onSuccess: false,
        onRecovery: false,
        failureThreshold: 3,
      });
    });

    test('a null is no value, in a change as in what is made', async () => {
      const nulls = {
        description: null,
        priority: null,
        filterRef: null,
        circuit: null,
        failover: { destinationRefs: [], afterAttempts: null },
      };
      const wanted = { ...(await c.store.create(c.route('made', nulls), { manager: 'one' })).spec };
      await c.store.apply(c.route('a', { description: 'x', priority: 3, circuit: { cooldownSeconds: 9 } }), { manager: 'one' });
      expect((await c.store.apply(c.route('a', nulls), { manager: 'one' })).spec).toEqual(wanted);
      expect(wanted).toEqual({
        sourceRef: { name: 'in' },
        destinationRefs: [{ name: 'out' }],
        priority: 0,
        enabled: true,
        failover: { destinationRefs: [], afterAttempts: 3 },
      });
    });

    test('text and numbers are stored as they are, whatever characters they have', async () => {
      const text = '\u007f\u0080 \u0085 \u009f\u00a0 \u2028 \u2029 \ufeff\ufffe\uffff\u0000\t\n ü 日本 😀 "\\ud800" <&>';
      const value = { [text]: [text, 2 ** 53 - 1, -0.5, 1e21, 1e-7, null], '<<': { a: 1 }, ['k'.repeat(2000)]: 'v'.repeat(2000) };
      const spec = {
        expectedResponse: { bodyContains: text },
        filter: { logic: 'AND', conditions: [{ field: 'a', operator: 'equals', value }] },
      };
      expect((await c.store.create(c.route('a', spec), { manager: 'one' })).spec).toMatchObject(spec);
      await c.store.apply(c.route('a', { ...spec, description: 'a\ufeff\u2028b' }), { manager: 'one' });
      expect((await c.store.get('Route', c.key('a'))).spec).toMatchObject({ ...spec, description: 'a\ufeff\u2028b' });
    });

    test('a label given before and no longer is removed, and those of others stay', async () => {
      await c.store.apply(c.route('a', {}, { labels: { mine: '1' } }), { manager: 'one' });
      await c.store.apply({ kind: 'Route', metadata: { name: 'a', namespace: c.namespace, labels: { theirs: '2' } } }, { manager: 'two' });
      const after = await c.store.apply(c.route('a'), { manager: 'one' });
      expect(after.metadata.labels).toEqual({ theirs: '2' });
    });

    test("another manager's field is FIELD_MANAGED with its name, and nothing changes", async () => {
      const before = await c.store.apply(c.route('a', { priority: 5 }), { manager: 'kubectl' });
      const refused = await expectCode(
        c.store.apply(
          { kind: 'Route', metadata: { name: 'a', namespace: c.namespace }, spec: { priority: 6 } },
          { manager: 'posthorn-api' },
        ),
        'FIELD_MANAGED',
      );
      expect(refused.details).toEqual({ 'spec.priority': ['kubectl'] });
      expect(await c.store.get('Route', c.key('a'))).toEqual(before);
    });

    test('an item of a keyed list that another manager owns is named by its key', async () => {
      const http = (value: string): unknown => ({ url: 'https://example.com/', headers: [{ name: 'x-a', value }] });
      await c.store.apply(c.destination('d', { http: http('1') }), { manager: 'kubectl' });
      const refused = await expectCode(
        c.store.apply(
          { kind: 'Destination', metadata: { name: 'd', namespace: c.namespace }, spec: { http: http('2') } },
          { manager: 'posthorn-api' },
        ),
        'FIELD_MANAGED',
      );
      expect(refused.details).toEqual({ 'spec.http.headers[name="x-a"].value': ['kubectl'] });
    });

    test('an equal value is no conflict, and the field is then shared', async () => {
      await c.store.apply(c.route('a', { priority: 5 }), { manager: 'kubectl' });
      await c.store.apply(
        { kind: 'Route', metadata: { name: 'a', namespace: c.namespace }, spec: { priority: 5 } },
        { manager: 'posthorn-api' },
      );
      const after = await c.store.apply(c.route('a'), { manager: 'kubectl' });
      expect(after.spec.priority).toBe(5);
    });

    test('force takes the field over', async () => {
      await c.store.apply(c.route('a', { priority: 5 }), { manager: 'kubectl' });
      const taken = await c.store.apply(
        { kind: 'Route', metadata: { name: 'a', namespace: c.namespace }, spec: { priority: 6 } },
        { manager: 'two', force: true },
      );
      expect(taken.spec.priority).toBe(6);
      const refused = await expectCode(c.store.apply(c.route('a', { priority: 5 }), { manager: 'kubectl' }), 'FIELD_MANAGED');
      expect(refused.details).toEqual({ 'spec.priority': ['two'] });
    });

    test('who lost a field to force no longer holds it', async () => {
      await c.store.apply(c.route('a', { priority: 5 }), { manager: 'kubectl' });
      const mine = (spec: object): ApplyObject<'Route'> => ({ kind: 'Route', metadata: { name: 'a', namespace: c.namespace }, spec });
      await c.store.apply(mine({ priority: 6 }), { manager: 'two', force: true });
      const after = await c.store.apply(mine({ enabled: true }), { manager: 'two' });
      expect(after.spec.priority).toBe(0);
    });

    test('items that only the live list has keep their place among those that both have', async () => {
      const refs = (...names: string[]) => names.map((name) => ({ name }));
      await c.store.apply(c.route('a', { destinationRefs: refs('x', 'y', 'w') }), { manager: 'one' });
      const mine = { kind: 'Route' as const, metadata: { name: 'a', namespace: c.namespace }, spec: { destinationRefs: refs('y', 'z') } };
      const both = await c.store.apply(mine, { manager: 'two' });
      expect(both.spec.destinationRefs).toEqual(refs('x', 'y', 'w', 'z'));
    });

    test('keyed lists merge, in the order of who applies', async () => {
      await c.store.apply(c.route('a', { destinationRefs: [{ name: 'x' }, { name: 'y' }] }), { manager: 'one' });
      const refs = [{ name: 'z' }, { name: 'y' }];
      const both = await c.store.apply(
        { kind: 'Route', metadata: { name: 'a', namespace: c.namespace }, spec: { destinationRefs: refs } },
        { manager: 'two' },
      );
      expect(both.spec.destinationRefs).toEqual([{ name: 'x' }, { name: 'z' }, { name: 'y' }]);
      const after = await c.store.apply(c.route('a', { destinationRefs: [{ name: 'y' }] }), { manager: 'one' });
      expect(after.spec.destinationRefs.map((ref) => ref.name).sort()).toEqual(['y', 'z']);
    });

    test('an atomic list is replaced as a whole and has one owner', async () => {
      const filter = (operator: string): ApplyObject<'Filter'> => ({
        kind: 'Filter',
        metadata: { name: 'f', namespace: c.namespace },
        spec: { conditions: [{ field: 'a', operator }] },
      });
      await c.store.apply(filter('exists'), { manager: 'one' });
      expect((await expectCode(c.store.apply(filter('not_exists'), { manager: 'two' }), 'FIELD_MANAGED')).details).toEqual({
        'spec.conditions': ['one'],
      });
      const taken = await c.store.apply(filter('not_exists'), { manager: 'two', force: true });
      expect(taken.spec.conditions).toEqual([{ field: 'a', operator: 'not_exists' }]);
    });

    test('a set is the union of what its managers give', async () => {
      const source = (allowedMethods: string[]): ApplyObject<'Source'> => ({
        kind: 'Source',
        metadata: { name: 's', namespace: c.namespace },
        spec: { allowedMethods },
      });
      await c.store.apply(source(['POST', 'PUT']), { manager: 'one' });
      const both = await c.store.apply(source(['PUT', 'PATCH']), { manager: 'two' });
      expect([...both.spec.allowedMethods].sort()).toEqual(['PATCH', 'POST', 'PUT']);
      const after = await c.store.apply(source(['POST']), { manager: 'one' });
      expect([...after.spec.allowedMethods].sort()).toEqual(['PATCH', 'POST', 'PUT']);
    });

    test('managedFields report who owns what', async () => {
      await c.store.apply(c.destination('d', { http: { url: 'https://example.com/', headers: [{ name: 'x-a', value: '1' }] } }), {
        manager: 'one',
      });
      const { metadata } = await c.store.applyStatus(
        'Destination',
        c.key('d'),
        { conditions: [condition('Ready', 'Ok')] },
        { manager: 'status' },
      );
      const entries = metadata.managedFields?.map(({ time: _, ...entry }) => entry).sort((a, b) => (a.manager < b.manager ? -1 : 1));
      expect(entries).toEqual([
        {
          manager: 'one',
          operation: 'Apply',
          apiVersion: 'posthorn.dev/v1alpha1',
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:spec': {
              'f:type': {},
              'f:http': { 'f:url': {}, 'f:headers': { 'k:{"name":"x-a"}': { '.': {}, 'f:name': {}, 'f:value': {} } } },
            },
          },
        },
        {
          manager: 'status',
          operation: 'Apply',
          apiVersion: 'posthorn.dev/v1alpha1',
          subresource: 'status',
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:status': {
              'f:conditions': {
                'k:{"type":"Ready"}': {
                  '.': {},
                  'f:type': {},
                  'f:status': {},
                  'f:reason': {},
                  'f:message': {},
                  'f:lastTransitionTime': {},
                },
              },
            },
          },
        },
      ]);
    });

    test('managedFields name items as the objects have them, whatever characters their keys have', async () => {
      const [name, email] = ['X-R&D', 'r&d@example.com'];
      const destination = c.destination('d', { http: { url: 'https://example.com/', headers: [{ name, value: '1' }] } });
      const route = c.route('a', { notifications: { emails: [email] } });
      const owned = async (object: ApplyObject) =>
        ((await c.store.apply(object, { manager: 'one' })).metadata.managedFields ?? []).flatMap(({ fieldsV1 }) => [
          ...fromFieldsV1(fieldsV1),
        ]);
      expect(await owned(destination)).toContain(pathText(['f:spec', 'f:http', 'f:headers', `k:{"name":"${name}"}`]));
      expect(await owned(route)).toContain(pathText(['f:spec', 'f:notifications', 'f:emails', `v:"${email}"`]));
    });

    test('many writers of one object lose no change', async () => {
      await c.store.create(c.route('a'), { manager: 'one' });
      const managers = Array.from({ length: 8 }, (_, index) => `m${index}`);
      await Promise.all(
        managers.map((manager) =>
          c.store.apply({ kind: 'Route', metadata: { name: 'a', namespace: c.namespace, labels: { [manager]: '1' } } }, { manager }),
        ),
      );
      expect(Object.keys((await c.store.get('Route', c.key('a'))).metadata.labels ?? {}).sort()).toEqual(managers);
    });
  });
}
