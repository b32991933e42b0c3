import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Counter } from 'prom-client';
import { type CrashMoment, crashAtEveryCommand } from '../../test/support/crashing-client.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { sourceRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import type { Clock } from '../core/clock.ts';
import { PosthornError } from '../core/errors.ts';
import { EventContext } from '../core/event-context.ts';
import { checkShards } from '../data/check/shard-check.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { type EventClaim, RedisIntake } from '../data/intake/intake.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import type { NewEvent } from '../data/shard/messages.ts';
import type { RedisClient } from '../redis/connection.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { noBrokenSchemas } from './broken-schemas.ts';
import { deduplication } from './deduplication.ts';
import type { IngestPlan } from './ingest-plan.ts';
import type { ReceivedRequest } from './received-request.ts';
import { type TakenEvent, takeEvent } from './take-event.ts';

const prefix = 'test:';
const messagesOfEvent = 2;
const monthlyMessages = 100;
/** One month for all. */
const receivedAtMs = Date.now();
/** A process that has died reaches no deadline. */
const noDeadlines: Clock = { ...systemClock, after: () => () => {} };
const metrics = { untriedFilters: new Counter({ name: 'untried', help: 'untried', registers: [] }) };

/** Plan of events whose messages are all in one shard: the outbox is tested elsewhere (shard-deaths.test.ts). */
function planOf(): IngestPlan {
  const source = sourceRecord({ monthlyMessages });
  const targets = Array.from({ length: messagesOfEvent }, (_, i) => ({
    routeId: 'rte_a',
    destinationId: `dst_${i}`,
    shard: 0,
    maxAttempts: 3,
  }));
  const route = { id: 'rte_a', filter: null, rule: null, definition: null, schemaId: null, failedFor: undefined, targets };
  return { source, verify: null, mayReceiveFrom: null, dedup: deduplication(source), handshake: null, routes: [route], schemas: [] };
}

function received(delivery: string): ReceivedRequest {
  const request = new IncomingMessage(new Socket());
  request.method = 'POST';
  request.headers = { 'x-github-delivery': delivery };
  request.rawHeaders = ['X-GitHub-Delivery', delivery];
  return {
    request,
    body: Buffer.from('{}'),
    query: '',
    receivedAtMs,
    notBeforeMs: null,
    expiresAfterSeconds: undefined,
    signatureValid: null,
    signed: null,
  };
}

/** Steps after the response, too. */
class TracedIntake extends RedisIntake {
  readonly inBackground: Promise<void>[] = [];

  override settle(claim: EventClaim, outcome: 'stored' | 'failed'): Promise<void> {
    return this.#traced(super.settle(claim, outcome));
  }

  override countDuplicate(org: string, sourceId: string, eventId: string): Promise<void> {
    return this.#traced(super.countDuplicate(org, sourceId, eventId));
  }

  #traced(noting: Promise<void>): Promise<void> {
    this.inBackground.push(noting);
    return noting;
  }
}

type Trouble = 'is refused' | 'is not answered';

/** An event with this id of its sender arrives. Trouble: the result of storing it. */
async function take(client: RedisClient, delivery: string, trouble?: Trouble): Promise<TakenEvent> {
  const stored = new RedisMessageAcceptor({ redis: client, prefix, clock: noDeadlines });
  const accept = async (event: NewEvent): Promise<boolean> => {
    if (trouble === 'is refused') throw new PosthornError('UNAVAILABLE', 'injected');
    const isNew = await stored.accept(event);
    if (trouble === 'is not answered') throw new PosthornError('UNAVAILABLE', 'injected');
    return isNew;
  };
  const intake = new TracedIntake({ redis: client, prefix, clock: systemClock });
  try {
    const services = { acceptor: { accept }, intake, logger: silentLogger, metrics };
    const request = received(delivery);
    const context = new EventContext(request.request.headers, request.body);
    return await takeEvent(services, planOf(), { received: request, context, broken: noBrokenSchemas }, { aborted: false });
  } finally {
    await Promise.all(intake.inBackground);
  }
}

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** By the id of its sender, the response to an event. */
type World = Map<string, TakenEvent>;

interface Life {
  name: string;
  work(client: RedisClient, world: World): Promise<unknown>;
}

const taking = async (client: RedisClient, world: World): Promise<void> => {
  for (const delivery of ['a', 'a', 'b']) world.set(delivery, await take(client, delivery));
};
const lives: readonly Life[] = [
  { name: 'that takes events, one of them twice', work: taking },
  ...(['is refused', 'is not answered'] as const).map((trouble) => ({
    name: `whose store ${trouble}, and that takes the event again`,
    work: async (client: RedisClient, world: World) => {
      await expect(take(client, 'a', trouble)).rejects.toThrow('injected');
      await taking(client, world);
    },
  })),
];

/** The senders send again. */
async function look(world: World): Promise<void> {
  const reader = new RedisMessageReader({ redis: redis.client, prefix });
  const storedEvents = async () => (await reader.events('org_a', {}, { limit: 100 })).items.map(({ id }) => id);
  const storedBefore = (await storedEvents()).length;
  let storedNow = 0;
  const ids: string[] = [];
  for (const delivery of ['a', 'b']) {
    const answered = world.get(delivery);
    const { eventId, isDuplicate } = await take(redis.client, delivery);
    if (answered !== undefined) expect({ eventId, isDuplicate }).toEqual({ eventId: answered.eventId, isDuplicate: true });
    expect(await take(redis.client, delivery)).toEqual({ eventId, isDuplicate: true });
    ids.push(eventId);
    if (!isDuplicate) storedNow++;
  }
  expect((await storedEvents()).sort()).toEqual(ids.sort());
  expect(storedBefore + storedNow).toBe(ids.length);
  for (const id of ids) expect(await reader.deliveriesOfEvent('org_a', id)).toHaveLength(messagesOfEvent);
  expect((await checkShards({ redis: redis.client, prefix })).findings).toEqual([]);
  const month = { org: 'org_a', mark: null, windowMs: 0, receivedAtMs, monthlyMessages };
  const { messages: left } = await new RedisIntake({ redis: redis.client, prefix, clock: systemClock }).remainder(month);
  expect(left).toBe(monthlyMessages - messagesOfEvent * ids.length);
}

describe.each(lives)('of a process $name', ({ work }) => {
  test.each<CrashMoment>(['before', 'after'])(
    'and dies %s any of its commands each event is stored once, and counted once',
    async (moment) => {
      let deaths = 0;
      await crashAtEveryCommand(redis.client, moment, {
        prepare: async (): Promise<World> => {
          await redis.client.flushall();
          return new Map();
        },
        work,
        look: async (world) => {
          await look(world);
          deaths++;
        },
      });
      expect(deaths).toBeGreaterThan(7);
    },
  );
});
