import { alertOrganization } from '../../core/alert.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { cronKeys } from '../cron/cron-keys.ts';
import { poolSuffix } from '../shard/pool-suffix.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { taskKeys } from '../tasks/task-kind.ts';

const setScript = new ShardScript(new URL('./pool-set.lua', import.meta.url));
const cronScript = new Script(new URL('./cron-pool.lua', import.meta.url));
const taskScript = new Script(new URL('./task-pool.lua', import.meta.url));

/** Which pool of workers serves an organization. */
export class OrganizationPools {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: number;

  constructor({ redis, prefix, shards }: { redis: RedisClient; prefix: string; shards: number }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#shards = shards;
  }

  /**
   * From now on workers of this pool take what the organization has, in all shards, its runs of cron jobs and its tasks; those of another one finish what they hold. May be
   * called again. Throws UNAVAILABLE when Redis does not answer, and then some of it may be theirs.
   */
  async assign(org: string, pool: string): Promise<void> {
    const args = [poolSuffix(pool), org, webhookOrganization(org), alertOrganization(org)];
    for (let shard = 0; shard < this.#shards; shard++)
      await setScript.run(this.#redis, shardKeys(this.#prefix, shard).declared, args).catch(throwUnavailable);
    await assignRunsAndTasks({ redis: this.#redis, prefix: this.#prefix }, org, pool).catch(throwUnavailable);
  }
}

/** Runs of cron jobs and tasks, those that wait among them, are for workers of this pool from now on. */
export async function assignRunsAndTasks(
  { redis, prefix }: { redis: RedisClient; prefix: string },
  org: string,
  pool: string,
): Promise<void> {
  const cron = cronKeys(prefix);
  await cronScript.run(redis, [cron.pools, cron.ready, cron.bell], [org, poolSuffix(pool)]);
  const tasks = taskKeys(prefix);
  const keys = [tasks.pools, tasks.queue, tasks.bell, tasks.organization(org), tasks.task('')];
  await taskScript.run(redis, keys, [org, poolSuffix(pool)]);
}
