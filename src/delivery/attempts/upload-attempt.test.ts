import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { Agent } from 'undici';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { takeFrom } from '../../../test/support/queue-worker.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { OrganizationBudget } from '../../core/organization-budget.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { deliveryMetrics } from '../metrics.ts';
import type { ReadyWarehousePlan } from '../plans/delivery-plan.ts';
import { SentSecrets } from '../targets/http/sent-secrets.ts';
import { EventTransformer } from './transformed-event.ts';
import { attemptUpload } from './upload-attempt.ts';

const prefix = 'test:';
const setting = targetSetting({ batch: { layout: '{}', records: 1000, bytes: 5_242_880, ageMs: 0 } });

test('a batch whose transforms the sandbox never runs uses up its attempts, without a place among uploads, and ends in the dead letters', async () => {
  const redis = await startRedis();
  const sandbox = new Sandbox({ clock: systemClock, processes: 1 });
  sandbox.close();
  const agent = new Agent();
  try {
    const options = { redis: redis.client, prefix };
    const queue = new RedisDeliveryQueue(options);
    await queue.refreshShard('w1', 64);
    const events = Array.from({ length: 5 }, () => newEvent());
    await Promise.all(events.map((event) => new RedisMessageAcceptor({ ...options, clock: lenientClock }).accept(event)));
    const plan: ReadyWarehousePlan = {
      state: 'ready',
      type: 'warehouse',
      setting,
      retryPolicy: { maxRetries: 2, initialDelayMs: 1, maxDelayMs: 1, backoffMultiplier: 1 },
      transform: { v: 1, id: 'trf_a', org: 'org_a', type: 'jsonata', code: 'payload', generation: 1 },
      warehouse: {
        store: { put: () => Promise.reject(new Error('nothing is to be written')) },
        layout: { prefix: '', fileFormat: 'jsonl', partitionBy: 'date' },
        mapping: null,
        secrets: SentSecrets.none,
        dispatcher: () => agent,
      },
    };
    const context = {
      clock: systemClock,
      metrics: deliveryMetrics(new Registry(), {
        queues: [queue],
        now: () => systemClock.now(),
        inFlight: () => 0,
        bytes: async () => ({ byAccount: new Map(), over: 0 }),
      }),
      signal: new AbortController().signal,
      batches: { worker: 'w1', queue, transformer: new EventTransformer({ sandbox, clock: systemClock }) },
      uploadBudget: new OrganizationBudget({ places: 0, placesOfOrganization: 0, clock: systemClock }),
      transformBudget: new OrganizationBudget({ places: 1, placesOfOrganization: 1, clock: systemClock }),
    };
    for (let attempts = 0; (await queue.figures()).unfinished > 0 && attempts < 10; attempts++) {
      for (const job of await takeFrom(queue, 'w1', 1, setting)) await queue.settle('w1', [await attemptUpload(job, plan, context)]);
      while ((await queue.endBatches()).hasEndedBatches);
      await systemClock.sleep(5);
      await queue.promote();
    }
    const reader = new RedisMessageReader(options);
    for (const { targets } of events) {
      const view = await reader.delivery('org_a', targets[0]?.messageId ?? '');
      expect(view).toMatchObject({ status: 'dlq', attempts: 3, deadLetterReason: 'max_retries_exceeded', lastErrorType: 'timeout' });
      expect(view?.lastErrorMessage).toMatch(/^no transform of the batch has come to an end: /);
    }
  } finally {
    await agent.close();
    await redis.stop();
  }
});
