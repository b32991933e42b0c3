import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { webhookFields } from './webhook-fields.ts';
import type { WebhookRateLimits } from './webhooks.ts';

const script = new Script(new URL('./rate-windows.lua', import.meta.url), webhookFields);
const windowsOf = ({ perSecond, perMinute, perHour }: WebhookRateLimits) => [
  [1000, perSecond],
  [60_000, perMinute],
  [3_600_000, perHour],
];
const reply = z.union([z.tuple([z.literal(0)]), z.tuple([z.number(), z.number()])]);

/** Messages of one event to an application that its sender has named. */
export interface TargetedSend {
  applicationId: string;
  messages: number;
  limits: WebhookRateLimits;
}

/**
 * What is sent to applications on purpose is counted against their limits when it is sent, so that the sender can be refused; what a broadcast
 * queues is held back when it is delivered. The counts of an organization are in one slot, so that an event is counted with all its applications or none.
 */
export class TargetedSends {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** Throws APPLICATION_RATE_LIMITED beyond a limit of one of them, and then has counted nothing; UNAVAILABLE without Redis. */
  async count(org: string, sends: readonly TargetedSend[]): Promise<void> {
    if (sends.length === 0) return;
    const keys = sends.map(({ applicationId }) => `${this.#prefix}{sent:${org}}:${applicationId}`);
    const counted = namedArgument({ sends: sends.map(({ messages, limits }) => ({ messages, windows: windowsOf(limits) })) });
    const [waitMs, slowest = 0] = reply.parse(await script.run(this.#redis, keys, [counted]).catch(throwUnavailable));
    if (waitMs === 0) return;
    const application = sends[slowest - 1]?.applicationId ?? '';
    throw new PosthornError('APPLICATION_RATE_LIMITED', `The application ${application} has reached its message limit.`, {
      retryAfterSeconds: waitMs / 1000,
    });
  }
}
