import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import type { NewAttempt } from '../shard/attempt-record.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { PauseReason, WaitReason } from '../shard/waits.ts';
import { pauseLetter, waitOf, waitReasons, webhookWaitReason, webhookWaitReasons } from '../shard/waits.ts';
import type { Job, Outcome, TargetSetting } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const failure: NewAttempt = {
  startedAtMs: 1,
  durationMs: 5,
  responseStatus: 500,
  responseBody: '',
  errorType: 'http_error',
  errorMessage: null,
};
const retry: Outcome = { type: 'retry', attempt: failure, delayMs: 0 };
const throttle = (changes: Partial<TargetSetting['throttle']>): Partial<TargetSetting> => ({
  throttle: { ...targetSetting().throttle, ...changes },
});

let redis: RedisServer;
let queue: RedisDeliveryQueue;
let acceptor: RedisMessageAcceptor;
let reader: RedisMessageReader;

beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => 1 });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await queue.refreshShard('w', 64);
});

async function accept(): Promise<string> {
  const event = newEvent();
  await acceptor.accept(event);
  return event.targets[0]?.messageId ?? '';
}
async function take(setting: Partial<TargetSetting> = {}, count = 1): Promise<Job[]> {
  const { jobs, unconfigured } = await queue.dequeue('w', count);
  if (unconfigured.length === 0) return jobs;
  for (const target of unconfigured) await queue.configure(target, targetSetting(setting));
  return (await queue.dequeue('w', count)).jobs;
}
async function settle(jobs: readonly Job[], outcome: Outcome): Promise<void> {
  await queue.settle(
    'w',
    jobs.map((job) => ({ job, outcome, maxAttempts: null })),
  );
}
const laterThanNow = { asymmetricMatch: (ms: unknown) => typeof ms === 'number' && ms > Date.now() - 1000 };

/** Each leaves a message that waits; returns its id. */
const waits: Record<string, { make: () => Promise<string>; shows: object }> = {
  'for its turn': {
    make: async () => {
      await take();
      return await accept();
    },
    shows: { status: 'pending', waitingFor: 'queue', waitingUntilMs: null, nextAttemptAtMs: null },
  },
  'for its next attempt': {
    make: async () => {
      const id = await accept();
      await settle(await take(), { ...retry, delayMs: 60_000 });
      return id;
    },
    shows: { status: 'retrying', waitingFor: 'retry', waitingUntilMs: laterThanNow, nextAttemptAtMs: laterThanNow },
  },
  'for an open circuit': {
    make: async () => {
      const id = await accept();
      await settle(await take({ circuit: { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 } }), retry);
      return id;
    },
    shows: { status: 'circuit_open', waitingFor: 'circuit_open', waitingUntilMs: laterThanNow, nextAttemptAtMs: laterThanNow },
  },
  'for a rate': {
    make: async () => {
      await accept();
      await take(throttle({ mode: 'rate', rateLimit: 1, rateUnit: 'hour' }));
      const id = await accept();
      await take();
      return id;
    },
    shows: { status: 'pending', waitingFor: 'rate_limit', waitingUntilMs: laterThanNow },
  },
  'for a rate, after an attempt': {
    make: async () => {
      const id = await accept();
      await settle(await take(throttle({ mode: 'rate', rateLimit: 1, rateUnit: 'hour' })), retry);
      await queue.promote();
      await take();
      return id;
    },
    shows: { status: 'retrying', waitingFor: 'rate_limit', waitingUntilMs: laterThanNow, nextAttemptAtMs: laterThanNow },
  },
  'for others that are under way': {
    make: async () => {
      await accept();
      await take(throttle({ mode: 'concurrency', maxConcurrency: 1 }));
      const id = await accept();
      await take();
      return id;
    },
    shows: { status: 'pending', waitingFor: 'concurrency', waitingUntilMs: null },
  },
  'for the limits of an application': {
    make: async () => {
      await accept();
      await take({ sharedLimiter: { id: 'app_a', revision: 1, windows: [{ ms: 3_600_000, most: 1 }] } });
      const id = await accept();
      await take();
      return id;
    },
    shows: { status: 'pending', waitingFor: 'application_rate_limit', waitingUntilMs: laterThanNow },
  },
  'for the rest of its batch': {
    make: async () => {
      const id = await accept();
      await take({ batch: { layout: 'l', records: 10, bytes: 1_000_000, ageMs: 60_000 } });
      return id;
    },
    shows: { status: 'pending', waitingFor: 'batch', waitingUntilMs: laterThanNow },
  },
  'for the retry of an earlier one': {
    make: async () => {
      await accept();
      await settle(await take({ inOrder: true }), { ...retry, delayMs: 60_000 });
      const id = await accept();
      await take();
      return id;
    },
    shows: { status: 'pending', waitingFor: 'earlier_message', waitingUntilMs: null },
  },
  'for an earlier one that is under way': {
    make: async () => {
      await accept();
      await take({ inOrder: true });
      const id = await accept();
      await take();
      return id;
    },
    shows: { status: 'pending', waitingFor: 'earlier_message', waitingUntilMs: null },
  },
  'for slots': {
    make: async () => {
      const ids: string[] = [];
      for (let k = 0; k < 20; k++) ids.push(await accept());
      await take({}, 64);
      return ids.at(-1) ?? '';
    },
    shows: { status: 'pending', waitingFor: 'capacity', waitingUntilMs: null },
  },
};

