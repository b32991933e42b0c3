import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import type { FindFurtherTargets } from '../queue/outbox-carrier.ts';
import type { MessageAcceptor } from '../shard/messages.ts';
import { furtherTargets } from './further-targets.ts';
import { MatchCounter } from './match-counter.ts';
import type { RedisWebhookStore } from './redis-webhook-store.ts';
import { TargetedSends } from './targeted-sends.ts';
import { WebhookCandidates } from './webhook-candidates.ts';
import { WebhookMatcher } from './webhook-matcher.ts';

/** Parts that send events to webhook endpoints. */
export interface WebhookSending {
  matcher: WebhookMatcher;
  counter: MatchCounter;
  /** Carries on with further targets of what it has accepted. */
  acceptor: MessageAcceptor;
  targetedSends: TargetedSends;
  /** Attempts at a message, including the first one. */
  maxAttempts: number;
  findFurther: FindFurtherTargets;
}

export function webhookSending({
  redis,
  storing = redis,
  payloads,
  prefix,
  clock,
  logger,
  store,
  maxAttempts,
  windowPlaces,
  shards,
  memoryLimitBytes,
}: {
  redis: RedisClient;
  /** Stores events; default `redis`. Where many are stored, what is read meanwhile does not wait behind them on a connection of its own. */
  storing?: RedisClient;
  /** As of `RedisMessageAcceptor`. */
  payloads?: RedisClient | undefined;
  prefix: string;
  clock: Clock;
  logger: Logger;
  store: Pick<RedisWebhookStore, 'noteFilterError'>;
  maxAttempts: number;
  /** How far an expansion goes at a time; default: as `WebhookMatcher`. */
  windowPlaces?: number;
  /** As of `RedisMessageAcceptor`. */
  shards?: () => number;
  memoryLimitBytes?: number | undefined;
}): WebhookSending {
  const matcher = new WebhookMatcher({ candidates: new WebhookCandidates({ redis, prefix }), store, clock, logger, windowPlaces });
  const findFurther = furtherTargets({ matcher, maxAttempts, clock });
  const acceptor = new RedisMessageAcceptor({ redis: storing, payloads, prefix, clock, findFurther, shards, memoryLimitBytes });
  const counter = new MatchCounter({ matcher, clock });
  return { matcher, counter, acceptor, targetedSends: new TargetedSends({ redis, prefix }), maxAttempts, findFurther };
}
