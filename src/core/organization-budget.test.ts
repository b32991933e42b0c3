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

test('a caller that gets no place within 10 s gets null, and takes none later', async () => {
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
  const payloads = new OrganizationBudget({ places: 5, placesOfOrganization: 3, clock: new FakeClock() });
  const [first, second] = [await payloads.enter('org_a', 2), await payloads.enter('org_b', 2)];
  await payloads.enter('org_d', 1);
  const order: string[] = [];
  const wait = (org: string, name: string): Promise<unknown> => payloads.enter(org, 1).then(() => order.push(name));
  const waiting = [wait('org_b', 'b1'), wait('org_c', 'c1'), wait('org_c', 'c2'), wait('org_b', 'b2')];
  first?.();
  second?.();
  await Promise.all(waiting);
  expect(order).toEqual(['c1', 'c2', 'b1', 'b2']);
});

test('what needs more than is free waits, and so does what its organization has no share for', async () => {
  const payloads = new OrganizationBudget({ places: 5, placesOfOrganization: 3, clock: new FakeClock() });
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
  const payloads = new OrganizationBudget({ places: 8, placesOfOrganization: 6, placesOfSource: 2, clock: new FakeClock() });
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
  ['for the share of its organization', ['org_a', 'a3', 2], ['org_a a1', 'org_a a2']],
  ['for places of all', ['org_c', 'c1', 2], ['org_a a1', 'org_a a2', 'org_b b1', 'org_b b2']],
])('a caller that waits %s is held up by those that have it', async (_what, [org, source, places], holdUp) => {
  const payloads = new OrganizationBudget({ places: 10, placesOfOrganization: 6, placesOfSource: 2, clock: new FakeClock() });
  const holders = ['org_a a1', 'org_a a2', 'org_b b1', 'org_b b2'];
  const heldUp = (): string[] => holders.filter((holder) => payloads.holdsUp(...(holder.split(' ') as [string, string])));
  for (const holder of holders) await payloads.enter(holder.slice(0, 5), 2, { source: holder.slice(6) });
  expect(heldUp()).toEqual([]);
  void payloads.enter(org, places, { source });
  expect(heldUp()).toEqual(holdUp);
});

test('what becomes free is kept for who has waited for a while, until it has as much as it needs', async () => {
  const clock = new FakeClock();
  const payloads = new OrganizationBudget({ places: 5, placesOfOrganization: 5, clock });
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
  const payloads = new OrganizationBudget({ places: 5, placesOfOrganization: 5, clock });
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
  const payloads = new OrganizationBudget({ places: 5, placesOfOrganization: 5, placesOfSource: 4, clock });
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
  const payloads = new OrganizationBudget({ places: 8, placesOfOrganization: 6, placesOfSource: 4, clock });
  await payloads.enter('org_a', 1, { source: 'a1' });
  await payloads.enter('org_a', 2, { source: 'a2' });
  void payloads.enter('org_a', 3, { source: 'a1' });
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
  const payloads = new OrganizationBudget({ places: 128, placesOfOrganization: 84, placesOfSource: 32, clock });
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

/** Whether it enters without a wait. */
async function enters(budget: OrganizationBudget, org: string, { places = 1, source = null as string | null } = {}): Promise<boolean> {
  const entered = budget.enter(org, places, { source }).then((leave) => leave !== null);
  return await Promise.race([entered, new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))]);
}
/** How often it enters before it has to wait. */
async function taken(budget: OrganizationBudget, org: string, one: { places?: number; source?: string } = {}): Promise<number> {
  let count = 0;
  while (await enters(budget, org, one)) count++;
  return count;
}
async function takenByEach(names: readonly string[], take: (name: string) => Promise<number>): Promise<number[]> {
  const all: number[] = [];
  for (const name of names) all.push(await take(name));
  return all;
}

test('organizations that take all they get leave units to the next one, and the last is for one that has none', async () => {
  const payloads = new OrganizationBudget({ places: 32, placesOfOrganization: 8, clock: new FakeClock() });
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  expect(await takenByEach(names, (name) => taken(payloads, name))).toEqual([8, 8, 8, 4, 2, 1, 1, 0]);
});

test('sources of an organization that take all they get leave units to the next one', async () => {
  const payloads = new OrganizationBudget({ places: 64, placesOfOrganization: 16, clock: new FakeClock() });
  const names = ['p', 'q', 'r', 's', 't'];
  expect(await takenByEach(names, (source) => taken(payloads, 'a', { source }))).toEqual([12, 2, 1, 1, 0]);
  expect(await taken(payloads, 'b', { source: 'p' })).toBe(12);
});

test('large ones leave units to small ones of the next organization, down to the smallest', async () => {
  const payloads = new OrganizationBudget({
    places: 128,
    placesOfOrganization: 86,
    placesOfSource: 32,
    leastPlaces: 2,
    clock: new FakeClock(),
  });
  const large = (org: string, source: string) => enters(payloads, org, { places: 32, source });
  expect([await large('a', 'a1'), await large('a', 'a2'), await large('a', 'a3')]).toEqual([true, true, false]);
  expect([await large('b', 'b1'), await large('c', 'c1'), await large('d', 'd1')]).toEqual([true, false, false]);
  const sizes = [16, 8, 4, 2, 2, 2];
  const found: boolean[] = [];
  for (const [i, places] of sizes.entries()) found.push(await enters(payloads, `e${i}`, { places }));
  expect(found).toEqual([true, true, true, true, true, false]);
});

test('the last quarter is kept for nobody: an organization without units gets some of it while a large one waits, and what becomes free is for that', async () => {
  const clock = new FakeClock();
  const payloads = new OrganizationBudget({ places: 32, placesOfOrganization: 32, placesOfSource: 16, clock });
  const leaves: ((() => void) | null)[] = [];
  for (let i = 0; i < 24; i++) leaves.push(await payloads.enter(`a${i % 3}`, 1));
  let isIn = false;
  void payloads.enter('large', 16).then((leave) => {
    isIn = leave !== null;
  });
  await clock.advance(2500);
  for (const [i, leave] of leaves.entries()) {
    leave?.();
    // A new organization for each, which has none and would stay.
    const newcomer = await enters(payloads, `new${i}`);
    if (i < 8) expect(newcomer).toBe(true);
    if (isIn) break;
  }
  expect(isIn).toBe(true);
});

test('what becomes free of an organization goes to its source that has least', async () => {
  const payloads = new OrganizationBudget({ places: 64, placesOfOrganization: 4, clock: new FakeClock() });
  const leave = await payloads.enter('org_a', 1, { source: 'p' });
  for (const source of ['p', 'p', 'q']) await payloads.enter('org_a', 1, { source });
  const order: string[] = [];
  for (const source of ['p', 'q', 'r']) void payloads.enter('org_a', 1, { source }).then(() => order.push(source));
  leave?.();
  await new FakeClock().advance(0);
  expect(order).toEqual(['r']);
});
