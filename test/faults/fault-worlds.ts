import { afterAll, beforeAll } from '@jest/globals';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { ConfigurationWorld, type ConfigurationWorldOptions } from '../support/configuration-world.ts';
import { lenientSandbox } from '../support/lenient-sandbox.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

/** Redis and a sandbox for the worlds of a suite. */
export interface FaultWorlds {
  readonly redis: RedisServer;
  /** A world in which nothing is yet. */
  next(options?: Partial<ConfigurationWorldOptions>): ConfigurationWorld;
}

/** Registers the hooks of the suite that calls it. */
export function faultWorlds(): FaultWorlds {
  let redis: RedisServer;
  let sandbox: Sandbox;
  let worlds = 0;
  beforeAll(async () => {
    redis = await startRedis();
    sandbox = lenientSandbox();
  });
  afterAll(async () => {
    sandbox?.close();
    await redis?.stop();
  });
  return {
    get redis() {
      return redis;
    },
    next: (options) => new ConfigurationWorld({ redis: redis.client, prefix: `run${++worlds}:`, sandbox, ...options }),
  };
}
