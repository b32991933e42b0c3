import { describe, expect, test } from '@jest/globals';
import { PosthornError } from '../../core/errors.ts';
import { readJsonObject, readLargeJsonObject } from './body.ts';

const nested = (levels: number, inner = '1') => `${'{"a":'.repeat(levels)}${inner}${'}'.repeat(levels)}`;
const lists = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`;
const large = 'x'.repeat(70_000);

const readers: Record<string, (bytes: Buffer) => void> = {
  'at once': (bytes) => void readJsonObject(bytes, 'payload'),
  'in pieces': (bytes) => {
    const pieces = readLargeJsonObject(bytes, 'payload');
    while (pieces.next().done !== true);
  },
};

function detailsOf(read: () => void): [message: string, details: Readonly<Record<string, readonly string[]>>] {
  try {
    read();
  } catch (error) {
    if (error instanceof PosthornError) return [error.message, error.details ?? {}];
  }
  throw new Error('it was taken');
}

describe.each(Object.entries(readers))('a body that is read %s', (_, read) => {
  test.each<[string, string, RegExp, string]>([
    ['a payload nested too deep', `{"payload":${nested(513)}}`, /^payload(\.a)+\.?…$/, 'is nested deeper than 512 levels'],
    [
      'a payload of lists nested too deep',
      `{"large":"${large}","payload":{"b":${lists(513)}}}`,
      /^payload\.b(\[0\])+\[?…$/,
      'is nested deeper than 512 levels',
    ],
    ['a member twice', '{"name":"a","name":"b"}', /^name$/, 'occurs twice in its object'],
    ['a member twice in a list', `{"large":"${large}","items":[{},{"a":1,"\\u0061":2}]}`, /^items\[1\]\.a$/, 'occurs twice in its object'],
    [
      'a payload nested deeper than is read',
      `{"payload":[7,${nested(2000)}]}`,
      /^payload\[1\](\.a)+…$/,
      'is nested deeper than 512 levels',
    ],
    [
      'another field nested too deep',
      `{"metadata":{"b":[1,${nested(40)}]}}`,
      /^metadata\.b\[1\](\.a){29}$/,
      'is nested deeper than 32 levels',
    ],
    ['a forbidden key', '{"metadata":{"b":[{"__proto__":1}]}}', /^metadata\.b\[0\]\.__proto__$/, 'is not a field'],
    ['a forbidden key at the top', '{"__proto__":1}', /^__proto__$/, 'is not a field'],
  ])('%s: the details name where', (_title, text, path, complaint) => {
    const [, details] = detailsOf(() => read(Buffer.from(text)));
    expect(Object.entries(details)).toEqual([[expect.stringMatching(path), [complaint]]]);
  });
});

test('a body with a list of too many members is refused, and the details name the list', () => {
  const text = `{"filter":{"values":[${Array.from({ length: 20_001 }, () => 1).join()}]}}`;
  const [, details] = detailsOf(() => readers['in pieces']?.(Buffer.from(text)));
  expect(Object.keys(details)).toEqual(['filter.values']);
});
