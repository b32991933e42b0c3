import { beforeAll, describe, expect, test } from '@jest/globals';
import { snapshotOf, versionsOf } from '../support/configuration-snapshot.ts';
import type { ConfigurationWorld } from '../support/configuration-world.ts';
import type { CrashPoint } from '../support/crashing-process.ts';
import { declare, deleteSecrets, everything, kindsMissing, namespace, organization } from '../support/every-kind.ts';
import { faultWorlds } from './fault-worlds.ts';
import { type Lifetime, lifetime, readiness, stages } from './lifetime.ts';

/** At how many of the writes the controllers die, before and after each; `POSTHORN_FAULT_RUNS=all`: at every one. */
const wantedRuns = process.env['POSTHORN_FAULT_RUNS'];
const timeoutMs = 120_000;

const worlds = faultWorlds();
/** The life of controllers that nothing has happened to, and how many writes they made. */
let undisturbed: Lifetime;
let writes: number;

beforeAll(async () => {
  const world = newWorld();
  undisturbed = await lifetime(world);
  writes = world.writes;
}, timeoutMs);

function newWorld(deathOf: (life: number) => CrashPoint | null = () => null): ConfigurationWorld {
  return worlds.next({ deathOf });
}

async function createdWorld(): Promise<ConfigurationWorld> {
  const world = newWorld();
  world.start();
  await declare(world.store, organization());
  await world.until(() => world.store.get('Namespace', { name: namespace }));
  for (const object of everything) await declare(world.store, object);
  await world.settle();
  return world;
}

describe('controllers that nothing happens to', () => {
  test(
    'bring every kind into force, and write nothing more once they have, nor do those after them',
    async () => {
      expect(kindsMissing).toEqual([]);
      const world = await createdWorld();
      try {
        expect((await readiness(world)).filter((each) => !each.endsWith(': True Ready'))).toEqual([]);
        const before = await versionsOf(world);
        await world.resync(3);
        expect(await versionsOf(world)).toEqual(before);
        await world.restart();
        await world.settle();
        expect(await versionsOf(world)).toEqual(before);
      } finally {
        await world.stop();
      }
    },
    timeoutMs,
  );

  test('controllers that nothing happens to leave nothing of what is deleted', () => {
    const { emptied, gone } = undisturbed;
    expect(Object.keys(emptied.objects).sort()).toEqual([`Namespace /${namespace}`, 'Organization /acme']);
    expect(Object.keys(emptied.records).map((name) => name.split(' ')[0])).toEqual(['organization']);
    expect(emptied.webhooks).toEqual({});
    expect(gone).toEqual({ objects: {}, records: {}, webhooks: {}, keys: [] });
  });
});

describe('controllers that die and are restarted come to the same end', () => {
  test.each(wantedRuns === undefined ? [2] : [1, 2, 5])(
    'whenever %i of their writes have changed something',
    async (changes) => {
      const world = newWorld(() => ({ changes }));
      expectSame(await lifetime(world));
      expect(world.lives).toBeGreaterThan(5);
    },
    timeoutMs,
  );

  test.each(['before', 'after'] as const)(
    '%s one of their writes',
    async (when) => {
      for (const write of places()) {
        const world = newWorld((life) => (life === 0 ? { write, when } : null));
        try {
          expectSame(await lifetime(world));
        } catch (error) {
          throw new Error(`they die ${when} write ${write} of ${writes}`, { cause: error });
        }
      }
    },
    wantedRuns === undefined ? timeoutMs : 3_600_000,
  );

  test(
    'when the organization goes while nobody leads',
    async () => {
      const world = await createdWorld();
      await world.stop();
      await deleteSecrets(world);
      await world.store.delete('Organization', { name: 'acme' });
      await world.pass(3_600_000);
      world.start();
      try {
        await world.settle();
        expect(await snapshotOf(world)).toEqual(undisturbed.gone);
      } finally {
        await world.stop();
      }
    },
    timeoutMs,
  );
});

/** Spread over all writes. */
function places(): number[] {
  const count = wantedRuns === 'all' ? writes : Math.min(writes, Number(wantedRuns ?? 4));
  return Array.from({ length: count }, (_, i) => 1 + Math.floor(((i + 0.5) * writes) / count));
}

function expectSame(ended: Lifetime): void {
  for (const stage of stages) expect({ stage, ...ended[stage] }).toEqual({ stage, ...undisturbed[stage] });
}
