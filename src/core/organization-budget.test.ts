import { expect, test } from '@jest/globals';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { OrganizationBudget } from './organization-budget.ts';

const room = (clock = new FakeClock()): OrganizationBudget => new OrganizationBudget({ places: 3, placesOfOrganization: 1, clock });

test('an organization that has its share waits, and others find room', async () => {
  const batches = room();
  const leave = await batches.enter('org_a');
  let hasEntered = false;
  const second = batches.enter('org_a').then((found) => {
    hasEntered = true;
    return found;
  });
  expect(await batches.enter('org_b')).not.toBeNull();
  expect(hasEntered).toBe(false);
  leave?.();
  expect(await second).not.toBeNull();
});

test('who finds no place within 10 s is told so, and takes none later', async () => {
  const clock = new FakeClock();
  const batches = room(clock);
  const leave = await batches.enter('org_a');
  const second = batches.enter('org_a');
  await clock.advance(10_001);
  expect(await second).toBeNull();
  leave?.();
  expect(await batches.enter('org_a')).not.toBeNull();
});

test('what becomes free goes to the organization that has least, and then to who came first', async () => {
  const payloads = new OrganizationBudget({ places: 4, placesOfOrganization: 3, clock: new FakeClock() });
  const [first, second] = [await payloads.enter('org_a', 2), await payloads.enter('org_b', 2)];
  const order: string[] = [];
  const wait = (org: string, name: string): Promise<unknown> => payloads.enter(org, 1).then(() => order.push(name));
  const waiting = [wait('org_b', 'b1'), wait('org_c', 'c1'), wait('org_c', 'c2'), wait('org_b', 'b2')];
  first?.();
  second?.();
  await Promise.all(waiting);
  expect(order).toEqual(['c1', 'c2', 'b1', 'b2']);
});

test('what needs more than is free waits, and so does what its organization has no share for', async () => {
  const payloads = new OrganizationBudget({ places: 4, placesOfOrganization: 3, clock: new FakeClock() });
  const leave = await payloads.enter('org_a', 2);
  let entered = 0;
  const waiting = [payloads.enter('org_b', 3), payloads.enter('org_a', 2)].map((each) => each.then(() => entered++));
  expect(await payloads.enter('org_a', 1)).not.toBeNull();
  expect(entered).toBe(0);
  leave?.();
  await Promise.all([waiting[0]]);
  expect(entered).toBe(1);
});

test('whose wait is ended takes no place', async () => {
  const batches = room();
  const leave = await batches.enter('org_a');
  const ending = new AbortController();
  const second = batches.enter('org_a', 1, ending.signal);
  ending.abort();
  expect(await second).toBeNull();
  expect(await batches.enter('org_a', 1, ending.signal)).toBeNull();
  leave?.();
  expect(await batches.enter('org_a')).not.toBeNull();
});
