import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { allPages } from '../../../test/support/all-pages.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import type { Job, Outcome } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import type { DeliveryStatus } from '../shard/messages.ts';
import { resultId } from '../shard/packed-results.ts';
import type { WebhookMessageStatus } from '../webhooks/webhook-message-view.ts';
import { WebhookMessages } from '../webhooks/webhook-messages.ts';
import { RedisMessageReader } from './message-reader.ts';
import { RedisMessageReplayer } from './message-replayer.ts';

const prefix = 'test:';
const newer = 2400;
const rareOutcomes = {
  retry: { type: 'retry', attempt: failure, delayMs: 3_600_000 },
  dead,
  archived: dead,
  unsent: { type: 'unsent', status: 'transform_failed', reason: 'no', tookMs: 1 },
  late: { type: 'dead', attempt: failure, reason: 'queue_limit_exceeded' },
} satisfies Record<string, Outcome>;
type Rare = keyof typeof rareOutcomes | 'waiting' | 'underWay' | 'filtered' | 'schema';

/** Few messages of each state, in every shard, of both families, and then thousands that were delivered. */
class World {
  readonly redis: RedisServer;
  readonly shards: number;
  readonly #queues: RedisDeliveryQueue[];
  readonly #acceptor: RedisMessageAcceptor;
  readonly #replayer: RedisMessageReplayer;
  /** Ids of the messages of a state, by organization. */
  readonly ids = new Map<string, string[]>();

  constructor(redis: RedisServer, shards: number) {
    this.redis = redis;
    this.shards = shards;
    const options = { redis: redis.client, prefix };
    this.#queues = Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ ...options, shard }));
    this.#acceptor = new RedisMessageAcceptor({ ...options, clock: lenientClock });
    this.#replayer = new RedisMessageReplayer({ ...options, clock: systemClock, shards: () => shards });
  }

