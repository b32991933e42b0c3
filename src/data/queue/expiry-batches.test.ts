import { describe, expect, test } from '@jest/globals';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { checkedMessageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { Job, Outcome, TargetSetting } from './delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const hourMs = 3_600_000;
const retry: Outcome = { type: 'retry', attempt: failure, delayMs: 0 };

const suite = checkedMessageQueueSuite(prefix);
/** Accepts a message; returns its id. */
async function accept(expiresInMs: number | null = hourMs, payload = Buffer.from('{}')): Promise<string> {
  const event = newEvent({ payload });
  const expiry = expiresInMs === null ? {} : { expiresAtMs: Date.now() + expiresInMs };
  const targets = event.targets.map((target) => ({ ...target, ...expiry }));
  await suite.acceptor.accept({ ...event, targets });
  return targets[0]?.messageId ?? '';
}
const take = (setting: Partial<TargetSetting> = {}): Promise<Job[]> => takeFrom(suite.queue, 'w1', 1, setting);
const settle = async (jobs: readonly Job[], outcome: Outcome) => await settleAll(suite.queue, 'w1', jobs, outcome);
const view = async (id: string) => await suite.reader.delivery('org_a', id);
const keyOf = (id: string): string => id.slice(6);
async function configure(setting: Partial<TargetSetting>): Promise<void> {
  for (const target of (await suite.queue.targets(0)).targets)
    await suite.queue.configure(target, targetSetting({ revision: '2', ...setting }));
}
async function promote(): Promise<void> {
  while ((await suite.queue.promote()).nextDueMs === 0);
}
/** Lets one message expire, and ends it. */
async function expire(id: string): Promise<void> {
  await expireMessages(suite.redis.client, base, [keyOf(id)]);
  await promote();
}

describe('a member of a batch that expires', () => {
  const batch = { layout: '{}', records: 3, bytes: 1_000_000, ageMs: hourMs };
  const endAll = async (): Promise<void> => {
    while ((await suite.queue.endBatches()).hasEndedBatches);
  };
  async function formed(): Promise<{ ids: string[]; jobs: Job[] }> {
    const ids = [await accept(), await accept(), await accept(null)];
    return { ids, jobs: await take({ batch }) };
  }

  test('a member of a batch that expires while a worker holds the batch is delivered with it', async () => {
    const { ids, jobs } = await formed();
    await expireMessages(suite.redis.client, base);
    await suite.queue.promote();
    await settle(jobs, delivered);
    await endAll();
    for (const id of ids) expect(await view(id)).toMatchObject({ status: 'delivered' });
    await promote();
    expect(await suite.redis.client.exists(`${base}exp`)).toBe(0);
  });

  test('between attempts of the batch is left out of the next one, and ends with the attempts until then', async () => {
    const { ids, jobs } = await formed();
    await settle(jobs, retry);
    await expire(ids[0] ?? '');
    await promote();
    const again = await take();
    const [job] = again;
    if (job === undefined) throw new Error('there is no batch');
    expect((await suite.queue.batch(job))?.members.map(({ isUnsent }) => isUnsent)).toEqual([true, false, false]);
    await settle(again, delivered);
    await endAll();
    expect(await view(ids[0] ?? '')).toMatchObject({
      status: 'dlq',
      deadLetterReason: 'expired',
      attempts: 1,
      lastErrorType: 'http_error',
    });
    expect(await view(ids[1] ?? '')).toMatchObject({ status: 'delivered', attempts: 2 });
    expect((await suite.queue.figures()).unfinished).toBe(0);
  });

  test('a member of a batch that expires is watched no more when its transform has held it back', async () => {
    const { ids, jobs } = await formed();
    const [job] = jobs;
    if (job === undefined) throw new Error('there is no batch');
    const unsent = ids.slice(0, 2).map((id) => ({ messageKey: keyOf(id), status: 'filtered' as const, reason: null }));
    await suite.queue.leaveOut(job, unsent);
    await settle(jobs, delivered);
    await endAll();
    expect(await view(ids[0] ?? '')).toMatchObject({ status: 'filtered', expiresAtMs: null });
    expect(await suite.redis.client.exists(`${base}exp`)).toBe(0);
  });

  test('a member of a batch that expires is a dead letter where the others go back to their queue', async () => {
    const { ids, jobs } = await formed();
    await configure({ batch, failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: 1 } });
    await expireMessages(suite.redis.client, base, [keyOf(ids[0] ?? '')]);
    await settle(jobs, retry);
    await endAll();
    expect(await view(ids[0] ?? '')).toMatchObject({ status: 'dlq', deadLetterReason: 'expired', attempts: 1 });
    for (const id of ids.slice(1)) expect(await view(id)).toMatchObject({ status: 'retrying', destinationId: 'dst_b' });
  });

  test('a member of a batch that expires while the batch gathers takes its bytes with it', async () => {
    const payload = Buffer.alloc(1000, 'x');
    const gathering = { batch: { ...batch, bytes: 2000 } };
    const [id] = [await accept(hourMs, payload)];
    expect(await take(gathering)).toEqual([]);
    await expire(id ?? '');
    await accept(hourMs, payload);
    expect(await take(gathering)).toEqual([]);
    await accept(hourMs, payload);
    expect(await take(gathering)).toMatchObject([{ isBatch: true }]);
  });

  test('a member of a batch that expires is not taken into a batch, and its bytes do not count for one', async () => {
    const ids = [await accept(), await accept(), await accept(null)];
    await expireMessages(suite.redis.client, base, [keyOf(ids[0] ?? '')]);
    const [job] = await take({ batch });
    if (job === undefined) throw new Error('there is no batch');
    expect((await suite.queue.batch(job))?.members.map(({ messageId }) => messageId)).toEqual(ids.slice(1));
    await promote();
    expect(await view(ids[0] ?? '')).toMatchObject({ status: 'dlq', deadLetterReason: 'expired' });
  });
});
