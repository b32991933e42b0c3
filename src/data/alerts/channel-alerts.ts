import { z } from 'zod';
import { alertSchema } from '../../core/alert.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';

const noteScript = new Script(new URL('./channel-alert-note.lua', import.meta.url));

/** Alerts that are kept of a channel, and characters of the reason of a failure. */
export const alertsOfChannel = 20;
const longestReason = 300;

const channelAlert = z.object({
  messageId: z.string(),
  ...alertSchema.pick({ type: true, route: true, destination: true, count: true }).shape,
  isTest: z.boolean(),
  /** `retrying`: the last attempt failed, and there will be another one. */
  state: z.enum(['delivered', 'retrying', 'failed']),
  attempts: z.int(),
  lastAttemptAtMs: z.int(),
  responseStatus: z.int().nullable(),
  errorMessage: z.string().nullable(),
});

/** An alert to a notification channel, as its last attempt has left it. */
export type ChannelAlert = z.output<typeof channelAlert>;

/** Two hashes of an organization in one slot, `channelAlertKeys`. `RedisMessagePurger` removes them with the organization. */
export function channelAlertKeys(prefix: string, org: string): [lastArrivals: string, alerts: string] {
  const lastArrivals = `${prefix}{notified:${org}}`;
  return [lastArrivals, `${lastArrivals}:alerts`];
}

/** What was sent to notification channels. Throws UNAVAILABLE without Redis. */
export class ChannelAlerts {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** Keeps an alert, in the place of what was noted of the same message before. */
  async note(org: string, channelId: string, alert: ChannelAlert): Promise<void> {
    const kept = { ...alert, errorMessage: alert.errorMessage?.slice(0, longestReason) ?? null };
    const arrivedAtMs = alert.state === 'delivered' && !alert.isTest ? alert.lastAttemptAtMs : '';
    await noteScript
      .run(this.#redis, channelAlertKeys(this.#prefix, org), [
        channelId,
        alert.messageId,
        JSON.stringify(kept),
        alertsOfChannel,
        arrivedAtMs,
      ])
      .catch(throwUnavailable);
  }

  /** When an alert last arrived there that was no test, in milliseconds since the epoch; null: never. */
  async lastArrivalMs(org: string, channelId: string): Promise<number | null> {
    const [lastArrivals] = channelAlertKeys(this.#prefix, org);
    const value = await this.#redis.hget(lastArrivals, channelId).catch(throwUnavailable);
    return value === null ? null : Number(value);
  }

  /** The newest first. */
  async newest(org: string, channelId: string): Promise<ChannelAlert[]> {
    const [, alerts] = channelAlertKeys(this.#prefix, org);
    const lines = await this.#redis.hget(alerts, channelId).catch(throwUnavailable);
    if (lines === null) return [];
    return lines.split('\n').map((line) => channelAlert.parse(parsePlainJson(line.slice(line.indexOf(' ')))));
  }

  /** Forgets a channel that is deleted. */
  async forget(org: string, channelId: string): Promise<void> {
    await Promise.all(channelAlertKeys(this.#prefix, org).map((key) => this.#redis.hdel(key, channelId))).catch(throwUnavailable);
  }
}
