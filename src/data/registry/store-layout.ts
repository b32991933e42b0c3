import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { text } from '../shard/script-reply.ts';
import { registryKeys } from './registry-keys.ts';

const setScript = new Script(new URL('./layout-set.lua', import.meta.url));

/**
 * The version of the layout that this release uses in Redis: records, shards, webhook stores. It reads that of every layout up to this
 * one, and writes what its predecessor can read, too, until `posthorn migrate` records in `{cfg}:layout` that this is no longer needed. One key
 * applies to all slots: a reader of one of them may read all, and no script checks it. A change of form that the predecessor cannot read takes the next
 * number and a step of `posthorn migrate`; then what is written until the migration depends on the stored number.
 */
export const storeLayout = 1;

interface Place {
  redis: RedisClient;
  prefix: string;
}

/**
 * Throws INVALID_CONFIG when a later release has migrated the store to a layout that this one cannot read, and UNAVAILABLE when Redis does not answer. A
 * store without a number was never migrated.
 */
export async function requireReadableLayout({ redis, prefix }: Place): Promise<void> {
  refuseLater((await redis.get(registryKeys(prefix).layout).catch(throwUnavailable)) ?? '0');
}

/**
 * Records that the data in Redis is being migrated to the layout of this release (from now on earlier releases refuse to start), or that it is in it. Throws as
 * `requireReadableLayout` does.
 */
export async function noteLayout({ redis, prefix }: Place, state: 'begun' | 'done'): Promise<void> {
  refuseLater(text(await setScript.run(redis, [registryKeys(prefix).layout], [storeLayout, state]).catch(throwUnavailable)));
}

/** Whether this release reads the layout that Redis has stored; null: none is stored. */
export function isReadableLayout(stored: string | null): boolean {
  return Number(numberOf(stored ?? '0') ?? Number.POSITIVE_INFINITY) <= storeLayout;
}

function numberOf(stored: string): string | undefined {
  return /^(\d+)(?: begun)?$/.exec(stored)?.[1];
}

/** An unknown value was written by a later release. */
function refuseLater(stored: string): void {
  if (isReadableLayout(stored)) return;
  const number = numberOf(stored);
  throw new PosthornError(
    'INVALID_CONFIG',
    `Redis holds data in layout ${number ?? stored}, to which a later release has migrated it; this release reads layouts up to ${storeLayout}: run the release that has migrated it, or a later one`,
  );
}
