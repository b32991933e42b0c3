import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { describeStore } from './store.ts';

describeStore(
  'memory',
  async () => {
    const logLength = 100;
    const store = new MemoryStore(systemClock, { logLength });
    return {
      store,
      expiredVersion: async () => {
        const { version } = await store.list('Route');
        for (let i = 0; i <= logLength; i++)
          await store.apply({ kind: 'Namespace', metadata: { name: 'noise', labels: { i: `${i}` } } }, { manager: 'x' });
        return version;
      },
      close: async () => {},
    };
  },
  5000,
);
