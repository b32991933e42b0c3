import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../test/support/property.ts';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { includesText, replacedTexts, unfinishedLength } from './text-search.ts';

const fewLetters = (maxLength: number) => fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀'), maxLength });

test('a text is found where String.includes finds it, however long both are', () => {
  assertProperty(
    fc.property(fewLetters(30), fewLetters(5), fc.nat(3000), (text, part, times) => {
      const long = `${text}${part.repeat(times)}`;
      for (const wanted of [part, long.slice(1), `${part.repeat(300)}b`, part.repeat(300), text.repeat(20)]) {
        expect(includesText(long.repeat(3), wanted)).toBe(long.repeat(3).includes(wanted));
      }
    }),
  );
});

test('a text that ends within a searched text is found by its longest beginning there', () => {
  assertProperty(
    fc.property(fewLetters(20), fewLetters(12), (text, part) => {
      const lengths = Array.from({ length: part.length }, (_, length) => length);
      expect(unfinishedLength(text, part)).toBe(Math.max(0, ...lengths.filter((length) => text.endsWith(part.slice(0, length)))));
    }),
  );
});

test('texts are replaced wherever they are, from left to right, at each place the first one that is there', () => {
  const part = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), minLength: 2, maxLength: 6 });
  assertProperty(
    fc.property(fewLetters(60), fc.array(part, { maxLength: 8 }), (text, parts) => {
      const naive = parts.length === 0 ? text : text.replace(new RegExp(parts.join('|'), 'g'), '*');
      expect(replacedTexts(text, parts, '*', 2)).toBe(naive);
    }),
  );
});

test('texts that begin like another one in very many places are not replaced', () => {
  const parts = Array.from({ length: 100 }, (_, i) => `${'a'.repeat(100)}${i}b`);
  expect(withinProcessorTime(() => replacedTexts('a'.repeat(100_000), parts, '*', 8))).toBeNull();
});

test.each([
  ['an odd letter in the middle', 'a'.repeat(1_000_000), `${'a'.repeat(5000)}b${'a'.repeat(5000)}`],
  ['an odd letter at the beginning', `b${'a'.repeat(1_000_000)}`, `b${'a'.repeat(5000)}b`],
  ['a period that ends', 'ab'.repeat(500_000), `${'ab'.repeat(5000)}b${'ab'.repeat(5000)}`],
  ['two bytes for a letter', 'ā'.repeat(1_000_000), `${'ā'.repeat(5000)}b${'ā'.repeat(5000)}`],
  ['half of the text', 'a'.repeat(1_000_000), `${'a'.repeat(250_000)}b${'a'.repeat(250_000)}`],
])('a long text is searched for in a million letters in linear time: %s', (_, text, part) => {
  expect(withinProcessorTime(() => includesText(text, part))).toBe(false);
  expect(withinProcessorTime(() => unfinishedLength(text, `${text}b`))).toBe(text.length);
});
