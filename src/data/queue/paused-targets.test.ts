import { describe, expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { checkShards } from '../check/shard-check.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { TargetSetting } from './delivery-queue.ts';

const prefix = 'test:';
const suite = messageQueueSuite(prefix);

describe('a paused target', () => {
  const dayMs = 86_400_000;
  const key = `${prefix}{s0}:t:1`;
  /** Whatever is there, and the pause, began eight days ago. */
  async function age(): Promise<void> {
    const began = Date.now() - 8 * dayMs;
    for (const message of await suite.redis.client.keys(`${prefix}{s0}:m:*`))
      await suite.redis.client.hset(message, hashFields.message.indexStamp, `${began}-1`, hashFields.message.dueMs, began);
    await suite.redis.client.hset(key, hashFields.target.pausedSinceMs, began);
  }
  const configure = async (setting: Partial<TargetSetting>): Promise<void> => {
    for (const target of (await suite.queue.targets(0)).targets) await suite.queue.configure(target, targetSetting(setting));
  };
  const pause = (revision = '2') => configure({ paused: true, revision });

  test('a paused target sends what has waited for too long to the dead letters, retries too, step by step', async () => {
    const retried = newEvent();
    await suite.acceptor.accept(retried);
    await settleAll(suite.queue, 'w1', await takeFrom(suite.queue, 'w1', 1), { type: 'retry', attempt: failure, delayMs: 0 });
    await suite.queue.promote();
    const old = Array.from({ length: 101 }, () => newEvent());
    for (const event of old) await suite.acceptor.accept(event);
    await pause();
    expect(await suite.queue.expirePaused(7 * dayMs)).toEqual({ expired: 0, hasMore: false });
    await age();
    await pause('3');
    const young = newEvent();
    await suite.acceptor.accept(young);
    expect(await suite.queue.expirePaused(7 * dayMs)).toEqual({ expired: 101, hasMore: true });
    expect(await suite.queue.expirePaused(7 * dayMs)).toEqual({ expired: 1, hasMore: false });
    for (const event of [retried, ...old]) {
      expect(await suite.reader.deliveriesOfEvent('org_a', event.id)).toMatchObject([
        { status: 'dlq', deadLetterReason: 'queue_limit_exceeded' },
      ]);
    }
    expect(await suite.reader.deliveriesOfEvent('org_a', young.id)).toMatchObject([{ status: 'pending' }]);
    expect(await checkShards({ redis: suite.redis.client, prefix, shards: 1 })).toMatchObject({ findings: [], unfinished: 1 });
    await configure({ revision: '4' });
    expect(await takeFrom(suite.queue, 'w1', 64)).toMatchObject([{ messageId: young.targets[0]?.messageId }]);
  });

  test('a paused target whose pause has just begun keeps what is older, and so does one whose begin was not recorded', async () => {
    await suite.acceptor.accept(newEvent());
    await pause();
    await age();
    await suite.redis.client.hset(key, hashFields.target.pausedSinceMs, Date.now());
    expect((await suite.queue.expirePaused(7 * dayMs)).expired).toBe(0);
    await suite.redis.client.hset(key, hashFields.target.pausedSinceMs, '1');
    expect((await suite.queue.expirePaused(7 * dayMs)).expired).toBe(0);
    expect(Number(await suite.redis.client.hget(key, hashFields.target.pausedSinceMs))).toBeGreaterThan(Date.now() - dayMs);
    await age();
    expect((await suite.queue.expirePaused(7 * dayMs)).expired).toBe(1);
  });

  test('what has waited too long for a disabled webhook endpoint is a dead letter of the error type disabled, also after a failed attempt', async () => {
    const org = webhookOrganization('org_a');
    const toEndpoint = () => newEvent({ org });
    const [retried, untried] = [toEndpoint(), toEndpoint()];
    await suite.acceptor.accept(retried);
    await settleAll(suite.queue, 'w1', await takeFrom(suite.queue, 'w1', 1), { type: 'retry', attempt: failure, delayMs: 0 });
    await suite.queue.promote();
    await suite.acceptor.accept(untried);
    await pause();
    await age();
    expect((await suite.queue.expirePaused(7 * dayMs)).expired).toBe(2);
    for (const event of [retried, untried]) {
      expect(await suite.reader.deliveriesOfEvent(org, event.id)).toMatchObject([
        {
          status: 'dlq',
          deadLetterReason: 'circuit_breaker_exhausted',
          lastErrorType: 'disabled',
          lastErrorMessage: expect.stringContaining('disabled'),
        },
      ]);
    }
    const { items } = await suite.reader.deliveries(org, { errorTypes: ['disabled'] }, { limit: 10 });
    expect(items).toHaveLength(2);
    expect(await checkShards({ redis: suite.redis.client, prefix, shards: 1 })).toMatchObject({ findings: [], unfinished: 0 });
  });
});
