import type { LookupAddress } from 'node:dns';
import { beforeEach, expect, test } from '@jest/globals';
import { lookingUpFor, NameLookups } from './name-lookups.ts';

const answer: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }];
/** Of 30 places an account has 7, and 3 stay for those that have none. */
const threads = 64;
const places = 30;
const shareOfOne = 7;
const kept = 3;

/** Names under way, in their order; each ends when its function is called. */
let underWay: Map<string, (error?: Error) => void>;
let began: string[];
let lookups: NameLookups;
let answered: string[];

beforeEach(() => {
  underWay = new Map();
  began = [];
  answered = [];
  lookups = new NameLookups((hostname, _, callback) => {
    began.push(hostname);
    underWay.set(hostname, (error) => {
      underWay.delete(hostname);
      callback(error ?? null, error === undefined ? answer : []);
    });
  }, threads);
});

function ask(org: string, ...names: string[]): void {
  for (const name of names)
    lookingUpFor(org, () => lookups.lookup(name, { all: true }, (error) => answered.push(error === null ? name : `${name} ${error.code}`)));
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

test('accounts take turns, and each gets its names in the order in which it asked', () => {
  ask('org_a', ...names('a', 10));
  for (let org = 0; org < 9; org++) ask(`org_full${org}`, ...names(`f${org}-`, shareOfOne));
  began = [];
  for (let i = 0; i < 3; i++) underWay.get(`a${i}`)?.();
  expect(began.filter((name) => name.startsWith('a'))).toEqual(began.filter((name) => name.startsWith('a')).toSorted());
  expect(began).toHaveLength(3);
  expect(began.every((name) => name.startsWith('a'))).toBe(false);
});

test('what an account asks for twice at a time is looked up once, and by another account for itself', () => {
  ask('org_a', 'shop', 'shop');
  ask('org_b', 'shop');
  expect(began).toEqual(['shop', 'shop']);
  underWay.get('shop')?.();
  expect(answered).toEqual(['shop']);
});

test('an error reaches all that asked, and the next name is looked up', () => {
  ask('org_a', ...names('a', shareOfOne + 1), 'a0');
  underWay.get('a0')?.(Object.assign(new Error('no'), { code: 'ENOTFOUND' }));
  expect(answered).toEqual(['a0 ENOTFOUND', 'a0 ENOTFOUND']);
  expect(began.at(-1)).toBe(`a${shareOfOne}`);
});

test('names of an account that wait are bounded; the next one is an error as for a name server that is away', async () => {
  ask('org_a', ...names('a', shareOfOne + 256), 'beyond');
  await new Promise(setImmediate);
  expect(answered).toEqual(['beyond EAI_AGAIN']);
  ask('org_b', 'b');
  expect(began.at(-1)).toBe('b');
});

test('with as few threads as Node has by default, one organization leaves a place to others', () => {
  lookups = new NameLookups((hostname) => began.push(hostname));
  ask('org_a', ...names('a', 5));
  ask('org_b', ...names('b', 5));
  expect(began).toEqual(['a0', 'b0']);
});
