import { describe, expect, test } from '@jest/globals';
import { inOnePiece } from './in-one-piece.ts';
import { repeatedMember } from './repeated-members.ts';

const repeated = (json: string, freeField?: string) => inOnePiece(repeatedMember(Buffer.from(json), freeField));

describe('a member that occurs twice in an object is found', () => {
  test.each<[string, (string | number)[]]>([
    ['{"a":1,"a":2}', ['a']],
    ['{ "a" : 1 , "b" : {} ,\n"a"\t:\r1 }', ['a']],
    ['{"a":1,"\\u0061":2}', ['a']],
    ['{"ü":1,"\\u00fc":2}', ['ü']],
    ['{"a\\"b":1,"a\\"b":2}', ['a"b']],
    ['{"":1,"":1}', ['']],
    ['{"__proto__":1,"__proto__":1}', ['__proto__']],
    ['{"a":{"b":[{"c":1},{"c":{},"c":[]}]}}', ['a', 'b', 1, 'c']],
    ['[[],{"a":"x,{\\"","a":1}]', [1, 'a']],
    ['{"payload":{"a":1,"a":2},"b":1,"b":2}', ['b']],
    ['{"payload":1,"payload":2}', ['payload']],
    ['{"x":{"payload":{"a":1,"a":2}}}', ['x', 'payload', 'a']],
  ])('%s', (json, path) => {
    expect(repeated(json, 'payload')).toEqual(path);
  });
});

test.each([
  '{}',
  '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}',
  '{"a":"a","b":"a","c":"\\"a\\":1,\\"a\\":2"}',
  '{"a":1,"A":2}',
  '"a"',
  '[1,"a","a"]',
  '{"payload":{"a":1,"a":{"b":1,"b":2}}}',
  '{"payload":[{"a":1,"a":2}],"a":1}',
])('no member occurs twice in %s, or only where everything may be', (json) => {
  expect(repeated(json, 'payload')).toBeNull();
});

test('a large text is read in pieces', () => {
  const members = Array.from({ length: 50_000 }, (_, i) => `"${i}":"${i}"`);
  const pieces = repeatedMember(Buffer.from(`{${[...members, '"7":7'].join(',')}}`));
  let count = 0;
  let step = pieces.next();
  for (; step.done !== true; step = pieces.next()) count++;
  expect([step.value, count > 5]).toEqual([['7'], true]);
});
