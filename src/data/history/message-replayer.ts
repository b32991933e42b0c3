import { randomUUID } from 'node:crypto';
import { accountOf } from '../../core/account.ts';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { RedisFullError } from '../../core/redis-full-error.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';
import type { QuotaSteps } from '../intake/quota-steps.ts';
import { ByteShares } from '../queue/byte-shares.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { DeadLetterStats, DeliveryStatus, DeliveryView, ReplayRequest } from '../shard/messages.ts';
import { homeShard } from '../shard/record-key.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { archiveIn, carryOut, finishIntent, type MessageResult } from './carry-out-intent.ts';
import { type Intent, MessageIntents } from './message-intents.ts';
import { RedisMessageReader } from './message-reader.ts';
import { deadLetterReasons } from './message-view.ts';
import { replayId } from './replay-messages.ts';

const ended: ReadonlySet<DeliveryStatus> = new Set(['delivered', 'failed', 'transform_failed', 'dlq']);
const betweenAttempts: ReadonlySet<DeliveryStatus> = new Set(['retrying', 'circuit_open']);
const topCount = 10;

interface Options {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  /** How many there are. */
  shards?: () => number;
  /** Memory of Redis that counts where it has no maxmemory of its own. */
  memoryLimitBytes?: number | undefined;
  /** Absent: replays publish no steps of the month. */
  quotaSteps?: Pick<QuotaSteps, 'reached'>;
}

/**
 * Second chances. Throws UNAVAILABLE when Redis does not answer or is nearly full; what was begun by then is finished by this process, or by
 * another (`intent-finisher.ts`).
 */
export class RedisMessageReplayer {
  readonly #world: { redis: RedisClient; prefix: string; clock: Clock };
  readonly #shards: () => number;
  readonly #reader: RedisMessageReader;
  readonly #intents: MessageIntents;
  readonly #shares: ByteShares;

  constructor({ redis, prefix, clock, shards = () => 1, memoryLimitBytes, quotaSteps }: Options) {
    this.#world = { redis, prefix, clock };
    this.#shares = new ByteShares({ redis, prefix, clock, shards, memoryLimitBytes });
    this.#shards = shards;
    this.#reader = new RedisMessageReader({ redis, prefix, shards });
    this.#intents = new MessageIntents({ ...this.#world, ...(quotaSteps && { quotaSteps }) });
  }

