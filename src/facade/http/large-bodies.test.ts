import { expect, test } from '@jest/globals';
import { LargeBodies, largeBodyLimits } from './large-bodies.ts';

/** Work that records its start in `begun` and ends on command. */
function held(bodies: LargeBodies, begun: string[]) {
  const ends: (() => void)[] = [];
  const send = (organization: string): Promise<void> =>
    bodies.run(organization, () => {
      begun.push(organization);
      return new Promise((end) => void ends.push(end));
    });
  const endFirst = async (): Promise<void> => {
    ends.shift()?.();
    await new Promise((resolve) => void setImmediate(resolve));
  };
  return { send, endFirst };
}

test('Of one organization one large body is validated at a time, and others do not wait for its next one', async () => {
  const begun: string[] = [];
  const { send, endFirst } = held(new LargeBodies(), begun);
  const all = [send('a'), send('a'), send('a'), send('b')];
  await new Promise((resolve) => void setImmediate(resolve));
  expect(begun).toEqual(['a', 'b']);
  for (let i = 0; i < 4; i++) await endFirst();
  await Promise.all(all);
  expect(begun).toEqual(['a', 'b', 'a', 'a']);
});

test('A few are validated at a time, and the organizations that wait take turns', async () => {
  const begun: string[] = [];
  const { send, endFirst } = held(new LargeBodies(), begun);
  const organizations = ['a', 'b', 'c', 'd', 'e', 'a', 'e'];
  const all = organizations.map(send);
  await new Promise((resolve) => void setImmediate(resolve));
  expect(begun).toEqual(['a', 'b', 'c', 'd']);
  for (let i = 0; i < organizations.length; i++) await endFirst();
  await Promise.all(all);
  expect(begun).toEqual(['a', 'b', 'c', 'd', 'e', 'a', 'e']);
});

test('An organization with too many that run or wait is refused, and another is not', async () => {
  const begun: string[] = [];
  const { send, endFirst } = held(new LargeBodies(), begun);
  const all = Array.from({ length: largeBodyLimits.ofOrganizationInAll }, () => send('a'));
  await expect(send('a')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  all.push(send('b'));
  for (let i = 0; i <= largeBodyLimits.ofOrganizationInAll; i++) await endFirst();
  await Promise.all(all);
  expect(begun).toContain('b');
});
