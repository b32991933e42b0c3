import { expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { RecentJobs } from './recent-jobs.ts';

const clock = new FakeClock();

function recent(...takes: readonly (readonly [organization: string, jobs: number])[]): RecentJobs {
  const jobs = new RecentJobs(clock);
  for (const [organization, count] of takes) for (let i = 0; i < count; i++) jobs.add(organization);
  return jobs;
}

test('the busiest organization is the one that had more than half of the last 256 jobs', () => {
  expect(recent(['org_a', 128]).busiest).toBeNull();
  expect(recent(['org_a', 129]).busiest).toBe('org_a');
  expect(recent(['org_a', 129], ['org_b', 127]).busiest).toBe('org_a');
  expect(recent(['org_a', 129], ['org_b', 128]).busiest).toBeNull();
  expect(recent(['org_a', 200], ['org_b', 129]).busiest).toBe('org_b');
});

test('it is beside others while they had one, too', () => {
  expect(recent(['org_a', 300]).busiestBesideOthers).toBeNull();
  expect(recent(['org_b', 1], ['org_a', 5000]).busiestBesideOthers).toBe('org_a');
  expect(recent(['org_a', 5000], ['org_b', 1]).busiestBesideOthers).toBe('org_a');
  expect(recent(['org_b', 1], ['org_c', 1], ['org_a', 129]).busiestBesideOthers).toBe('org_a');
  expect(recent(['org_a', 128], ['org_b', 128]).busiestBesideOthers).toBeNull();
});

test('after 10 s jobs count no more', async () => {
  const jobs = recent(['org_b', 1], ['org_a', 129]);
  await clock.advance(6000);
  for (let i = 0; i < 256; i++) jobs.add('org_a');
  await clock.advance(4000);
  expect(jobs.busiestBesideOthers).toBe('org_a');
  await clock.advance(1);
  expect([jobs.busiest, jobs.busiestBesideOthers]).toEqual(['org_a', null]);
  await clock.advance(6000);
  expect(jobs.busiest).toBeNull();
});
