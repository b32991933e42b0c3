import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomOf } from '../../hack/chaos/random.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { faultWorlds } from '../faults/fault-worlds.ts';
import { lifetime, stages } from '../faults/lifetime.ts';
import type { ConfigurationWorld, ConfigurationWorldOptions } from '../support/configuration-world.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { FaultyWatches } from '../support/faulty-watches.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';

let controlPlane: ControlPlane;
let api: KubernetesApi;
const worlds = faultWorlds();

beforeAll(async () => {
  controlPlane = await startControlPlane({ controllerManager: true, crds: true });
  api = kubernetesApi(controlPlane);
}, 120_000);
afterAll(async () => {
  await api?.close();
  await controlPlane?.stop();
});

function newWorld(options: Partial<ConfigurationWorldOptions> = {}): ConfigurationWorld {
  // Times of creation and deletion are those of the API server.
  const clock = new FakeClock(systemClock.now());
  const openStore = () => new KubernetesStore({ api, clock: systemClock });
  return worlds.next({ clock, openStore, watchLagMs: 15, ...options });
}

test('controllers of a real API server that die, whose watches break and whose calls fail come to the same objects and records, and leave nothing', async () => {
  const undisturbed = await lifetime(newWorld());
  const random = randomOf(20_261_121);
  let isFaulty = false;
  let watches: FaultyWatches | undefined;
  const world = newWorld({
    deathOf: () => ({ changes: 6 }),
    trouble: () => (isFaulty && random() < 0.1 ? (random() < 0.5 ? 'before' : 'after') : null),
    seenAs: (store, clock) => {
      watches = new FaultyWatches(clock, random);
      return watches.around(store);
    },
  });
  const setFaulty = (value: boolean): void => {
    isFaulty = value;
    if (watches !== undefined) watches.isFaulty = value;
  };
  const ended = await lifetime(world, async (work, stage) => {
    // The purge of an organization is given up after a minute, which passes here at once.
    setFaulty(stage !== 'gone');
    await work();
    for (let passes = 0; passes < 20; passes++) await world.pass(1000);
    setFaulty(false);
  });
  for (const stage of stages) expect({ stage, ...ended[stage] }).toEqual({ stage, ...undisturbed[stage] });
  expect(ended.gone).toEqual({ objects: {}, records: {}, webhooks: {}, keys: [] });
  expect(world.lives).toBeGreaterThan(5);
}, 240_000);
