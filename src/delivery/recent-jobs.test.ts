import { expect, test } from '@jest/globals';
import { RecentJobs } from './recent-jobs.ts';

function recent(...takes: readonly (readonly [organization: string, jobs: number])[]): RecentJobs {
  const jobs = new RecentJobs();
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

test('they are mixed while others than the busiest organization had some', () => {
  expect(recent(['org_a', 300]).areMixed).toBe(false);
  expect(recent(['org_b', 1], ['org_a', 255]).areMixed).toBe(true);
  expect(recent(['org_b', 1], ['org_a', 256]).areMixed).toBe(false);
  expect(recent(['org_a', 128], ['org_b', 128]).areMixed).toBe(false);
});
