import { expect, test } from '@jest/globals';
import { fieldReader } from './filter-path.ts';
import { joinedHeaders } from './joined-headers.ts';

/** As node:http has it. */
const sent = (text: string, encoding: BufferEncoding): string => Buffer.from(text, encoding).toString('latin1');

test.each<[string, string, string]>([
  ['ASCII', 'plain', 'plain'],
  ['UTF-8', sent('Müller 🚀', 'utf8'), 'Müller 🚀'],
  ['Latin-1', sent('Müller', 'latin1'), 'Müller'],
  ['text that was read before', 'Müller 🚀', 'Müller 🚀'],
])('the value of a header in %s is read as text by transforms, records and filters', (_, value, text) => {
  expect(
    joinedHeaders([
      ['x-name', value],
      ['x-name', value],
    ]),
  ).toEqual({ 'x-name': `${text}, ${text}` });
  const read = fieldReader('headers.X-Name');
  const context = { headers: { 'x-name': value }, query: {}, payload: undefined };
  expect(typeof read === 'string' ? read : read(context)).toBe(text);
});
