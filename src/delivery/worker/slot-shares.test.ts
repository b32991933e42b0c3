import { expect, test } from '@jest/globals';
import { SlotShares } from './slot-shares.ts';

function holding(slots: number, held: Record<string, number>): SlotShares {
  const shares = new SlotShares(slots);
  for (const [org, count] of Object.entries(held)) for (let i = 0; i < count; i++) shares.begin({ org, isSlow: false });
  return shares;
}

test('an eighth of the slots is kept from accounts that hold so many', () => {
  const shares = holding(64, { org_a: 40, org_b: 8, org_c: 7 });
  expect(shares.kept).toBe(8);
  expect(shares.large(9)).toEqual(['org_a', 'org_b']);
  expect(shares.inFlight).toBe(55);
});

test('an account gets one of the kept slots only while it holds fewer than are free', () => {
  expect(holding(64, { org_a: 56, org_b: 3 }).large(5)).toEqual(['org_a']);
  expect(holding(64, { org_a: 56, org_b: 4 }).large(4)).toEqual(['org_a', 'org_b']);
  expect(holding(64, { org_a: 56, org_b: 4, org_c: 2, org_d: 1 }).large(1)).toEqual(['org_a', 'org_b', 'org_c', 'org_d']);
});

test('the webhooks and alerts of an organization count with it', () => {
  expect(holding(64, { org_a: 3, '+org_a': 3, '~org_a': 2 }).large(56)).toEqual(['org_a']);
});

test('the dominant account has more than half of the attempts under way that are not slow', () => {
  expect(holding(64, {}).dominant).toBeNull();
  expect(holding(64, { org_a: 1 }).dominant).toBe('org_a');
  expect(holding(64, { org_a: 3, org_b: 2, org_c: 1 }).dominant).toBeNull();
  expect(holding(64, { org_b: 3, org_a: 3, '+org_a': 1 }).dominant).toBe('org_a');
  const shares = holding(64, { org_a: 3, org_b: 2 });
  for (let i = 0; i < 8; i++) shares.begin({ org: 'org_b', isSlow: true });
  expect(shares.dominant).toBe('org_a');
  for (let i = 0; i < 2; i++) shares.end({ org: 'org_a', isSlow: false });
  expect(shares.dominant).toBe('org_b');
});

test('a worker of few slots keeps none', () => {
  const shares = holding(7, { org_a: 7 });
  expect([shares.kept, shares.large(0)]).toEqual([0, []]);
});

test('slow attempts are counted by account until they end', () => {
  const shares = holding(64, { org_b: 1 });
  for (const org of ['org_a', '+org_a', 'org_b']) shares.begin({ org, isSlow: true });
  shares.end({ org: 'org_b', isSlow: true });
  expect(shares.slow).toEqual({ slots: 64, held: 2, byAccount: new Map([['org_a', 2]]) });
  expect(shares.inFlight).toBe(3);
});

test('slow attempts of an organization hold no more than its quarter of the slots and a quarter of the probes, those of all three quarters', () => {
  const begun = (shares: SlotShares, org: string): number => {
    let count = 0;
    for (; shares.hasRoomForSlow(org); count++) shares.begin({ org, isSlow: true });
    return count;
  };
  const shares = new SlotShares(64);
  expect(begun(shares, 'org_a')).toBe(16 + 4);
  expect(shares.hasRoomForSlow('+org_a')).toBe(false);
  expect(begun(shares, 'org_b')).toBe(16 + 4);
  expect(begun(shares, 'org_c')).toBe(4);
  shares.end({ org: 'org_a', isSlow: true });
  expect(begun(shares, 'org_c')).toBe(1);
  expect(begun(new SlotShares(1), 'org_a')).toBe(1);
});
