import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { storedValue } from './stored-value.ts';

const texts = new Map<string, string>();
/** Whether storage refuses to be read, or to be written. */
let refuses = { reading: false, writing: false };
const storage = {
  getItem: (key: string) => {
    if (refuses.reading) throw new Error('refused');
    return texts.get(key) ?? null;
  },
  setItem: (key: string, text: string) => {
    if (refuses.writing) throw new Error('full');
    texts.set(key, text);
  },
};
const before = Object.getOwnPropertyDescriptor(globalThis, 'localStorage');
const window = new EventTarget();

beforeEach(() => {
  texts.clear();
  refuses = { reading: false, writing: false };
  Object.defineProperty(globalThis, 'localStorage', { configurable: true, value: storage });
  Object.assign(globalThis, { addEventListener: window.addEventListener.bind(window) });
});
afterEach(() => {
  Reflect.deleteProperty(globalThis, 'addEventListener');
  if (before === undefined) Reflect.deleteProperty(globalThis, 'localStorage');
  else Object.defineProperty(globalThis, 'localStorage', before);
});

const names = () => storedValue<string[]>('names', (stored) => (Array.isArray(stored) ? stored : []));
const add = (name: string) => (now: string[]) => [...now, name];

test('a change is of what is stored now, also where this window has not received it yet', () => {
  const ours = names();
  ours.set(add('a'));
  texts.set('names', '["a","of another window"]');
  ours.set(add('b'));
  expect([ours.get(), texts.get('names')]).toEqual([['a', 'of another window', 'b'], '["a","of another window","b"]']);
  texts.set('names', 'no JSON');
  ours.set(add('c'));
  expect(ours.get()).toEqual(['c']);
});

test('a browser that keeps nothing has each change for this page', () => {
  refuses = { reading: true, writing: true };
  const ours = names();
  ours.set(add('a'));
  ours.set(add('b'));
  expect(ours.get()).toEqual(['a', 'b']);
});

test('what could not be written is not lost with the next change, until another window writes', () => {
  const ours = names();
  ours.set(add('a'));
  refuses.writing = true;
  ours.set(add('b'));
  ours.set(add('c'));
  expect([ours.get(), texts.get('names')]).toEqual([['a', 'b', 'c'], '["a"]']);
  texts.set('names', '["of another window"]');
  window.dispatchEvent(Object.assign(new Event('storage'), { key: 'names' }));
  refuses.writing = false;
  ours.set(add('d'));
  expect(ours.get()).toEqual(['of another window', 'd']);
});
