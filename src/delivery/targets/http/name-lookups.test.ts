import { AsyncLocalStorage } from 'node:async_hooks';
import type { LookupAddress } from 'node:dns';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '../../../../test/support/fake-clock.ts';
import { NameLookups, withLookupShare } from './name-lookups.ts';

const answer: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }];
/** An account has 7 of 30 slots; 3 are for accounts without any. */
const threads = 64;
const places = 30;
const shareOfOne = 7;
const kept = 3;

/** Names under way, in their order; each ends when its function is called. */
let clock: FakeClock;
let underWay: Map<string, (error?: Error) => void>;
let began: string[];
let lookups: NameLookups;
let answered: string[];

beforeEach(() => {
  clock = new FakeClock();
  underWay = new Map();
  began = [];
  answered = [];
  lookups = new NameLookups(
    (hostname, _, callback) => {
      began.push(hostname);
      underWay.set(hostname, (error) => {
        underWay.delete(hostname);
        callback(error ?? null, error === undefined ? answer : []);
      });
    },
    clock,
    threads,
  );
});

function ask(org: string, ...names: string[]): void {
  for (const name of names)
    withLookupShare(org, () =>
      lookups.lookup(name, { all: true }, (error) => answered.push(error === null ? name : `${name} ${error.code}`)),
    );
}
const names = (org: string, count: number, from = 0): string[] => Array.from({ length: count }, (_, i) => `${org}${from + i}`);

test('an organization whose names hang has a quarter of the places, with its webhooks and alerts, and others are looked up at once', () => {
  ask('org_a', ...names('a', 20));
  ask('+org_a', ...names('w', 20));
  ask('~org_a', ...names('l', 20));
  expect(began).toEqual(names('a', shareOfOne));
  ask('org_b', 'b');
  expect(began.at(-1)).toBe('b');
  underWay.get('b')?.();
  expect(answered).toEqual(['b']);
});

test('some places are only for organizations that have none, when the names of several hang', () => {
  for (const org of ['a', 'b', 'c', 'd']) ask(`org_${org}`, ...names(org, 20));
  expect(underWay.size).toBe(places - kept);
  for (let i = 0; i < kept; i++) ask(`org_new${i}`, `new${i}`, `second${i}`);
  expect(began.slice(places - kept)).toEqual(names('new', kept));
});

test('accounts take turns', () => {
  ask('org_a', ...names('a', 10));
  for (let org = 0; org < 9; org++) ask(`org_full${org}`, ...names(`f${org}-`, shareOfOne));
  began = [];
  for (let i = 0; i < shareOfOne; i++) underWay.get(`a${i}`)?.();
  expect(began.map((name) => name.slice(0, 2)).toSorted()).toEqual(['a7', 'f6', 'f7', 'f8']);
});

test('the oldest and the newest unknown names of an account take turns', () => {
  ask('org_a', ...names('a', shareOfOne + 4));
  for (let i = 0; i < 4; i++) underWay.get(`a${i}`)?.();
  expect(began.slice(shareOfOne)).toEqual(['a7', 'a10', 'a8', 'a9']);
});

test('what an account requests twice at a time is looked up once, and by another account for itself', () => {
  ask('org_a', 'shop', 'shop');
  ask('org_b', 'shop');
  expect(began).toEqual(['shop', 'shop']);
  underWay.get('shop')?.();
  expect(answered).toEqual(['shop']);
});

test('an error reaches all callers, and the next name is looked up', () => {
  ask('org_a', ...names('a', shareOfOne + 1), 'a0');
  underWay.get('a0')?.(Object.assign(new Error('no'), { code: 'ENOTFOUND' }));
  expect(answered).toEqual(['a0 ENOTFOUND', 'a0 ENOTFOUND']);
  expect(began.at(-1)).toBe(`a${shareOfOne}`);
});

test('names of an account that wait are bounded; the next one is an error as for a name server that is down', async () => {
  ask('org_a', ...names('a', shareOfOne + 256), 'beyond');
  await new Promise(setImmediate);
  expect(answered).toEqual(['beyond EAI_AGAIN']);
  ask('org_b', 'b');
  expect(began.at(-1)).toBe('b');
});

test('one organization leaves a place to others with as few threads as Node has by default', () => {
  lookups = new NameLookups((hostname) => began.push(hostname), clock);
  ask('org_a', ...names('a', 5));
  ask('org_b', ...names('b', 5));
  expect(began).toEqual(['a0', 'b0']);
});