  /**
   * Sends the event of an ended delivery once more to where that went first. Returns the id of the new delivery. Throws
   * RESOURCE_NOT_FOUND, CONFLICT while the delivery is under way or never had a destination, PAYLOAD_NOT_FOUND, QUOTA_EXCEEDED. `check`: throws other
   * obstacles; not called when an equal request has begun.
   */
  async replay(org: string, id: string, request: ReplayRequest & { check?: () => Promise<unknown> } = {}): Promise<string> {
    const results = await this.#replays(org, request, async () => {
      await request.check?.();
      const located = await this.#reader.located(org, [id]);
      refuseReplay(located.get(id)?.view, request);
      return [id];
    });
    const result = results.get(id);
    if (result === 'payload') throw new PosthornError('PAYLOAD_NOT_FOUND', 'The payload of the delivery is no longer stored.');
    if (typeof result !== 'object') throw notFound();
    return result.newId;
  }

  /** Replays at most 100 deliveries, and skips those that cannot be replayed. Either all others are sent, or none: QUOTA_EXCEEDED. */
  async replayMany(
    org: string,
    ids: readonly string[],
    request: ReplayRequest & { onlyDeadLetters?: boolean } = {},
  ): Promise<{ originalId: string; newId: string }[]> {
    const results = await this.#replays(org, request, async () => {
      const located = await this.#reader.located(org, ids);
      return ids.filter((id) => {
        const view = located.get(id)?.view;
        return mayBeReplayed(view, request) && (request.onlyDeadLetters !== true || view?.status === 'dlq');
      });
    });
    return ids.flatMap((originalId) => {
      const result = results.get(originalId);
      return typeof result === 'object' ? [{ originalId, newId: result.newId }] : [];
    });
  }

  /** Result for each message that `plan` names or, when an equal request has begun, of those that it named then. */
  async #replays(
    org: string,
    { mark, monthlyMessages }: ReplayRequest,
    plan: () => Promise<string[]>,
  ): Promise<Map<string, 'gone' | 'payload' | { newId: string }>> {
    const account = accountOf(org);
    const known = mark == null ? null : await this.#intents.find(account, mark);
    const begun = known ?? (await this.#begin(account, { mark: mark ?? null, monthlyMessages: monthlyMessages ?? null, plan }));
    if (begun === null) return new Map();
    if ('outcome' in begun) return new Map(begun.outcome.done.map((id) => [id, { newId: replayId(begun.outcome, id) }]));
    const { intent } = begun;
    const results = await finishIntent(this.#world, account, intent);
    return new Map([...results].map(([id, result]) => [id, result === 'done' ? { newId: replayId(intent, id) } : result]));
  }

  /** Null: there is nothing to do. */
  async #begin(
    account: string,
    { mark, monthlyMessages, plan }: { mark: string | null; monthlyMessages: number | null; plan: () => Promise<string[]> },
  ): Promise<Awaited<ReturnType<MessageIntents['begin']>> | null> {
    const [ids] = await Promise.all([plan(), this.#intents.announce(account)]);
    if (ids.length === 0) return null;
    const messages = byShard(ids, (id) => homeShard(id));
    await this.#refuseFull(
      account,
      messages.map(([shard]) => shard),
    );
    const intent: Intent = {
      id: mark ?? randomUUID(),
      action: 'replay',
      beganAtMs: this.#world.clock.now(),
      isAskedAgain: mark !== null,
      messages,
    };
    return this.#intents.begin(account, intent, monthlyMessages);
  }

  /** Before anything begins that would have to wait for memory, or that adds to what an account has beyond its share. */
  async #refuseFull(account: string, shards: readonly number[]): Promise<void> {
    const { redis, prefix } = this.#world;
    const full = await Promise.all(shards.map((shard) => redis.hget(shardKeys(prefix, shard).declared[0], hashFields.control.full))).catch(
      throwUnavailable,
    );
    if (full.some((each) => each !== null)) throw new RedisFullError();
    await this.#shares.refuseOver(account, shards);
  }

  /** Ends a dead letter as failed. Throws RESOURCE_NOT_FOUND, or CONFLICT for a delivery that is no dead letter. */
  async archive(org: string, id: string): Promise<void> {
    const place = (await this.#reader.located(org, [id])).get(id);
    if (place === undefined) throw notFound();
    const [archived] = await archiveIn(this.#world, place.shard, [id]);
    if (archived !== 'done') throw new PosthornError('CONFLICT', 'The delivery is not a dead letter.');
  }

  /** Archives at most 100 dead letters. Returns those that are archived now; with `onlyDeadLetters` only those that were not archived before. */
  async archiveMany(
    org: string,
    ids: readonly string[],
    { onlyDeadLetters = false }: { onlyDeadLetters?: boolean } = {},
  ): Promise<string[]> {
    const account = accountOf(org);
    const located = await this.#reader.located(org, ids);
    const wanted = ids.filter((id) => located.has(id) && (!onlyDeadLetters || located.get(id)?.view.status === 'dlq'));
    const messages = byShard(wanted, (id) => located.get(id)?.shard ?? null);
    const intent: Intent = { id: randomUUID(), action: 'archive', beganAtMs: this.#world.clock.now(), isAskedAgain: false, messages };
    // Messages in one shard are one step.
    const results = messages.length <= 1 ? await carryOut(this.#world, intent) : await this.#runLogged(account, intent);
    return wanted.filter((id) => results.get(id) === 'done');
  }

  async #runLogged(account: string, intent: Intent): Promise<Map<string, MessageResult>> {
    await this.#intents.announce(account);
    await this.#intents.begin(account, intent, null);
    return finishIntent(this.#world, account, intent);
  }

  async deadLetterStats(org: string): Promise<DeadLetterStats> {
    const counts = new Map<string, number>();
    const all = await Promise.all(Array.from({ length: this.#shards() }, (_, shard) => this.#deadLetters(shard, org)));
    for (const [field, count] of all.flat()) counts.set(field, (counts.get(field) ?? 0) + count);
    const { deadLetters } = hashFields;
    const byReason: DeadLetterStats['byReason'] = {};
    let total = 0;
    for (const reason of deadLetterReasons) {
      const count = counts.get(deadLetters.ofReason + reason) ?? 0;
      total += count;
      if (count > 0) byReason[reason] = count;
    }
    const topDestinations = [...counts]
      .filter(([field]) => field.startsWith(deadLetters.ofDestination))
      .map(([field, count]) => ({ destinationId: field.slice(deadLetters.ofDestination.length), count }))
      .sort((one, other) => other.count - one.count || (one.destinationId < other.destinationId ? -1 : 1))
      .slice(0, topCount);
    return { total, byReason, topDestinations };
  }

  async #deadLetters(shard: number, org: string): Promise<[string, number][]> {
    try {
      const stored = await this.#world.redis.hgetall(shardKeys(this.#world.prefix, shard).deadLetters(org));
      return Object.entries(stored).map(([field, count]) => [field, Number(count)]);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}

/** The messages of each shard; those without one are left out. */
function byShard(ids: readonly string[], shardOf: (id: string) => number | null): Intent['messages'] {
  const shards = new Map<number, string[]>();
  for (const id of ids) {
    const shard = shardOf(id);
    if (shard !== null) shards.set(shard, [...(shards.get(shard) ?? []), id]);
  }
  return [...shards];
}

/** Whether it has ended with a target to which it can be sent again. */
export function mayBeReplayed(view: DeliveryView | undefined, { alsoBetweenAttempts = false }: ReplayRequest): boolean {
  if (view === undefined) return false;
  // What a route has filtered before it came to a destination cannot go anywhere.
  const isFilteredLate = view.status === 'filtered' && view.destinationId !== null;
  return ended.has(view.status) || isFilteredLate || (alsoBetweenAttempts && view.attempts > 0 && betweenAttempts.has(view.status));
}

function refuseReplay(view: DeliveryView | undefined, request: ReplayRequest): void {
  if (view === undefined) throw notFound();
  if (mayBeReplayed(view, request)) return;
  const why = view.completedAtMs === null ? 'only an ended one can be replayed' : 'it never had a destination to be sent to again';
  throw new PosthornError('CONFLICT', `The delivery is ${view.status}: ${why}.`);
}

function notFound(): PosthornError {
  return new PosthornError('RESOURCE_NOT_FOUND', 'There is no such delivery.');
}
