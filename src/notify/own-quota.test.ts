import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startAlertingWorker } from '../../test/support/alerting-worker.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../test/support/crashing-client.ts';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { ownEventData } from '../../test/support/own-events.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord } from '../../test/support/records.ts';
import { carryOn, replayParts, replayRecord, startReplayWorld } from '../../test/support/replays.ts';
import { newTimedId } from '../core/ids.ts';
import { RedisMessageReplayer } from '../data/history/message-replayer.ts';
import { type ClaimOutcome, monthOf, RedisIntake } from '../data/intake/intake.ts';
import { intakeKeys } from '../data/intake/intake-keys.ts';
import { QuotaSteps } from '../data/intake/quota-steps.ts';
import type { RedisClient } from '../redis/connection.ts';
import { systemClock } from '../runtime/system-clock.ts';

const prefix = 'test:';
const org = 'org_a';
const month = monthOf(Date.now());
const keys = intakeKeys(prefix, org);
let world: Awaited<ReturnType<typeof startReplayWorld>>;
let registry: RecordRegistry;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  world = await startReplayWorld(prefix);
});
afterAll(() => world.redis.stop());
beforeEach(async () => {
  await world.empty();
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  ownSource();
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function ownSource(enabled = true): void {
  registry.put('source', sourceRecord({ id: 'src_own', slug: 'posthorn', provider: 'posthorn', enabled }));
}

/** A process that counts messages. `settled` resolves when all steps that it has reached are reported. */
function countingProcess(client: RedisClient = world.redis.client) {
  const steps = new QuotaSteps({ redis: client, prefix, registry, shards: () => world.shards, logger: silentLogger });
  const telling: Promise<void>[] = [];
  const quotaSteps: Pick<QuotaSteps, 'reached'> = {
    reached: (step) => {
      const told = steps.reached(step);
      telling.push(told);
      return told;
    },
  };
  const intake = new RedisIntake({ redis: client, prefix, clock: systemClock, quotaSteps });
  return {
    quotaSteps,
    intake,
    settled: () => Promise.all(telling),
    claim: (messages: number, monthlyMessages: number | null = 10): Promise<ClaimOutcome> => {
      const receivedAtMs = Date.now();
      const eventId = newTimedId('evt_', 0, receivedAtMs);
      return intake.claim({ org, eventId, receivedAtMs, marks: [], windowMs: 0, messages, monthlyMessages });
    },
  };
}
async function claimed(...counts: number[]): Promise<void> {
  const { claim, settled } = countingProcess();
  for (const messages of counts) await claim(messages);
  await settled();
}
const noted = () => ownEventData(world.redis.client, prefix, world.shards);
const counted = () => world.redis.client.hget(keys.quota, month);

test('80 and 100 percent of a month are reported to the routes of the source, as the documented JSON, once, and do not count to it', async () => {
  const ops: Receiver = await startReceiver();
  ends.push(() => ops.close());
  registry.put('destination', destinationRecord({ url: ops.url }, { id: 'dst_ops', shard: 1 }));
  registry.put('route', routeRecord({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 1 }] }));
  ends.push(startAlertingWorker(world.redis, { prefix, registry, shards: world.shards }));
  await claimed(7, 1, 1, 1, 1);
  await ops.arrived(2);
  const told = ops.requests.map(({ body }) => JSON.parse(body.toString()));
  const of = (percent: number, messages: number) => ({
    type: 'quota.reached',
    occurredAt: expect.stringMatching(/^\d{4}-.*Z$/),
    organization: org,
    omitted: 0,
    data: { month, percent, messages, limit: 10 },
  });
  expect(told.sort((one, other) => one.data.percent - other.data.percent)).toEqual([of(80, 8), of(100, 10)]);
  await claimed(1, 1);
  await eventually(async () => expect(await world.redis.client.keys(`${prefix}{s*}:ends`)).toEqual([]));
  expect(await counted()).toBe('10');
  expect(ops.requests).toHaveLength(2);
});