describe('a message', () => {
  test.each(Object.entries(waits))('a message that waits %s reports it', async (_, { make, shows }) => {
    expect(await reader.delivery('org_a', await make())).toMatchObject(shows);
  });

  const pauses: PauseReason[] = [
    'route_disabled',
    'destination_disabled',
    'destination_suspended',
    'destination_missing',
    'transform_missing',
    'endpoint_disabled',
    'application_disabled',
  ];
  test.each(pauses)('a message that waits because of %s reports it, with attempts behind it or none', async (pausedFor) => {
    const tried = await accept();
    await settle(await take(), { ...retry, delayMs: 60_000 });
    const [target] = (await queue.targets(1)).targets;
    if (target !== undefined) await queue.configure(target, targetSetting({ revision: '2', paused: true, pausedFor }));
    const untried = await accept();
    expect(await reader.delivery('org_a', tried)).toMatchObject({
      status: 'retrying',
      waitingFor: pausedFor,
      nextAttemptAtMs: laterThanNow,
    });
    expect(await reader.delivery('org_a', untried)).toMatchObject({ status: 'pending', waitingFor: pausedFor, waitingUntilMs: null });
  });

  test('a message that is under way or has ended waits for nothing', async () => {
    const id = await accept();
    const jobs = await take();
    expect(await reader.delivery('org_a', id)).toMatchObject({ status: 'processing', waitingFor: null, waitingUntilMs: null });
    await settle(jobs, { type: 'delivered', attempt: { ...failure, errorType: null, responseStatus: 200 } });
    expect(await reader.delivery('org_a', id)).toMatchObject({ status: 'delivered', waitingFor: null, nextAttemptAtMs: null });
  });

  test('a message that is to be tried again has a time for that, also when none is recorded', async () => {
    const id = await accept();
    await settle(await take(), retry);
    const [key = ''] = await redis.client.keys(`${prefix}{s0}:m:*`);
    await redis.client.hdel(key, hashFields.message.dueMs);
    const view = await reader.delivery('org_a', id);
    expect(view).toMatchObject({ status: 'retrying', nextAttemptAtMs: laterThanNow });
  });
});

describe('reasons', () => {
  test.each(waitReasons)('%s is identified by a token, or by the letter of a pause', (reason: WaitReason) => {
    const tokens = [
      '!',
      'at',
      'due',
      'rate',
      'lease',
      'shared',
      'batch',
      'order',
      'cap',
      'queue',
      ...[...'rdsmtea'].map((letter) => `p${letter}`),
    ];
    expect(tokens.filter((token) => waitOf(token, '', false)?.reason === reason)).toHaveLength(1);
  });

  test('a pause without a letter is that of a destination, or of an endpoint', () => {
    expect(waitOf('p', '', false)?.reason).toBe('destination_disabled');
    expect(waitOf('p', '', true)?.reason).toBe('endpoint_disabled');
    expect(pauseLetter(null)).toBe('');
    expect(webhookOrganization('org_a')).not.toBe('org_a');
  });

  test('those of webhook endpoints are some of all', () => {
    expect(waitReasons.map(webhookWaitReason).every((reason) => webhookWaitReasons.includes(reason))).toBe(true);
  });
});
