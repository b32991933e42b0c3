import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isJson, parsePlainJson } from './plain-json.ts';

/** What a hostile text makes V8 expect behind the members `before`. */
function poison(before: string): void {
  for (const name of ['\\\\', '\\\\u0', '\\\\n', 'a\\\\']) JSON.parse(`{${before}"${name}":0}`);
}

describe('after a text with a backslash in a name, behind the same members', () => {
  test.each([
    [
      '{"p1":1,"\\u0061":2}',
      [
        ['p1', 1],
        ['a', 2],
      ],
    ],
    [
      '{"p2":1,"\\n":2}',
      [
        ['p2', 1],
        ['\n', 2],
      ],
    ],
    [
      '{"p3":1,"\\"":2}',
      [
        ['p3', 1],
        ['"', 2],
      ],
    ],
    [
      '{"p4":1,"\\/":2,"a\\u0062" : 3}',
      [
        ['p4', 1],
        ['/', 2],
        ['ab', 3],
      ],
    ],
    [
      '{"p5":1,"\\ud83d\\ude00":2,"\\ud800":3}',
      [
        ['p5', 1],
        ['😀', 2],
        ['\ud800', 3],
      ],
    ],
    [
      '{"p6":1,"\\u0031":2}',
      [
        ['1', 2],
        ['p6', 1],
      ],
    ],
    [
      '{"p7":1,"\\n":2,"\\u000a":3,"z":4}',
      [
        ['p7', 1],
        ['\n', 3],
        ['z', 4],
      ],
    ],
    [
      '{"p8":"\\"x\\":","\\u005f_proto__":2}',
      [
        ['p8', '"x":'],
        ['__proto__', 2],
      ],
    ],
  ] as [string, [string, unknown][]][])('%s has the members that it says', (text, members) => {
    const [before = ''] = /^\{"p\d":[^,]*,/.exec(text) ?? [];
    poison(before.slice(1));
    expect(Object.entries(parsePlainJson(text))).toEqual(members);
  });

  test('members in lists and in other members have their names', () => {
    poison('"i":1,');
    expect(parsePlainJson('[{"i":1,"\\t":{"i":1,"\\u0062":[{"i":1,"\\r":[]}]}},"\\u0063"]')).toEqual([
      { i: 1, '\t': { i: 1, b: [{ i: 1, '\r': [] }] } },
      'c',
    ]);
  });
});

test.each([
  '{"a":\\u0031,":":2}',
  '{"a" \\n ":1}',
  '\\"a":1',
  '{"a\\":1}',
  '{"\\x":1}',
  '{"\\u00":1}',
  '{"a\n\\u0061":1}',
  '"\\',
  '{"\\u0061":}',
])('%j is no JSON', (text) => {
  expect(() => parsePlainJson(text)).toThrow(SyntaxError);
  expect(isJson(text)).toBe(false);
});

test('whatever JSON says is read, with its names escaped in any way, and in the same order', () => {
  const escaped = (text: string): string =>
    text.replace(/[\s\S]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const name = fc.string({ unit: fc.constantFrom('a', '\\', '"', '\n', 'é', '0', '_'), maxLength: 3 });
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, 1, 'x', '"\\'),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(name, tie('value'), { maxKeys: 4 }),
    ),
  }));
  const written = (each: unknown): string => {
    if (Array.isArray(each)) return `[${each.map(written).join(', ')}]`;
    if (typeof each !== 'object' || each === null) return JSON.stringify(each);
    return `{${Object.entries(each)
      .map(([key, member], i) => `${i % 2 === 0 ? JSON.stringify(key) : `"${escaped(key)}"`} : ${written(member)}`)
      .join(',')}}`;
  };
  fc.assert(
    fc.property(value, (each) => {
      expect(JSON.stringify(parsePlainJson(written(each)))).toBe(JSON.stringify(each));
    }),
  );
});

test('more names with escapes than a caller has time for are refused', () => {
  expect(parsePlainJson('{"\\n":1,"a\\t":2}', 2)).toEqual({ '\n': 1, 'a\t': 2 });
  expect(() => parsePlainJson('{"\\n":1,"a\\t":2}', 1)).toThrow(RangeError);
});