  async fill(): Promise<void> {
    for (const queue of this.#queues) await queue.refreshShard('w1', 1000);
    for (const org of ['org_a', webhookOrganization('org_a')]) {
      for (const shard of this.#queues.keys()) {
        const send = async (rare: Rare) => this.#note(org, rare, await this.#send(org, shard, rare));
        // Filters of subscriptions are evaluated before there is a message.
        if (org === 'org_a') await send('filtered');
        for (const rare of ['schema', 'waiting'] as const) await send(rare);
        for (const [rare, outcome] of Object.entries(rareOutcomes) as [keyof typeof rareOutcomes, Outcome][]) {
          await send(rare);
          await settleAll(this.#queue(shard), 'w1', await this.#take(shard), outcome);
        }
        for (const id of this.of(org, 'archived').slice(-1)) await this.#replayer.archive(org, id);
        await send('underWay');
        await this.#take(shard);
      }
      for (let sent = 0; sent < newer; sent += 60) {
        await Promise.all(Array.from({ length: 60 }, (_, i) => this.#send(org, i % this.shards, 'newer')));
        for (const shard of this.#queues.keys()) {
          for (let jobs = await this.#take(shard); jobs.length > 0; jobs = await this.#take(shard))
            await settleAll(this.#queue(shard), 'w1', jobs, delivered);
        }
      }
    }
  }

  of(org: string, ...states: Rare[]): string[] {
    return states.flatMap((state) => this.ids.get(`${org} ${state}`) ?? []);
  }

  #note(org: string, rare: Rare, id: string): void {
    this.ids.set(`${org} ${rare}`, [...this.of(org, rare), id]);
  }

  #queue(shard: number): RedisDeliveryQueue {
    const queue = this.#queues[shard];
    if (queue === undefined) throw new Error(`there is no shard ${shard}`);
    return queue;
  }

  async #send(org: string, shard: number, what: Rare | 'newer'): Promise<string> {
    const nowMs = Date.now();
    const eventId = newTimedId('evt_', shard, nowMs);
    const messageId = what === 'filtered' ? resultId(eventId, 0) : newTimedId('msg_', shard, nowMs);
    const type = what === 'newer' ? 'order.paid' : 'order.rare';
    // The messages of one application are in one shard.
    const routeId = what === 'newer' ? `rte_${shard}` : `rte_rare${shard}`;
    const target = { messageId, routeId, destinationId: what === 'waiting' ? `dst_paused${shard}` : `dst_${shard}`, shard, maxAttempts: 3 };
    const isHeldBack = what === 'filtered' || what === 'schema';
    const webhook = { labels: {}, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [] };
    await this.#acceptor.accept(
      newEvent({
        id: eventId,
        org,
        sourceId: `etp_${type}`,
        sourceSlug: type,
        targets: isHeldBack ? [] : [target],
        invalid: what === 'schema' ? [{ messageId, routeId, brokenSchema: 'no' }] : [],
        filtered: what === 'filtered' ? [{ routeId }] : [],
        ...(org === 'org_a' ? {} : { webhook }),
      }),
    );
    return messageId;
  }

  async #take(shard: number): Promise<Job[]> {
    const queue = this.#queue(shard);
    for (;;) {
      const { jobs, unconfigured } = await queue.dequeue('w1', 64);
      for (const target of unconfigured)
        await queue.configure(target, targetSetting({ paused: target.destinationId.startsWith('dst_paused') }));
      if (unconfigured.length === 0 || jobs.length > 0) return jobs;
    }
  }
}

const sorted = (items: readonly { id: string }[]) => items.map(({ id }) => id).toSorted();
const isNewestFirst = (items: readonly { createdAtMs: number }[]) =>
  items.every((item, i) => i === 0 || item.createdAtMs <= (items[i - 1]?.createdAtMs ?? 0));

describe.each([1, 3])('with %i shards and thousands of newer messages that do not match', (shards) => {
  let world: World;
  beforeAll(async () => {
    world = new World(await startRedis(), shards);
    await world.fill();
  });
  afterAll(() => world.redis.stop());
  /** How many commands Redis has run since its statistics were reset, those in scripts included. */
  const commandsSince = async (): Promise<number> => {
    const calls = (await world.redis.client.info('commandstats')).matchAll(/calls=(\d+)/g);
    return [...calls].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  // A list without an index is a walk, which a busy machine does not complete within the default time.
  const options = () => ({ redis: world.redis.client, prefix, shards: () => shards, fillMs: 60_000 });

  const deliveries = [
    { status: 'retrying', states: ['retry'], isIndexed: true },
    { status: 'failed', states: ['archived'], isIndexed: true },
    { status: 'transform_failed', states: ['unsent'], isIndexed: true },
    { status: 'schema_failed', states: ['schema'], isIndexed: true },
    { status: 'dlq', states: ['dead', 'late'], isIndexed: true },
    { status: 'dlq', states: ['dead', 'late'], fromMs: 1, isIndexed: true },
    { status: 'pending', states: ['waiting'], isIndexed: true },
    { status: 'processing', states: ['underWay'], isIndexed: true },
    { status: 'filtered', states: ['filtered'], isIndexed: true },
    { status: 'filtered', routeId: 'rte_rare0', states: ['filtered'] },
    { status: 'retrying', destinationId: 'dst_0', states: ['retry'], isIndexed: true },
    { status: 'dlq', destinationId: 'dst_0', states: ['dead', 'late'], isIndexed: true },
    { status: 'dlq', routeId: 'rte_rare0', destinationId: 'dst_0', states: ['dead', 'late'], isIndexed: true },
    { status: 'pending', destinationId: 'dst_paused0', states: ['waiting'], isIndexed: true },
    { status: 'processing', routeId: 'rte_rare0', states: ['underWay'], isIndexed: true },
    { routeId: 'rte_rare0', destinationId: 'dst_paused0', states: ['waiting'] },
    { status: 'circuit_open', states: [] },
  ] as const;
  test.each(deliveries)('the first page of deliveries $status of $routeId at $destinationId from $fromMs has them', async (row) => {
    const {
      states,
      isIndexed = false,
      status,
      ...narrowing
    } = { destinationId: undefined, status: undefined, ...row } as typeof row & {
      isIndexed?: boolean;
      destinationId?: string;
      status?: DeliveryStatus;
    };
    const filter = { ...narrowing, statuses: status && [status] };
    const isOfOneShard = 'routeId' in filter || filter.destinationId !== undefined;
    const expected = states.flatMap((state) => world.of('org_a', state).slice(0, isOfOneShard ? 1 : undefined)).toSorted();
    await world.redis.client.config('RESETSTAT');
    const { items, nextCursor } = await new RedisMessageReader(options()).deliveries('org_a', filter, { limit: 50 });
    expect([sorted(items), nextCursor]).toEqual([expected, null]);
    if (isIndexed) expect(await commandsSince()).toBeLessThan(newer / shards);
    // An exhausted page that has found nothing has a cursor.
    const hasty = new RedisMessageReader({ ...options(), fillMs: 0 });
    expect(sorted(await allPages((page) => hasty.deliveries('org_a', filter, page), 1))).toEqual(expected);
  });

  test.each(['pending', 'failed', 'filtered'] as const)('the first page of events %s has them', async (status) => {
    const states = {
      pending: ['waiting', 'underWay', 'retry'],
      failed: ['dead', 'late', 'archived', 'unsent', 'schema'],
      filtered: ['filtered'],
    } as const;
    const reader = new RedisMessageReader(options());
    const { items, nextCursor } = await reader.events('org_a', { statuses: [status] }, { limit: 50 });
    expect(items).toHaveLength(states[status].length * shards);
    expect(nextCursor).toBeNull();
    const hasty = new RedisMessageReader({ ...options(), fillMs: 0 });
    expect(sorted(await allPages((page) => hasty.events('org_a', { statuses: [status] }, page), 2))).toEqual(sorted(items));
  });

  const types = { rare: ['etp_order.rare'], none: [] as string[] };
  const messages = [
    { status: 'failed', states: ['retry'], isIndexed: true },
    { status: 'exhausted', states: ['archived', 'unsent', 'schema'], isIndexed: true },
    { status: 'dlq', states: ['dead', 'late'], isIndexed: true },
    { status: 'dlq', endpointId: 'dst_0', states: ['dead', 'late'], isIndexed: true },
    { status: 'dlq', fromMs: 1, states: ['dead', 'late'], isIndexed: true },
    { status: 'pending', states: ['waiting'], isIndexed: true },
    { status: 'processing', states: ['underWay'], isIndexed: true },
    {
      status: 'exhausted',
      eventType: 'order.rare',
      eventTypeIds: types.rare,
      states: ['archived', 'unsent', 'schema'],
      isIndexed: true,
    },
    { status: 'pending', eventType: 'order.rare', eventTypeIds: types.rare, states: ['waiting'], isIndexed: true },
    { status: 'pending', endpointId: 'dst_paused0', states: ['waiting'], isIndexed: true },
    { status: 'success', eventType: 'order.rare', eventTypeIds: types.rare, states: [], isIndexed: true },
    { status: 'failed', applicationId: 'rte_rare0', states: ['retry'], isIndexed: true },
    { eventType: 'order.none', eventTypeIds: types.none, states: [], isIndexed: true },
    { status: 'failed', eventType: 'order.none', eventTypeIds: types.none, states: [], isIndexed: true },
    { status: 'failed', eventType: 'order.rare', states: ['retry'], isIndexed: true },
    { eventType: 'order.rare', status: 'pending', states: ['waiting'], isIndexed: true },
  ] as const;
  test.each(messages)(
    'the first page of messages $status of $eventType $eventTypeIds to $applicationId $endpointId from $fromMs has them',
    async (row) => {
      const {
        states,
        isIndexed: _,
        status,
        ...narrowing
      } = { status: undefined, ...row } as typeof row & { status?: WebhookMessageStatus };
      const filter = { ...narrowing, statuses: status && [status] };
      const org = webhookOrganization('org_a');
      const isOfOneShard = 'applicationId' in filter || 'endpointId' in filter;
      const isOfAll = !('eventTypeIds' in filter) && status === 'exhausted';
      const all = isOfAll ? [...states] : states;
      const expected = all.flatMap((state) => world.of(org, state).slice(0, isOfOneShard ? 1 : undefined)).toSorted();
      await world.redis.client.config('RESETSTAT');
      const page = await new WebhookMessages(options()).messages('org_a', filter, { limit: 50 });
      expect([sorted(page.items), page.nextCursor]).toEqual([expected, null]);
      expect(status === 'dlq' || isNewestFirst(page.items)).toBe(true);
      expect(await commandsSince()).toBeLessThan(newer / shards);
      const hasty = new WebhookMessages({ ...options(), fillMs: 0 });
      expect(sorted(await allPages((page) => hasty.messages('org_a', filter, page), 1))).toEqual(expected);
    },
  );

  const letters = [
    { reason: 'max_retries_exceeded', states: ['dead'] },
    { endpointId: 'dst_0', states: ['dead', 'late'] },
    { applicationId: 'rte_rare0', states: ['dead', 'late'] },
    { eventType: 'order.rare', eventTypeIds: types.rare, states: ['dead', 'late'] },
    { eventType: 'order.none', eventTypeIds: types.none, states: [] },
  ] as const;
  test.each(letters)(
    'the first page of dead letters $reason $eventType to $applicationId $endpointId has them',
    async ({ states, ...filter }) => {
      const isOfOneShard = 'applicationId' in filter || 'endpointId' in filter;
      const expected = states
        .flatMap((state) => world.of(webhookOrganization('org_a'), state).slice(0, isOfOneShard ? 1 : undefined))
        .toSorted();
      const page = await new WebhookMessages(options()).deadLetters('org_a', filter, { limit: 50 });
      expect([sorted(page.items), page.nextCursor]).toEqual([expected, null]);
    },
  );
});
