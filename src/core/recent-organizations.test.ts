import { expect, test } from '@jest/globals';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { RecentOrganizations } from './recent-organizations.ts';

const clock = new FakeClock();

function recent(...organizations: readonly string[]): RecentOrganizations {
  const known = new RecentOrganizations(clock);
  for (const each of organizations) known.add(each);
  return known;
}

test('several are those of which two had something', () => {
  expect(recent().hasSeveral).toBe(false);
  expect(recent('org_a', 'org_a').hasSeveral).toBe(false);
  expect(recent('org_a', 'org_b').hasSeveral).toBe(true);
  expect(recent('org_a', 'org_b', 'org_b').hasSeveral).toBe(true);
});

test('after 10 s they count no more', async () => {
  const known = recent('org_b');
  await clock.advance(6000);
  known.add('org_a');
  await clock.advance(4000);
  expect(known.hasSeveral).toBe(true);
  await clock.advance(1);
  expect(known.hasSeveral).toBe(false);
});
