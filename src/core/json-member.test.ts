import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../test/support/property.ts';
import { inOnePiece } from './in-one-piece.ts';
import { jsonElements, jsonMember } from './json-member.ts';

const member = (json: string, name = 'payload'): string | undefined => inOnePiece(jsonMember(Buffer.from(json), name))?.toString();

describe('the value of a member is as it was sent', () => {
  test.each<[string, string | undefined]>([
    ['{"payload":{"b":1.0,"a":  2}}', '{"b":1.0,"a":  2}'],
    ['{ "x" : [1,{"payload":2}] , "payload" : 1e5 }', '1e5'],
    ['{"payload":"a\\"b\\\\","x":"}"}', '"a\\"b\\\\"'],
    ['{"payload":null}', 'null'],
    ['\n{"x":"\\\\","payload":[ "]", "\\"" ]\n}', '[ "]", "\\"" ]'],
    ['{"pay\\u006coad":true}', 'true'],
    ['{"payload":1,"payload":2}', '2'],
    ['{"payload":"ü{"}', '"ü{"'],
    ['{"pay":1}', undefined],
    ['{}', undefined],
  ])('%s', (json, expected) => {
    expect(member(json)).toBe(expected);
  });

  test('the value of a member is as it was sent of every object, whatever white space is around it', () => {
    const spaces = fc.constantFrom('', ' ', '\n\t', '\r\n  ');
    assertProperty(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.string()), spaces, (object, others, space) => {
        const names = [...Object.keys(object), ...others];
        const text = `${space}{${space}${Object.entries(object)
          .map(([name, value]) => `${JSON.stringify(name)}${space}:${space}${JSON.stringify(value)}`)
          .join(`${space},${space}`)}${space}}`;
        for (const name of names) expect(member(text, name)).toBe(Object.hasOwn(object, name) ? JSON.stringify(object[name]) : undefined);
      }),
    );
  });

  test('and so do the elements of every array', () => {
    assertProperty(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 1), (array, indent) => {
        const elements = inOnePiece(jsonElements(Buffer.from(JSON.stringify(array, null, indent))));
        expect(elements.map((each) => JSON.parse(each.toString()))).toEqual(JSON.parse(JSON.stringify(array)));
      }),
    );
  });
});