describe('a step of the messages of a month', () => {
  test.each<[string, number[], [number, number][]]>([
    ['is not told below 80 %', [7], []],
    ['is told with the count that passed it', [7, 2], [[80, 9]]],
    [
      'that is passed with the next one is told, too',
      [10],
      [
        [80, 10],
        [100, 10],
      ],
    ],
    [
      'of 100 % is told when an event is refused above 80 %',
      [9, 3],
      [
        [80, 9],
        [100, 9],
      ],
    ],
    ['is not told when an event is refused below 80 %', [5, 6], []],
  ])('%s', async (_, counts, steps) => {
    await claimed(...counts);
    expect((await noted()).map(({ percent, messages }) => [percent, messages])).toEqual(steps);
  });

  test('a step of the messages of a month is neither recorded nor searched for without a source, and reported once there is one', async () => {
    ownSource(false);
    await claimed(9);
    expect(await world.redis.client.hgetall(keys.quota)).toEqual({ [month]: '9' });
    expect(await world.redis.client.keys(`${prefix}*:oe:*`)).toEqual([]);
    ownSource();
    await claimed(0);
    expect(await noted()).toMatchObject([{ percent: 80, messages: 9 }]);
  });

  test.each<[string, number, number[]]>([
    ['above 80 %', 9, [80, 100]],
    ['below 80 %', 5, []],
  ])(
    'of 100 %% is reported once by sends %s that are refused before they are claimed, and by no look at what is left',
    async (_, counted, percents) => {
      const { claim, intake, settled } = countingProcess();
      await claim(counted);
      await settled();
      const look = () => intake.remainder({ org, receivedAtMs: Date.now(), mark: null, windowMs: 0, monthlyMessages: 10 });
      const before = await noted();
      expect((await look()).messages).toBe(10 - counted);
      await settled();
      expect(await noted()).toEqual(before);
      for (let i = 0; i < 2; i++) (await look()).refused();
      await settled();
      (await look()).refused();
      await settled();
      expect((await noted()).map(({ percent }) => percent)).toEqual(percents);
    },
  );

  test('a step of the messages of a month is not reported without a limit', async () => {
    const { claim, settled } = countingProcess();
    await claim(1000, null);
    await settled();
    expect(await noted()).toEqual([]);
  });

  test('a step of the messages of a month is reported once, although many processes come across it at once', async () => {
    const processes = Array.from({ length: 30 }, () => countingProcess());
    await Promise.all(processes.flatMap(({ claim }) => [claim(1, 60), claim(1, 60), claim(1, 60)]));
    for (const { settled } of processes) await settled();
    await claimed(1);
    expect((await noted()).map(({ percent }) => percent)).toEqual([80, 100]);
    expect(await counted()).toBe('60');
  });

  test.each<CrashMoment>(['before', 'after'])(
    'a step of the messages of a month is reported once when the process dies %s any of its commands',
    async (moment) => {
      await crashAtEveryCommand(world.redis.client, moment, {
        prepare: () => world.empty(),
        work: async (client) => {
          const { claim, settled } = countingProcess(client);
          await claim(7);
          await claim(3);
          await settled();
        },
        look: async () => {
          const { claim, settled } = countingProcess();
          while ((await claim(1)).outcome === 'store');
          await settled();
          expect((await noted()).map(({ percent }) => percent)).toEqual([80, 100]);
          expect(await world.redis.client.hget(keys.quota, `told:${month}`)).toBe('100');
        },
      });
    },
  );

  test('a step of the messages of a month is reported by the replays that pass it', async () => {
    const originals = await world.endedMessages([0, 1, 0, 1]);
    const { quotaSteps, settled } = countingProcess();
    const { steps } = replayParts(world.redis.client, { prefix, shards: world.shards, quotaSteps });
    await carryOn(steps, replayRecord({ filter: { statuses: ['dlq'], ids: originals } }), { monthlyMessages: 3 });
    await settled();
    expect(await noted()).toMatchObject([
      { percent: 80, messages: 3, limit: 3 },
      { percent: 100, messages: 3, limit: 3 },
    ]);
  });

  test('a step of the messages of a month is reported by the replay of a message that passes it', async () => {
    const [id = ''] = await world.endedMessages([0]);
    const { quotaSteps, settled } = countingProcess();
    const shared = { redis: world.redis.client, prefix, clock: systemClock, shards: () => world.shards };
    await new RedisMessageReplayer({ ...shared, quotaSteps }).replay(org, id, { monthlyMessages: 1 });
    await settled();
    expect((await noted()).map(({ percent }) => percent)).toEqual([80, 100]);
  });
});
