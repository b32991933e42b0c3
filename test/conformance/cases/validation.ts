import { describe, expect, test } from '@jest/globals';
import type { ApplyObject } from '../../../src/store/store.ts';
import { details, expectCode, type StoreContext } from '../store-context.ts';

export function validationCases(c: StoreContext): void {
  describe('validation', () => {
    test('defaults are filled in', async () => {
      const made = await c.store.create(c.route('a', { failover: { destinationRefs: [{ name: 'b' }] } }), { manager: 'one' });
      expect(made.spec).toMatchObject({ priority: 0, enabled: true, failover: { afterAttempts: 3 } });
    });

    test('an unknown field is refused by name, on create and on apply', async () => {
      expect(details(await expectCode(c.store.create(c.route('a', { prioriti: 1 }), { manager: 'one' }), 'VALIDATION_FAILED'))).toEqual([
        'spec.prioriti',
      ]);
      expect(
        details(await expectCode(c.store.apply(c.route('a', { circuit: { zz: 1 } }), { manager: 'one' }), 'VALIDATION_FAILED')),
      ).toEqual(['spec.circuit.zz']);
    });

    test('a value of the wrong type, out of bounds or not of the list is refused by name', async () => {
      for (const spec of [{ priority: 'high' }, { priority: 5000 }, { failover: { destinationRefs: [], afterAttempts: 0 } }]) {
        const refused = await expectCode(c.store.apply(c.route('a', spec), { manager: 'one' }), 'VALIDATION_FAILED');
        expect(details(refused)).toEqual([Object.hasOwn(spec, 'priority') ? 'spec.priority' : 'spec.failover.afterAttempts']);
      }
    });

    test('a required field that is missing is refused by name', async () => {
      const bare: ApplyObject<'Route'> = { kind: 'Route', metadata: { name: 'a', namespace: c.namespace }, spec: { destinationRefs: [] } };
      expect(details(await expectCode(c.store.create(bare, { manager: 'one' }), 'VALIDATION_FAILED'))).toEqual(['spec.sourceRef']);
    });

    test('two items with the same key are refused, by the second one', async () => {
      const twice = c.store.create(c.route('a', { destinationRefs: [{ name: 'x' }, { name: 'x' }] }), { manager: 'one' });
      expect((await expectCode(twice, 'VALIDATION_FAILED')).details).toEqual({
        'spec.destinationRefs[1]': ['is there twice: {"name":"x"}; remove one'],
      });
    });

    test('a null where there is a default is the default', async () => {
      expect((await c.store.create(c.route('a', { priority: null }), { manager: 'one' })).spec.priority).toBe(0);
    });

    test('a rule over two fields is enforced, in its own words', async () => {
      const both = { filterRef: { name: 'f' }, filter: { conditions: [{ field: 'a', operator: 'exists' }] } };
      const refused = await expectCode(c.store.create(c.route('a', both), { manager: 'one' }), 'VALIDATION_FAILED');
      expect(refused.details).toEqual({ 'spec.filter': ['give filterRef or filter, not both'] });
    });

    test('a rule over old and new is enforced on changes only', async () => {
      await c.store.create(c.route('a'), { manager: 'one' });
      await c.store.apply(c.route('a', { priority: 3 }), { manager: 'one' });
      const refused = await expectCode(
        c.store.apply(c.route('a', { sourceRef: { name: 'other' } }), { manager: 'one' }),
        'VALIDATION_FAILED',
      );
      expect(refused.message).toContain('cannot be changed');
    });

    test('a name that is no DNS name, and a broken label, are refused', async () => {
      await expectCode(c.store.create(c.route('A_B'), { manager: 'one' }), 'VALIDATION_FAILED');
      await expectCode(c.store.create(c.route('a', {}, { labels: { 'b c': 'x' } }), { manager: 'one' }), 'VALIDATION_FAILED');
    });

    test('a status with an unknown field is refused', async () => {
      await c.store.create(c.route('a'), { manager: 'one' });
      await expectCode(c.store.applyStatus('Route', c.key('a'), { colour: 'red' }, { manager: 'status' }), 'VALIDATION_FAILED');
    });
  });
}
