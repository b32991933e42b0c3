import { expect, test } from '@jest/globals';
import { LargeBodies } from './large-bodies.ts';

const ofCredential = 8;

/** Work that records its start in `begun` and ends on command. */
function held(bodies: LargeBodies, begun: string[]) {
  const ends: (() => void)[] = [];
  const send = (organization: string, credential = organization): Promise<void> =>
    bodies.run({ organization, credential }, () => {
      begun.push(credential);
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
  const all = organizations.map((organization) => send(organization));
  await new Promise((resolve) => void setImmediate(resolve));
  expect(begun).toEqual(['a', 'b', 'c', 'd']);
  for (let i = 0; i < organizations.length; i++) await endFirst();
  await Promise.all(all);
  expect(begun).toEqual(['a', 'b', 'c', 'd', 'e', 'a', 'e']);
});

test('A credential with too many that run or wait is refused, and another organization is not', async () => {
  const begun: string[] = [];
  const { send, endFirst } = held(new LargeBodies(), begun);
  const all = Array.from({ length: ofCredential }, () => send('a'));
  await expect(send('a')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  all.push(send('b'));
  for (let i = 0; i <= ofCredential; i++) await endFirst();
  await Promise.all(all);
  expect(begun).toContain('b');
});

test('The credentials of an organization take turns, and leave places to each other', async () => {
  const begun: string[] = [];
  const { send, endFirst } = held(new LargeBodies(), begun);
  const all = Array.from({ length: ofCredential }, () => send('a', 'key 1'));
  await expect(send('a', 'key 1')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  all.push(send('a', 'key 2'), send('a', 'key 3'));
  await expect(send('a', 'key 4')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  for (let i = 0; i < all.length; i++) await endFirst();
  await Promise.all(all);
  expect(begun.slice(0, 5)).toEqual(['key 1', 'key 1', 'key 2', 'key 3', 'key 1']);
});
