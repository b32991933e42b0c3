import { requireReadableLayout } from '../data/registry/store-layout.ts';
import type { RedisLink } from './redis-link.ts';
import type { RoleContext } from './role-process.ts';
import { startUpQuery } from './start-up-query.ts';

/** The check of a role before it touches anything in Redis; waits for Redis until the process is to stop. Throws INVALID_CONFIG when the layout is too new. */
export async function readableLayout(link: RedisLink, context: RoleContext): Promise<void> {
  const { redisKeyPrefix: prefix } = context.config;
  await startUpQuery(context, 'the layout of the data', () => requireReadableLayout({ redis: link.main, prefix }));
}
