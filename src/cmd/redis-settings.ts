import { PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { mastersOf, type RedisClient } from '../redis/connection.ts';

const oldestMajorVersion = 7;
const streamNodeMaxBytes = 512;

/**
 * Checks whether Redis is set up as Posthorn needs it. Throws INVALID_CONFIG when it would lose data
 * (an eviction policy) or is too old; warns of what costs memory, and of no limit at all. `memoryLimitBytes`: the configured limit. A Redis that hides its settings is only warned of.
 */
export async function checkRedisSettings(redis: RedisClient, logger: Pick<Logger, 'warn'>, memoryLimitBytes?: number): Promise<void> {
  for (const server of mastersOf(redis)) await checkServer(server, logger, memoryLimitBytes);
}

async function checkServer(redis: RedisClient, logger: Pick<Logger, 'warn'>, memoryLimitBytes?: number): Promise<void> {
  const version = /redis_version:(\d+)\.(\S+)/.exec(await redis.info('server'));
  if (version?.[1] !== undefined && Number(version[1]) < oldestMajorVersion) {
    throw new PosthornError(
      'INVALID_CONFIG',
      `Redis ${version[1]}.${version[2]} is too old: version ${oldestMajorVersion} or later is needed`,
    );
  }
  let settings: Record<string, string>;
  try {
    settings = toRecord(await redis.config('GET', 'maxmemory-policy', 'maxmemory', 'stream-node-max-bytes'));
  } catch (error) {
    logger.warn({ err: error }, 'the settings of Redis cannot be read; set maxmemory-policy noeviction and stream-node-max-bytes 512');
    return;
  }
  const policy = settings['maxmemory-policy'];
  if (policy !== undefined && policy !== 'noeviction') {
    throw new PosthornError('INVALID_CONFIG', `Redis has maxmemory-policy ${policy}, which drops messages: set it to noeviction`);
  }
  if (settings['maxmemory'] === '0' && memoryLimitBytes === undefined) {
    logger.warn({}, 'Redis has no maxmemory; set it or POSTHORN_REDIS_MEMORY_LIMIT, so that history is pruned before memory runs out');
  }
  const nodeBytes = Number(settings['stream-node-max-bytes']);
  if (nodeBytes > streamNodeMaxBytes) {
    logger.warn(
      { streamNodeMaxBytes: nodeBytes },
      `Redis has stream-node-max-bytes ${nodeBytes}; ${streamNodeMaxBytes} needs less memory with many destinations`,
    );
  }
}

function toRecord(reply: unknown): Record<string, string> {
  if (!Array.isArray(reply)) return {};
  const record: Record<string, string> = {};
  for (let i = 0; i + 1 < reply.length; i += 2) record[String(reply[i])] = String(reply[i + 1]);
  return record;
}
