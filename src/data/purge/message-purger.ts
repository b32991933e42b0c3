import { alertOrganization } from '../../core/alert.ts';
import { defaultPool } from '../../core/default-pool.ts';
import { PosthornError } from '../../core/errors.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { ChannelAlerts } from '../alerts/channel-alerts.ts';
import { mailRecipientsKey } from '../alerts/mail-recipients.ts';
import { removeDeletedCounters } from '../history/deleted-counters.ts';
import { apiKeyUsageKey } from '../intake/api-key-usage.ts';
import { idempotencyKeys } from '../intake/idempotent-answers.ts';
import { intakeKeys, unfinishedIntentsKey } from '../intake/intake-keys.ts';
import { SignatureFailures } from '../intake/signature-failures.ts';
import { organizationLockKeys } from '../locks/organization-lock.ts';
import { assignRunsAndTasks } from '../pools/organization-pools.ts';
import { purgeSessions } from '../sessions/session-store.ts';
import type { FindDeletedIds, MessagePurger } from '../shard/messages.ts';
import { integer } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { sharedWebhookKeys, webhookKeys } from '../webhooks/webhook-keys.ts';

const purgeScript = new ShardScript(new URL('./purge.lua', import.meta.url));
const eventsPerStep = 20;

export class RedisMessagePurger implements MessagePurger {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: number;

  constructor({ redis, prefix, shards = 1 }: { redis: RedisClient; prefix: string; shards?: number }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#shards = shards;
  }

  /** Step by step, so that Redis serves others in between. Throws UNAVAILABLE when Redis does not answer; call again then. */
  async purgeOrganization(org: string, signal: AbortSignal): Promise<void> {
    try {
      // Before the messages, so that no more are made for its endpoints; and again at the end, for what was written meanwhile.
      await this.#unlinkWebhooks(org);
      // While one shard is purged another may still send messages to it.
      for (let hasFound = true; hasFound; ) {
        hasFound = false;
        for (const each of [org, alertOrganization(org), webhookOrganization(org)]) {
          if (await this.#purgeShards(each, signal)) hasFound = true;
        }
      }
      // A worker that takes what waits finds that its organization is gone.
      await assignRunsAndTasks({ redis: this.#redis, prefix: this.#prefix }, org, defaultPool);
      await purgeSessions({ redis: this.#redis, prefix: this.#prefix }, org);
      await this.#redis.del(apiKeyUsageKey(this.#prefix, org));
      await new ChannelAlerts({ redis: this.#redis, prefix: this.#prefix }).purge(org);
      await new SignatureFailures({ redis: this.#redis, prefix: this.#prefix }).purge(org);
      await this.#redis.del(mailRecipientsKey(this.#prefix, org));
      const { notes, begun } = organizationLockKeys(this.#prefix, org);
      await this.#redis.del(notes, begun);
      await this.#redis.del(...Object.values(idempotencyKeys(this.#prefix, org)));
      await this.#purgeIntake(org);
      await this.#unlinkWebhooks(org);
      await this.#redis.zrem(sharedWebhookKeys(this.#prefix).unfinished, org);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  async #purgeShards(org: string, signal: AbortSignal): Promise<boolean> {
    let hasFound = false;
    for (let shard = 0; shard < this.#shards; shard++) {
      const { declared } = shardKeys(this.#prefix, shard);
      while (integer(await purgeScript.run(this.#redis, declared, [org, eventsPerStep])) === 1) {
        if (signal.aborted) throw new PosthornError('UNAVAILABLE', `the purge of ${org} was interrupted`);
        hasFound = true;
      }
    }
    return hasFound;
  }

  removeDeletedCounters(org: string, findDeleted: FindDeletedIds, signal: AbortSignal): Promise<number> {
    return removeDeletedCounters({ redis: this.#redis, prefix: this.#prefix, shards: this.#shards }, org, findDeleted, signal);
  }

  /** Redis frees them beside its work, however many records they hold. */
  async #unlinkWebhooks(org: string): Promise<void> {
    await this.#redis.unlink(...webhookKeys(this.#prefix, org).all);
  }

  async #purgeIntake(org: string): Promise<void> {
    const keys = intakeKeys(this.#prefix, org);
    const [seconds] = await this.#redis.time();
    for (const hashes of keys.marks(Number(seconds) * 1000)) await this.#redis.del(...hashes);
    for (const identity of await this.#redis.hkeys(keys.replays))
      await this.#redis.del(keys.openOfReplay(identity), keys.replayLease(identity));
    await this.#redis.del(keys.replays, keys.runningReplays, keys.endedReplays);
    await this.#redis.del(keys.quota, keys.reserved, keys.intents, ...keys.outcomes);
    await this.#redis.zrem(unfinishedIntentsKey(this.#prefix), org);
  }
}
