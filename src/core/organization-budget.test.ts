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

test('a request whose wait is ended takes no place', async () => {
  const batches = room();
  const leave = await batches.enter('org_a');
  const ending = new AbortController();
  const second = batches.enter('org_a', 1, { signal: ending.signal });
  ending.abort();
  expect(await second).toBeNull();
  expect(await batches.enter('org_a', 1, { signal: ending.signal })).toBeNull();
  leave?.();
  expect(await batches.enter('org_a')).not.toBeNull();
});

test('a source has its share of that of its organization', async () => {
  const payloads = new OrganizationBudget({ places: 8, placesOfOrganization: 4, placesOfSource: 2, clock: new FakeClock() });
  const leave = await payloads.enter('org_a', 2, { source: 'src_a' });
  let hasEntered = false;
  const second = payloads.enter('org_a', 1, { source: 'src_a' }).then(() => {
    hasEntered = true;
  });
  expect(await payloads.enter('org_a', 2, { source: 'src_b' })).not.toBeNull();
  expect(hasEntered).toBe(false);
  leave?.();
  await second;
  expect(hasEntered).toBe(true);
});

test.each<[what: string, waits: [org: string, source: string, places: number], holdUp: string[]]>([
  ['for the share of its source', ['org_a', 'a1', 1], ['org_a a1']],
  ['for the share of its organization', ['org_a', 'a3', 1], ['org_a a1', 'org_a a2']],
  ['for places of all', ['org_c', 'c1', 1], ['org_a a1', 'org_a a2', 'org_b b1', 'org_b b2']],
])('who waits %s is held up by those who have it', async (_what, [org, source, places], holdUp) => {
  const payloads = new OrganizationBudget({ places: 8, placesOfOrganization: 4, placesOfSource: 2, clock: new FakeClock() });
  const holders = ['org_a a1', 'org_a a2', 'org_b b1', 'org_b b2'];
  const heldUp = (): string[] => holders.filter((holder) => payloads.holdsUp(...(holder.split(' ') as [string, string])));
  for (const holder of holders) await payloads.enter(holder.slice(0, 5), 2, { source: holder.slice(6) });
  expect(heldUp()).toEqual([]);
  void payloads.enter(org, places, { source });
  expect(heldUp()).toEqual(holdUp);
});

test('what becomes free is kept for who has waited for a while, until it has as much as it needs', async () => {
  const clock = new FakeClock();
  const payloads = new OrganizationBudget({ places: 4, placesOfOrganization: 4, clock });
  const leaves = [];
  for (let i = 0; i < 4; i++) leaves.push(await payloads.enter('org_a'));
  const order: string[] = [];
  const wait = (org: string, places: number): Promise<unknown> =>
    payloads.enter(org, places).then((left) => order.push(left ? org : `no ${org}`));
  const waiting = [wait('org_b', 3)];
  await clock.advance(2500);
  waiting.push(wait('org_a', 1));
  leaves[0]?.();
  leaves[1]?.();
  waiting.push(wait('org_a', 1));
  await clock.advance(0);
  expect(order).toEqual([]);
  leaves[2]?.();
  await clock.advance(0);
  expect(order).toEqual(['org_b']);
  leaves[3]?.();
  await clock.advance(0);
  expect(order).toEqual(['org_b', 'org_a']);
});

test('what was kept for who gives up goes to the others', async () => {
  const clock = new FakeClock();
  const payloads = new OrganizationBudget({ places: 4, placesOfOrganization: 4, clock });
  for (let i = 0; i < 2; i++) await payloads.enter('org_a');
  const large = payloads.enter('org_b', 3);
  await clock.advance(9000);
  const small = payloads.enter('org_a');
  await clock.advance(1000);
  expect(await large).toBeNull();
  expect(await small).not.toBeNull();
});

test.each<[what: string, small: [org: string, source: string]]>([
  ['of the same source', ['org_a', 'a1']],
  ['of another source of its organization', ['org_a', 'a2']],
  ['of another organization', ['org_b', 'b1']],
])('a large one that has waited for a while enters before small ones %s that begin again and again', async (_what, [org, source]) => {
  const clock = new FakeClock();
  const payloads = new OrganizationBudget({ places: 4, placesOfOrganization: 4, placesOfSource: 4, clock });
  const leaves: (() => void)[] = [];
  const beginAgain = (): void => void payloads.enter(org, 1, { source }).then((leave) => leave !== null && leaves.push(leave));
  for (let i = 0; i < 4; i++) beginAgain();
  await clock.advance(0);
  let isIn = false;
  void payloads.enter('org_a', 3, { source: 'a1' }).then((leave) => {
    isIn = leave !== null;
  });
  for (let times = 0; times < 40 && !isIn; times++) {
    await clock.advance(240);
    leaves.shift()?.();
    beginAgain();
    await clock.advance(0);
  }
  expect(isIn).toBe(true);
});

test('units of an organization that are kept for one source are not kept from other organizations, nor from a source that uses less', async () => {
  const clock = new FakeClock();
  const payloads = new OrganizationBudget({ places: 8, placesOfOrganization: 4, placesOfSource: 3, clock });
  await payloads.enter('org_a', 1, { source: 'a1' });
  await payloads.enter('org_a', 2, { source: 'a2' });
  void payloads.enter('org_a', 2, { source: 'a1' });
  await clock.advance(5000);
  const entered: string[] = [];
  const enter = (org: string, source: string): void => void payloads.enter(org, 1, { source }).then(() => entered.push(source));
  enter('org_a', 'a2');
  enter('org_b', 'b1');
  enter('org_a', 'a3');
  await clock.advance(0);
  expect(entered).toEqual(['b1', 'a3']);
});

test('units of an organization are not kept for one that an older one of its own source bars', async () => {
  const clock = new FakeClock();
  const payloads = new OrganizationBudget({ places: 128, placesOfOrganization: 64, placesOfSource: 32, clock });
  for (const [source, places] of [
    ['a1', 12],
    ['a2', 28],
    ['a3', 20],
  ] as const)
    await payloads.enter('org_a', places, { source });
  for (const places of [25, 20]) void payloads.enter('org_a', places, { source: 'a1' });
  await clock.advance(5000);
  expect(await Promise.race([payloads.enter('org_a', 3, { source: 'a3' }), clock.advance(0)])).toBeInstanceOf(Function);
});

test('webhooks and alerts of an organization use its share', async () => {
  const payloads = new OrganizationBudget({ places: 8, placesOfOrganization: 4, clock: new FakeClock() });
  const entered: string[] = [];
  for (const org of ['org_a', '+org_a', '~org_a', 'org_b']) void payloads.enter(org, 2).then(() => entered.push(org));
  await new FakeClock().advance(0);
  expect(entered).toEqual(['org_a', '+org_a', 'org_b']);
  expect(payloads.holdsUp('+org_a', 'none')).toBe(true);
});
