import { afterAll, beforeAll } from '@jest/globals';
import type { RedisClient } from '../../src/redis/connection.ts';
import { clusterClient, type RedisGroup, startRedisCluster } from './redis-group.ts';

/** What the tests of a suite on a Redis Cluster share. */
export interface ClusterSuite {
  readonly cluster: RedisGroup;
  /** Connected to the Cluster. */
  readonly redis: RedisClient;
}

/** Registers the hooks of the suite that calls it. */
export function clusterSuite(): ClusterSuite {
  let cluster: RedisGroup;
  let redis: RedisClient;
  beforeAll(async () => {
    cluster = await startRedisCluster();
    redis = await clusterClient(cluster);
  });
  afterAll(async () => {
    redis.disconnect();
    await cluster.stop();
  });
  return {
    get cluster() {
      return cluster;
    },
    get redis() {
      return redis;
    },
  };
}
