import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../test/support/property.ts';
import { expectShortPieces } from '../../test/support/short-work.ts';
import { inOnePiece } from './in-one-piece.ts';
import { parseLargeJson, TooDeepError, TooManyMembersError } from './large-json.ts';

function parsed(text: string | Uint8Array, pieceBytes?: number): { json: string | undefined } | 'refused' {
  const pieces = parseLargeJson(typeof text === 'string' ? Buffer.from(text) : text, pieceBytes === undefined ? {} : { pieceBytes });
  try {
    return { json: JSON.stringify(inOnePiece(pieces)) };
  } catch (error) {
    if (error instanceof TooDeepError) throw error;
    return 'refused';
  }
}

/** Reads each number as its source text, as V8 provides it. */
function withSource(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' ? JSON.rawJSON(context?.source ?? '') : value;
}

function parsedWhole(text: string): { json: string } | 'refused' {
  try {
    return { json: JSON.stringify(JSON.parse(text, withSource)) };
  } catch {
    return 'refused';
  }
}

const key = fc.constantFrom('a', 'b', '', '0', '1', '__proto__', 'é', ',]}"');
const scalar = fc.oneof(
  fc.constantFrom('1', '-0', '1e3', '9007199254740993', '19.90', '1E400', 'true', 'null', '""', '"\\\\"', '"[,]\\""', '"\\u00e9"'),
  key.map((each) => JSON.stringify(each)),
);
const space = fc.constantFrom('', '', '', ' ', '\n');

/** JSON texts with keys that come twice, keys in the order of numbers, and white space. */
const { text } = fc.letrec<{ text: string; list: string; object: string }>((tie) => ({
  text: fc.oneof({ depthSize: 'medium' }, scalar, tie('list'), tie('object')),
  list: fc
    .array(
      fc.tuple(space, tie('text'), space).map((parts) => parts.join('')),
      { maxLength: 6 },
    )
    .map((items) => `[${items.join(',')}]`),
  object: fc
    .array(
      fc
        .tuple(key, space, tie('text'), space)
        .map(([name, before, value, after]) => `${before}${JSON.stringify(name)}${before}:${after}${value}${after}`),
      { maxLength: 6 },
    )
    .map((members) => `{${members.join(',')}}`),
}));

test('A text that is read in pieces of any size is what JSON.parse makes of it', () => {
  assertProperty(
    fc.property(text, fc.integer({ min: 0, max: 12 }), (json, pieceBytes) => {
      expect(parsed(json, pieceBytes)).toEqual(parsedWhole(json));
    }),
    3000,
  );
});

test('A text that is broken anywhere is refused where JSON.parse refuses it', () => {
  const broken = fc
    .tuple(text, fc.nat(), fc.nat({ max: 2 }), fc.constantFrom('', ',', ']', '}', '[', '{', ':', '"', '1', ' ', '\\'))
    .map(([json, at, removed, added]) => {
      const place = at % (json.length + 1);
      return json.slice(0, place) + added + json.slice(place + removed);
    });
  assertProperty(
    fc.property(broken, fc.integer({ min: 0, max: 12 }), (json, pieceBytes) => {
      expect(parsed(json, pieceBytes)).toEqual(parsedWhole(json));
    }),
    5000,
  );
});

test.each([
  ['a byte order mark before the text', Buffer.from('\uFEFF[1,2,3]'), { json: '[1,2,3]' }],
  ['a byte order mark within the text', Buffer.from('[1,\uFEFF2,3]'), 'refused'],
  ['no UTF-8', Buffer.from([0x5b, 0x31, 0x2c, 0x22, 0xff, 0x22, 0x5d]), 'refused'],
  ['nothing', Buffer.alloc(0), 'refused'],
])('a payload with %s is parsed or refused', (_what, bytes, outcome) => {
  expect(parsed(bytes, 1)).toEqual(outcome);
});

test('A text that is nested deeper than 1000 levels is refused', () => {
  expect(() => parsed('['.repeat(1001))).toThrow(TooDeepError);
});

test.each([
  ['an object', '{"a":{"a":1,"b":2,"c":3}}'],
  ['a list', '{"a":[[1,2,3]]}'],
  ['the outermost object', '{"a":1,"b":2,"free":3}'],
])('Too many members are refused: %s', (_what, json) => {
  expect(() => [...parseLargeJson(Buffer.from(json), { maxMembers: 2, freeField: 'free' })]).toThrow(TooManyMembersError);
});

test('An object of more than 200,000 members is refused in the free field and anywhere else, a list is not', () => {
  const wide = (count: number) => JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1])));
  for (const options of [{}, { maxMembers: 2, freeField: 'free' }]) {
    const read = (json: string) => [...parseLargeJson(Buffer.from(`{"free":{"a":${json}}}`), options)].length;
    expect(read(wide(200_000))).toBeGreaterThan(0);
    expect(() => read(wide(200_001))).toThrow(new TooManyMembersError('more than 200000 members'));
    expect(read(`[${Array(300_000).fill('1').join(',')}]`)).toBeGreaterThan(0);
  }
});

test('Of fewer members of an object that are allowed, one more is refused in the free field too, and a list may have more', () => {
  const read = (json: string) => [...parseLargeJson(Buffer.from(json), { maxMembers: 5, maxObjectMembers: 2, freeField: 'free' })];
  expect(read('{"free":{"a":1,"b":[1,2,3,4,5,6]}}')).toEqual([]);
  expect(() => read('{"free":{"a":1,"b":2,"c":3}}')).toThrow(new TooManyMembersError('more than 2 members'));
});

test('In the free field there may be any number of members, at any depth', () => {
  const json = '{"free":{"a":[1,2,3],"b":2,"c":3},"b":[1,2]}';
  expect([...parseLargeJson(Buffer.from(json), { maxMembers: 2, freeField: 'free' })]).toEqual([]);
});

test.each([
  ['one object with 450,000 members', `{${Array.from({ length: 450_000 }, (_, i) => `"k${i}":1`).join(',')}}`],
  ['many empty lists', `[${Array(2_600_000).fill('[]').join(',')}]`],
  ['many small objects', `{"a":{"b":[${Array(800_000).fill('{"a":1}').join(',')}]}}`],
  ['a deep text with many items', `${'[1,'.repeat(999)}[${Array(1_000_000).fill('1').join(',')}]${']'.repeat(999)}`],
  ['one long string', `["${'x'.repeat(8_000_000)}"]`],
  ['one string of escapes', `["${'\\u0041'.repeat(1_300_000)}"]`],
  [
    'names with escapes before a long string',
    `{${Array.from({ length: 8000 }, (_, i) => `"\\n${i}":0`).join(',')},"x":"${'y'.repeat(4_000_000)}"}`,
  ],
  ['one string of escaped quotes with a digit', `["1${'\\"'.repeat(4_000_000)}"]`],
  ['one long number', `[${'1'.repeat(8_000_000)}]`],
  ['many numbers with a zero at their end', `[${Array(2_000_000).fill('1.0').join(',')}]`],
  ['members with numbers of many digits', `{"a":[${Array(200_000).fill('{"id":9007199254740993,"b":"x"}').join(',')}]}`],
  ['white space', ' '.repeat(8_000_000)],
])('No piece of 8 MB takes long: %s', (_what, json) => {
  const text = Buffer.from(json);
  expectShortPieces(50, () => parseLargeJson(text));
});
