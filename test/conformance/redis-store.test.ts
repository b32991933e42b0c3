import { randomBytes } from 'node:crypto';
import { Keyring } from '../../src/core/sealing.ts';
import { blockingConnection } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { RedisStore } from '../../src/store/redis/redis-store.ts';
import { startRedis } from '../support/redis.ts';
import { describeStore } from './store.ts';

describeStore(
  'redis',
  async () => {
    const server = await startRedis();
    const logLength = 100;
    const store = new RedisStore({
      redis: server.client,
      // A server that is blocked for a while is waited for.
      openBlocking: () => blockingConnection(server.url, { blockMs: 31_000 }),
      keyring: new Keyring([{ id: 'k1', key: randomBytes(32) }]),
      clock: systemClock,
      logLength,
      blockMs: 1000,
    });
    return {
      store,
      expiredVersion: async () => {
        const { version } = await store.list('Route');
        for (let i = 0; i <= logLength; i++)
          await store.apply({ kind: 'Namespace', metadata: { name: 'noise', labels: { i: `${i}` } } }, { manager: 'x' });
        return version;
      },
      close: async () => {
        store.close();
        await server.stop();
      },
    };
  },
  90_000,
);
