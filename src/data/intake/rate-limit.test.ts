import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { commandConnection } from '../../redis/connection.ts';
import { RateLimiter, takeRequest } from './rate-limit.ts';

test('a caller that has waited for Redis in vain does not wait again; without Redis no request is refused', async () => {
  const server = await startRedis();
  const redis = commandConnection(server.url);
  redis.on('error', () => {});
  const clock = new FakeClock();
  const limiter = new RateLimiter({ redis, prefix: 'test:', clock, logger: silentLogger });
  try {
    redis.connect().catch(() => {});
    await eventually(() => expect(redis.status).toBe('ready'));
    server.freeze();
    await expect(limiter.take('key_a', 1)).rejects.toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 });
    expect(await limiter.take('key_a', 1)).toBeNull();
    await server.kill('SIGKILL');
    await eventually(() => expect(redis.status).not.toBe('ready'));
    await clock.advance(5001);
    expect(await limiter.take('key_a', 1)).toBeNull();
  } finally {
    redis.disconnect();
    await server.stop();
  }
});

describe('the credentials of an organization', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());
  beforeEach(() => server.client.flushall());

  /** How many of the requests of a credential are allowed. */
  async function allowed(credential: string, requests: number, each = 1): Promise<number> {
    let count = 0;
    for (let i = 0; i < requests; i++) {
      const taken = { requests: each, credential };
      const state = await takeRequest({ redis: server.client, prefix: 'test:', clock: new FakeClock() }, 'org_a', 16, taken);
      count += state.allowed ? 1 : 0;
    }
    return count;
  }
  const endWindow = () => server.client.del('test:{rate:org_a}');

  test('share a limit that one of them may use up while it is alone', async () => {
    expect([await allowed('key_a', 20), await allowed('key_b', 1)]).toEqual([16, 0]);
    await endWindow();
    await endWindow();
    expect(await allowed('key_b', 1)).toBe(1);
    await endWindow();
    expect(await allowed('key_b', 20)).toBe(16);
  });

  test('keep of the last quarter what others asked for in the window before, also in vain', async () => {
    expect([await allowed('key_a', 20), await allowed('key_b', 2)]).toEqual([16, 0]);
    await endWindow();
    expect([await allowed('key_a', 20), await allowed('key_b', 3)]).toEqual([14, 1]);
    await endWindow();
    expect([await allowed('key_a', 20), await allowed('key_b', 20)]).toEqual([13, 2]);
    await endWindow();
    expect([await allowed('key_a', 20), await allowed('key_b', 20), await allowed('key_c', 20)]).toEqual([12, 2, 1]);
  });

  test('ask for several at once in the same way', async () => {
    await allowed('key_b', 4);
    await endWindow();
    expect([await allowed('key_a', 4, 4), await allowed('key_b', 1, 4)]).toEqual([3, 1]);
  });

  test('are told apart only up to a number of them', async () => {
    for (let i = 0; i < 1100; i++) await allowed(`key_${i}`, 1);
    expect(await server.client.hlen('test:{rate:org_a}:now')).toBeLessThan(2100);
  });
});
