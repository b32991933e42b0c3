import { expect, test } from '@jest/globals';
import { blockingConnection } from '../../src/redis/connection.ts';
import { RedisStore } from '../../src/store/redis/redis-store.ts';
import { testKeyring } from '../support/controllers.ts';
import type { CrashPoint } from '../support/crashing-process.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { faultWorlds } from './fault-worlds.ts';
import { type Lifetime, lifetime, stages } from './lifetime.ts';

const timeoutMs = 120_000;
const blockMs = 1000;

const worlds = faultWorlds();
let stores = 0;

async function lifetimeIn(deathOf: (life: number) => CrashPoint | null): Promise<Lifetime> {
  const prefix = `store${++stores}:`;
  let store: RedisStore | undefined;
  const openStore = (clock: FakeClock): RedisStore => {
    const openBlocking = () => blockingConnection(worlds.redis.url, { blockMs });
    store = new RedisStore({ redis: worlds.redis.client, openBlocking, keyring: testKeyring, clock, prefix, blockMs });
    return store;
  };
  const world = worlds.next({ prefix, openStore, watchLagMs: 5, deathOf });
  try {
    return await lifetime(world);
  } finally {
    store?.close();
  }
}

test(
  'controllers that die after every third change come to the same end with the resources in Redis, too, and leave nothing',
  async () => {
    const undisturbed = await lifetimeIn(() => null);
    const ended = await lifetimeIn(() => ({ changes: 3 }));
    for (const stage of stages) expect({ stage, ...ended[stage] }).toEqual({ stage, ...undisturbed[stage] });
    expect(ended.gone).toEqual({ objects: {}, records: {}, webhooks: {}, keys: [] });
  },
  timeoutMs,
);
