import type { RedisClient } from '../../redis/connection.ts';
import { Script, type ScriptArgument } from '../../redis/script.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { webhookKeys } from './webhook-keys.ts';

const script = (name: string): Script => new Script(new URL(`../scripts/webhook-${name}.lua`, import.meta.url));
const scripts = {
  create: script('create'),
  subscribe: script('subscribe'),
  read: script('read'),
  list: script('list'),
  count: script('count'),
  candidates: script('candidates'),
  update: script('update'),
  remove: script('remove'),
  sweep: script('sweep'),
};

/** Letters that stand for a kind in Redis. */
export type WebhookLetters = 'ap' | 'ep' | 'sb';

/** The scripts of the webhook store, each on the slot of one organization. Rejects with UNAVAILABLE when Redis does not answer. */
export class WebhookScripts {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  async run(name: keyof typeof scripts, org: string, args: readonly ScriptArgument[]): Promise<unknown> {
    try {
      return await scripts[name].run(this.#redis, webhookKeys(this.#prefix, org).declared, args);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** Of what matches any event, and an event of the type; null: nothing does yet. */
  async versions(org: string, eventTypeId: string): Promise<(string | null)[]> {
    try {
      return await this.#redis.hmget(webhookKeys(this.#prefix, org).versions, '*', eventTypeId);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** A number for a new record, which is given out to nobody else. */
  async nextNumber(org: string, letters: WebhookLetters): Promise<number> {
    try {
      return await this.#redis.hincrby(webhookKeys(this.#prefix, org).counters, `n:${letters}`, 1);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}
