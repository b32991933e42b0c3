import type { RedisClient } from '../../redis/connection.ts';
import type { ReplicatedWrites } from '../../redis/replicated-writes.ts';
import { Script, type ScriptArgument } from '../../redis/script.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';
import { epochIsOver } from '../registry/leader-epoch.ts';
import { text } from '../shard/script-reply.ts';
import { webhookFields } from './webhook-fields.ts';
import { webhookKeys } from './webhook-keys.ts';

const script = (name: string): Script => new Script(new URL(`./webhook-${name}.lua`, import.meta.url), webhookFields);
const scripts = {
  create: script('create'),
  subscribe: script('subscribe'),
  read: script('read'),
  tombstones: script('tombstones'),
  list: script('list'),
  count: script('count'),
  candidates: script('candidates'),
  update: script('update'),
  remove: script('remove'),
  admit: script('admit'),
  retire: script('retire'),
  sweep: script('sweep'),
  check: script('check'),
};

const { any, changesOf } = webhookFields.webhookVersions;

/** Those by which users change what they have. */
const changing = new Set<keyof typeof scripts>(['create', 'subscribe', 'update', 'remove']);

/** Letters that stand for a kind in Redis. */
export type WebhookLetters = 'ap' | 'ep' | 'sb';

export interface WebhookScriptOptions {
  redis: RedisClient;
  writes?: ReplicatedWrites | undefined;
  prefix: string;
  epoch?: number | undefined;
}

/** The scripts of the webhook store, each on the slot of one organization. Rejects with UNAVAILABLE when Redis does not answer. */
export class WebhookScripts {
  readonly #redis: RedisClient;
  readonly #writes: ReplicatedWrites | undefined;
  readonly #prefix: string;
  readonly #epoch: number | undefined;

  /**
   * `epoch`: of a leader, whose scripts throw CONFLICT with `details.epoch` once a newer one has run any for the organization.
   * `writes`: for changes that a replica of Redis shall have before they are answered; absent: none is waited for.
   */
  constructor({ redis, writes, prefix, epoch }: WebhookScriptOptions) {
    this.#redis = redis;
    this.#writes = writes;
    this.#prefix = prefix;
    this.#epoch = epoch;
  }

  async run(name: keyof typeof scripts, org: string, args: readonly ScriptArgument[]): Promise<unknown> {
    const epoch = this.#epoch;
    const { declared, epoch: epochKey } = webhookKeys(this.#prefix, org);
    const [keys, all] =
      epoch === undefined
        ? [declared, args]
        : [
            [...declared, epochKey],
            [...args, epoch],
          ];
    const writes = changing.has(name) ? this.#writes : undefined;
    const running = writes === undefined ? scripts[name].run(this.#redis, keys, all) : writes.run(scripts[name], keys, all);
    const reply = await running.catch(throwUnavailable);
    if (epoch !== undefined && Array.isArray(reply) && reply[0] === 'fenced') throw epochIsOver(epoch, text(reply[1]));
    return reply;
  }

  /** Returns the versions of what matches any event, and of what matches an event of the type; null: nothing does yet. */
  async versions(org: string, eventTypeId: string): Promise<(string | null)[]> {
    try {
      return await this.#redis.hmget(webhookKeys(this.#prefix, org).versions, any, eventTypeId);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** The same two, and what has changed last (`includes/webhooks.lua`), of one time; absent ones are empty. */
  async versionsAndChanges(org: string, eventTypeId: string): Promise<{ versions: string[]; changes: string[] }> {
    const { versions } = webhookKeys(this.#prefix, org);
    const found = await this.#redis.hmget(versions, any, eventTypeId, changesOf + any, changesOf + eventTypeId).catch(throwUnavailable);
    const texts = found.map((each) => each ?? '');
    return { versions: texts.slice(0, 2), changes: texts.slice(2) };
  }

  /** Ids of all records that are kept by custom resources, also of some that are being removed. */
  customResourceIds(org: string): Promise<string[]> {
    return this.#fields(webhookKeys(this.#prefix, org).customResources);
  }

  /** Ids of all event types that were subscribed to and are not deleted. */
  eventTypeIds(org: string): Promise<string[]> {
    return this.#fields(webhookKeys(this.#prefix, org).eventTypes);
  }

  async #fields(hash: string): Promise<string[]> {
    const fields = new Set<string>();
    let cursor = '0';
    do {
      const [next, found] = await this.#redis.hscan(hash, cursor, 'COUNT', 500).catch(throwUnavailable);
      for (let i = 0; i < found.length; i += 2) fields.add(found[i] ?? '');
      cursor = next;
    } while (cursor !== '0');
    return [...fields];
  }

  /** A number for a new record, which is given out to nobody else. */
  async nextNumber(org: string, letters: WebhookLetters): Promise<number> {
    try {
      return await this.#redis.hincrby(webhookKeys(this.#prefix, org).counters, webhookFields.webhookControl.lastNumber + letters, 1);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}
