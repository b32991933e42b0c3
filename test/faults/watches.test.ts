import { beforeAll, expect, test } from '@jest/globals';
import { randomOf } from '../../hack/chaos/random.ts';
import type { ConfigurationWorld } from '../support/configuration-world.ts';
import { FaultyWatches } from '../support/faulty-watches.ts';
import { faultWorlds } from './fault-worlds.ts';
import { type Lifetime, lifetime, stages } from './lifetime.ts';

/** `POSTHORN_FAULT_RUNS=50` runs longer. */
const wantedRuns = Number(process.env['POSTHORN_FAULT_RUNS'] ?? 2);
const seeds = Array.from({ length: Number.isNaN(wantedRuns) ? 100 : wantedRuns }, (_, i) => i + 1);
const timeoutMs = 120_000 + seeds.length * 10_000;
/** Length of each stage, while things go wrong. */
const faultyMs = 40_000;

const worlds = faultWorlds();
let undisturbed: Lifetime;

beforeAll(async () => {
  undisturbed = await lifetime(worlds.next());
}, timeoutMs);

test(
  'watches that break off, come late, repeat events, or expire change nothing of the end',
  async () => {
    const happened: Record<string, number> = {};
    for (const seed of seeds) {
      let watches: FaultyWatches | undefined;
      const world = worlds.next({
        seenAs: (store, clock) => {
          watches = new FaultyWatches(clock, randomOf(seed));
          return watches.around(store);
        },
      });
      const ended = await lifetime(world, async (work) => {
        if (watches !== undefined) watches.isFaulty = true;
        await work();
        await passWith(world);
        if (watches !== undefined) watches.isFaulty = false;
      });
      expectSame(ended, seed);
      for (const [fault, times] of Object.entries(watches?.faults ?? {})) happened[fault] = (happened[fault] ?? 0) + times;
    }
    expect(Object.entries(happened).filter(([, times]) => times === 0)).toEqual([]);
  },
  timeoutMs,
);

test(
  'calls that do not get there, and answers that do not come back, change nothing of the end',
  async () => {
    for (const seed of seeds) {
      const random = randomOf(seed);
      let isFaulty = false;
      let troubles = 0;
      const trouble = (): 'before' | 'after' | null => {
        if (!isFaulty || random() >= 0.15) return null;
        troubles++;
        return random() < 0.5 ? 'before' : 'after';
      };
      const world = worlds.next({ trouble });
      const ended = await lifetime(world, async (work) => {
        isFaulty = true;
        await work();
        await passWith(world);
        isFaulty = false;
      });
      expectSame(ended, seed);
      expect(troubles).toBeGreaterThan(20);
    }
  },
  timeoutMs,
);

/** In steps, so that controllers that have ended are restarted. */
async function passWith(world: ConfigurationWorld): Promise<void> {
  for (let passedMs = 0; passedMs < faultyMs; passedMs += 1000) await world.pass(1000);
}

function expectSame(ended: Lifetime, seed: number): void {
  for (const stage of stages) expect({ seed, stage, ...ended[stage] }).toEqual({ seed, stage, ...undisturbed[stage] });
}
