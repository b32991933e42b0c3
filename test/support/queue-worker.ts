import type { Job, Outcome, Settlement, TargetSetting } from '../../src/data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import type { NewAttempt } from '../../src/data/shard/attempt-record.ts';
import { targetSetting } from './target-setting.ts';

/** What a worker does with a queue, done by hand. */
export const attempt: NewAttempt = {
  startedAtMs: 1,
  durationMs: 5,
  responseStatus: 200,
  responseBody: 'ok',
  errorType: null,
  errorMessage: null,
};
export const failure: NewAttempt = { ...attempt, responseStatus: 500, errorType: 'http_error', errorMessage: 'status 500' };
export const delivered: Outcome = { type: 'delivered', attempt };
export const dead: Outcome = { type: 'dead', attempt: failure, reason: 'max_retries_exceeded' };

/** Jobs for the worker; targets that are met for the first time get the setting. */
export async function takeFrom(
  queue: RedisDeliveryQueue,
  worker: string,
  count: number,
  setting: Partial<TargetSetting> = {},
): Promise<Job[]> {
  for (;;) {
    const { jobs, unconfigured } = await queue.dequeue(worker, count);
    if (unconfigured.length === 0) return jobs;
    for (const target of unconfigured) await queue.configure(target, targetSetting(setting));
    if (jobs.length > 0) return jobs;
  }
}

/** Takes and ends all jobs alike until there are none left. */
export async function settleEverything(queue: RedisDeliveryQueue, worker: string, outcome: Outcome = delivered): Promise<void> {
  for (let jobs = await takeFrom(queue, worker, 64); jobs.length > 0; jobs = await takeFrom(queue, worker, 64))
    await settleAll(queue, worker, jobs, outcome);
}

/** Ends all jobs alike; per job whether it was this worker's to end. */
export async function settleAll(queue: RedisDeliveryQueue, worker: string, jobs: readonly Job[], outcome: Outcome): Promise<boolean[]> {
  const settlements = jobs.map((job): Settlement => ({ job, outcome, maxAttempts: null }));
  return (await queue.settle(worker, settlements)).settled;
}
