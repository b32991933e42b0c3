import { describe, expect, test } from '@jest/globals';
import { versionOf } from '../../../src/store/store.ts';
import { expectCode, type StoreContext } from '../store-context.ts';

export function watchCases(c: StoreContext): void {
  describe('watch', () => {
    test('from the version of a list it gives every change since, once and in order', async () => {
      await c.store.create(c.route('before'), { manager: 'one' });
      const { version } = await c.store.list('Route', { namespace: c.namespace });
      await c.store.create(c.route('a'), { manager: 'one' });
      await c.store.apply(c.route('a', { priority: 1 }), { manager: 'one' });
      await c.store.create(c.destination('d'), { manager: 'one' });
      const watch = c.watching('Route', version);
      expect(await watch.next()).toMatchObject({ type: 'added', object: { kind: 'Route', metadata: { name: 'a' } } });
      expect(await watch.next()).toMatchObject({ type: 'modified', object: { spec: { priority: 1 } } });
      const late = watch.next();
      await c.store.applyStatus('Route', c.key('a'), { id: 'x' }, { manager: 'status' });
      expect(await late).toMatchObject({ type: 'modified', object: { status: { id: 'x' } } });
      await c.store.delete('Route', c.key('a'));
      expect(await watch.next()).toMatchObject({ type: 'deleted', object: { metadata: { name: 'a' } } });
      watch.stop();
    });

    test('it continues from the version of any event, a deletion too', async () => {
      const { version } = await c.store.list('Route', { namespace: c.namespace });
      await c.store.create(c.route('a'), { manager: 'one' });
      await c.store.delete('Route', c.key('a'));
      await c.store.create(c.route('b'), { manager: 'one' });
      const watch = c.watching('Route', version);
      await watch.next();
      const deletion = await watch.next();
      watch.stop();
      const again = c.watching('Route', versionOf(deletion.object));
      expect(await again.next()).toMatchObject({ type: 'added', object: { metadata: { name: 'b' } } });
      again.stop();
    });

    test('its first event is a bookmark of where it began', async () => {
      const { version } = await c.store.list('Route', { namespace: c.namespace });
      const stop = new AbortController();
      for await (const event of c.store.watch('Route', version, stop.signal)) {
        expect(event).toEqual({ type: 'bookmark', version });
        break;
      }
      stop.abort();
    });

    test('a version that is too old is EXPIRED', async () => {
      const watch = c.watching('Route', await c.subject.expiredVersion());
      await expectCode(watch.next(), 'EXPIRED');
    });

    test('aborting ends it without an error', async () => {
      const { version } = await c.store.list('Route', { namespace: c.namespace });
      const stop = new AbortController();
      const seen: unknown[] = [];
      for await (const event of c.store.watch('Route', version, stop.signal, { namespace: c.namespace })) {
        seen.push(event.type);
        setTimeout(() => stop.abort(), 200);
      }
      expect(seen).toEqual(['bookmark']);
    });
  });
}