describe('beside 100 silent names of the same account', () => {
  /** Ends the lookups of silent names as `getaddrinfo` does, 10 s after they began, until nothing waits. */
  const silentPeriod = async (): Promise<void> => {
    await clock.advance(10_000);
    for (const [name, end] of [...underWay]) if (name.startsWith('silent')) end(Object.assign(new Error('no'), { code: 'EAI_AGAIN' }));
  };
  /** Has them looked up once, a few at a time. */
  const knowAsSilent = async (): Promise<void> => {
    for (let from = 0; from < 100; from += shareOfOne) {
      ask('org_a', ...names('silent', Math.min(shareOfOne, 100 - from), from));
      await silentPeriod();
    }
  };
  const answerGood = (): void => {
    for (const [name, end] of [...underWay]) if (!name.startsWith('silent')) end();
  };

  test('an unknown good name is looked up as soon as the first ones are known as slow', async () => {
    ask('org_a', ...names('silent', 100), 'good');
    expect(began).toEqual(names('silent', shareOfOne));
    await clock.advance(2000);
    expect(began).toContain('good');
  });

  test('an unknown good name among them is looked up while all others have no more places than before', async () => {
    for (const org of ['org_b', 'org_c', 'org_d']) ask(org, ...names(`silent-${org}-`, shareOfOne));
    ask('org_a', ...names('silent', 100), 'good');
    await silentPeriod();
    await silentPeriod();
    expect(began).toContain('good');
    ask('org_new', 'new');
    expect(began.at(-1)).toBe('new');
  });

  test('good names are looked up at once when the silent ones are known, again and again', async () => {
    await knowAsSilent();
    for (let round = 0; round < 5; round++) {
      ask('org_a', ...names('silent', 100), ...names('good', 20));
      expect([...underWay.keys()].filter((name) => name.startsWith('silent'))).toHaveLength(2);
      for (let turn = 0; turn < 4; turn++) answerGood();
      expect(answered.slice(-20).toSorted()).toEqual(names('good', 20).toSorted());
      await silentPeriod();
    }
  });

  test('a good name has a place when as many wait as may', async () => {
    await knowAsSilent();
    answered = [];
    ask('org_a', ...names('silent', 100), ...names('good', shareOfOne - 2), ...names('later', 200));
    await clock.advance(0);
    expect(answered.filter((answer) => !answer.startsWith('silent'))).toEqual([]);
    expect(answered.length).toBeGreaterThan(0);
    while ([...underWay.keys()].some((name) => !name.startsWith('silent'))) answerGood();
    expect(answered.filter((answer) => answer.startsWith('later'))).toHaveLength(200);
  });

  test('a name that was slow once comes before those that were slow more often, and among the good ones when it answers', async () => {
    ask('org_a', ...names('silent', 3), 'hiccup');
    for (let round = 0; round < 2; round++) {
      await clock.advance(2000);
      if (round === 0) underWay.get('hiccup')?.();
      await silentPeriod();
      ask('org_a', ...names('silent', 3));
    }
    ask('org_a', 'hiccup');
    began = [];
    await silentPeriod();
    expect(began[0]).toBe('hiccup');
    underWay.get('hiccup')?.();
    ask('org_a', 'hiccup');
    expect(began.at(-1)).toBe('hiccup');
  });

  test('what has waited for longer than a connection may take is looked up no more', async () => {
    ask('org_a', ...names('silent', 100));
    await clock.advance(61_000);
    began = [];
    for (const end of [...underWay.values()]) end(Object.assign(new Error('no'), { code: 'EAI_AGAIN' }));
    await clock.advance(0);
    expect(began).toEqual([]);
    expect(answered.filter((answer) => answer.endsWith(' EAI_AGAIN'))).toHaveLength(100);
  });

  test('what is slow for one account is unknown for another', async () => {
    ask('org_a', ...names('silent', 3));
    await silentPeriod();
    began = [];
    ask('org_b', ...names('silent', 3));
    expect(began).toEqual(names('silent', 3));
  });
});

describe('who asks', () => {
  test('who asks gets the answer in its own context, regardless of the first caller and of the one that freed the slot', () => {
    const asker = new AsyncLocalStorage<string>();
    const heard: string[] = [];
    const askAs = (who: string, name: string): void =>
      asker.run(who, () =>
        withLookupShare('org_a', () => lookups.lookup(name, { all: true }, () => heard.push(`${who} ${asker.getStore()}`))),
      );
    for (const name of names('a', shareOfOne)) askAs('first', name);
    askAs('second', 'a0');
    askAs('third', 'waits');
    asker.run('resolver', () => underWay.get('a0')?.());
    asker.run('resolver', () => underWay.get('waits')?.());
    expect(heard).toEqual(['first first', 'second second', 'third third']);
  });

  test('who asks gets the answer when another caller throws, and the next name is looked up', () => {
    withLookupShare('org_a', () =>
      lookups.lookup('a0', { all: true }, () => {
        throw new Error('of the asker');
      }),
    );
    ask('org_a', ...names('a', shareOfOne), 'next');
    expect(() => underWay.get('a0')?.()).toThrow('of the asker');
    expect([answered, began.at(-1)]).toEqual([['a0'], 'next']);
  });

  test('who asks gets the error of a lookup that throws at once', async () => {
    lookups = new NameLookups(
      () => {
        throw Object.assign(new Error('no'), { code: 'ERR_INVALID_ARG_VALUE' });
      },
      clock,
      threads,
    );
    ask('org_a', ...names('a', shareOfOne + 1));
    await clock.advance(0);
    expect(answered).toEqual(names('a', shareOfOne + 1).map((name) => `${name} ERR_INVALID_ARG_VALUE`));
  });
});
