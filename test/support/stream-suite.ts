import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { lenientClock } from './lenient-clock.ts';
import { newEvent } from './new-event.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { startHub, type TestHub } from './stream-clients.ts';

export interface StreamSuite {
  readonly redis: RedisServer;
  readonly acceptor: RedisMessageAcceptor;
  /** A hub that is closed after the test. */
  hubWith(options?: Partial<Parameters<typeof startHub>[1]>): TestHub;
  /** Stores events, one after the other; returns their ids. */
  accept(count: number, org?: string): Promise<string[]>;
}

/** A Redis of its own for the suites of live streams, empty before each test. */
export function streamSuite(prefix: string): StreamSuite {
  let redis: RedisServer;
  let acceptor: RedisMessageAcceptor;
  const hubs: TestHub[] = [];
  beforeAll(async () => {
    redis = await startRedis();
    acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  });
  afterAll(() => redis.stop());
  beforeEach(() => redis.client.flushall());
  afterEach(() => {
    for (const { close } of hubs.splice(0)) close();
  });
  return {
    get redis() {
      return redis;
    },
    get acceptor() {
      return acceptor;
    },
    hubWith: (options = {}) => {
      const hub = startHub({ client: redis.client, blocking: redis.url }, { prefix, ...options });
      hubs.push(hub);
      return hub;
    },
    accept: async (count, org = 'org_a') => {
      const ids: string[] = [];
      for (let i = 0; i < count; i++) {
        const event = newEvent({ org });
        await acceptor.accept(event);
        ids.push(event.id);
      }
      return ids;
    },
  };
}
