import { expect, test } from '@jest/globals';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import type { CompleteStore, ResourceStore } from '../../src/store/store.ts';
import { withMethod } from '../support/with-method.ts';
import { startFacadeWorld } from './facade-world.ts';
import { describeRouteTransfer } from './suites/route-transfer.ts';

describeRouteTransfer(() => startFacadeWorld());

test('an import waits until its replica knows what another one has deleted', async () => {
  const late = new LateDeletions();
  const world = await startFacadeWorld({ store: late.store });
  try {
    await world.create('sources', { name: 'shop' });
    await world.create('destinations', { name: 'one', url: 'https://hooks.example.com/in' });
    await world.create('transforms', { name: 'reshape', code: 'payload' });
    await world.create('schemas', { name: 'order', jsonSchema: {} });
    late.isForNewWatches = true;
    const other = await world.startReplica();
    for (const [collection, slug, reference] of [
      ['transforms', 'reshape', 'transformSlug'],
      ['schemas', 'order', 'schemaSlug'],
    ]) {
      const route = { name: 'Late', sourceSlug: 'shop', destinationSlugs: ['one'], [`${reference}`]: slug };
      expect((await world.request('DELETE', `/api/${collection}/${slug}`)).status).toBe(204);
      const imported = other('POST', '/api/routes/import', { body: { routes: [route], conflictStrategy: 'skip' } });
      // Time in which one that does not wait is done.
      await systemClock.sleep(300);
      late.tell();
      expect((await imported).body).toMatchObject({ imported: 0, errors: [expect.stringContaining(`"${slug}"`)] });
    }
  } finally {
    late.tell();
    await world.stop();
  }
});

/** A store with watches that withhold deletions until they are released. */
class LateDeletions {
  isForNewWatches = false;
  #told = Promise.withResolvers<void>();
  readonly store: CompleteStore;

  constructor() {
    const store = new MemoryStore(systemClock);
    const isLate = () => this.isForNewWatches;
    const told = () => this.#told.promise;
    const watch: ResourceStore['watch'] = async function* (kind, ...rest) {
      const isOfLateReplica = isLate();
      for await (const event of store.watch(kind, ...rest)) {
        if (isOfLateReplica && event.type === 'deleted') await told();
        yield event;
      }
    };
    this.store = withMethod(store, 'watch', watch);
  }

  /** Releases the deletions until now. */
  tell(): void {
    this.#told.resolve();
    this.#told = Promise.withResolvers();
  }
}
