import { z } from 'zod';
import { alertSchema } from '../../core/alert.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';

const noteScript = new Script(new URL('./channel-alert-note.lua', import.meta.url));

/** Alerts that are kept of a channel, for so long after the last one, and characters of the reason of a failure. */
export const maxAlertsOfChannel = 20;
const keptMs = 30 * 24 * 3_600_000;
const maxReasonLength = 300;

const channelAlert = z.object({
  messageId: z.string(),
  ...alertSchema.pick({ type: true, route: true, destination: true, count: true }).shape,
  isTest: z.boolean(),
  /** `retrying`: the last attempt failed, and retries were left. */
  state: z.enum(['delivered', 'retrying', 'failed']),
  attempts: z.int(),
  lastAttemptAtMs: z.int(),
  responseStatus: z.int().nullable(),
  errorMessage: z.string().nullable(),
});

/** An alert to a notification channel, as its last attempt has left it. */
export type ChannelAlert = z.output<typeof channelAlert>;

/** The keys of an organization, in one slot. `ChannelAlerts.purge` removes them with the organization; what is kept of a deleted channel expires. */
function channelAlertKeys(prefix: string, org: string): { lastArrivals: string; channels: string; alertsOf(channelId: string): string } {
  const base = `${prefix}{notified:${org}}`;
  return { lastArrivals: base, channels: `${base}:channels`, alertsOf: (channelId) => `${base}:alerts:${channelId}` };
}

/** Alerts sent to notification channels. Throws UNAVAILABLE without Redis. */
export class ChannelAlerts {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** Stores an alert, replacing the entry of the same message. */
  async note(org: string, channelId: string, alert: ChannelAlert): Promise<void> {
    const keys = channelAlertKeys(this.#prefix, org);
    const kept = { ...alert, errorMessage: alert.errorMessage?.slice(0, maxReasonLength) ?? null };
    const packed = namedArgument({
      channel: channelId,
      message: alert.messageId,
      alert: JSON.stringify(kept),
      maxLines: maxAlertsOfChannel,
      keptMs,
      attemptedAtMs: alert.lastAttemptAtMs,
      hasArrived: alert.state === 'delivered' && !alert.isTest,
    });
    await noteScript.run(this.#redis, [keys.lastArrivals, keys.alertsOf(channelId), keys.channels], [packed]).catch(throwUnavailable);
  }

  /** When an alert last arrived there that was no test, in milliseconds since the epoch; null: never. */
  async lastArrivalMs(org: string, channelId: string): Promise<number | null> {
    const value = await this.#redis.hget(channelAlertKeys(this.#prefix, org).lastArrivals, channelId).catch(throwUnavailable);
    return value === null ? null : Number(value);
  }

  /** The newest first, without unsupported forms of later releases. */
  async newest(org: string, channelId: string): Promise<ChannelAlert[]> {
    const lines = await this.#redis.get(channelAlertKeys(this.#prefix, org).alertsOf(channelId)).catch(throwUnavailable);
    return (lines?.split('\n') ?? []).flatMap((line) => {
      const read = channelAlert.safeParse(parsePlainJson(line.slice(line.indexOf(' '))));
      return read.success ? [read.data] : [];
    });
  }

  /** Forgets a channel that is deleted. */
  async forget(org: string, channelId: string): Promise<void> {
    const keys = channelAlertKeys(this.#prefix, org);
    await this.#redis.hdel(keys.lastArrivals, channelId).catch(throwUnavailable);
    await this.#redis.unlink(keys.alertsOf(channelId)).catch(throwUnavailable);
  }

  /** Removes those of an organization. */
  async purge(org: string): Promise<void> {
    const keys = channelAlertKeys(this.#prefix, org);
    const channels = await this.#redis.zrange(keys.channels, '0', '-1').catch(throwUnavailable);
    await this.#redis.unlink(keys.lastArrivals, keys.channels, ...channels.map((id) => keys.alertsOf(id))).catch(throwUnavailable);
  }
}
