import { expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { commandConnection } from '../../redis/connection.ts';
import { RateLimiter } from './rate-limit.ts';

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
