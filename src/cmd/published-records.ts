import { changeStreamBlockMs } from '../data/registry/change-stream.ts';
import { RedisRegistryReader } from '../data/registry/registry-reader.ts';
import type { RedisLink } from './redis-link.ts';
import type { RoleContext } from './role-process.ts';

/** Returns a reader of the published records, which its caller starts and stops. */
export function publishedRecords(
  link: RedisLink,
  { config, clock, logger }: Pick<RoleContext, 'config' | 'clock' | 'logger'>,
): RedisRegistryReader {
  const blocking = link.blocking('changes', changeStreamBlockMs);
  return new RedisRegistryReader({ redis: link.main, blocking, prefix: config.redisKeyPrefix, clock, logger });
}
