import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { type RunningControllers, startControllers } from './controllers.ts';
import { type RedisServer, startRedis } from './redis.ts';

/** What the tests of a suite about controllers share. Each test has a store and a prefix of its own. */
export interface ControllerSuite {
  readonly prefix: string;
  readonly redis: RedisServer;
  readonly store: MemoryStore;
  /** Those that were started last. They are stopped after the test. */
  readonly controllers: RunningControllers;
  /** Starts the controllers; `own` replaces what they are given. */
  start(own?: Partial<Parameters<typeof startControllers>[0]>): void;
}

/** Registers the hooks of the suite that calls it. */
export function controllerSuite(): ControllerSuite {
  let redis: RedisServer;
  let store: MemoryStore;
  let prefix: string;
  let controllers: RunningControllers;
  let runs = 0;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  beforeEach(() => {
    store = new MemoryStore(systemClock);
    prefix = `run${++runs}:`;
  });
  afterEach(() => controllers.stop());
  return {
    get prefix() {
      return prefix;
    },
    get redis() {
      return redis;
    },
    get store() {
      return store;
    },
    get controllers() {
      return controllers;
    },
    start: (own = {}) => {
      controllers = startControllers({ store, redis: redis.client, prefix, ...own });
    },
  };
}
