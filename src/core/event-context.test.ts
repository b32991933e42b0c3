import { expect, test } from '@jest/globals';
import { EventContext } from './event-context.ts';

const large = 'x'.repeat(300 * 1024);

test.each<[what: string, body: Buffer, payload: unknown]>([
  ['an object', Buffer.from(JSON.stringify({ a: large, b: [1, { c: null }] })), { a: large, b: [1, { c: null }] }],
  ['no JSON', Buffer.from(`{"a":"${large}"`), undefined],
  ['a byte order mark', Buffer.from(`\ufeff{"a":"${large}"}`), { a: large }],
  ['a byte order mark before many pieces', Buffer.from(`\ufeff${JSON.stringify([large, large, { b: 1 }])}`), [large, large, { b: 1 }]],
  ['two byte order marks', Buffer.from(`\ufeff\ufeff{"a":"${large}"}`), undefined],
  ['a byte order mark, and no JSON', Buffer.from(`\ufeff{"a":"${large}"`), undefined],
  [
    'a byte order mark, and bytes that are not UTF-8',
    Buffer.concat([Buffer.from(`\ufeff{"a":"${large}`), Buffer.from([0xff]), Buffer.from('"}')]),
    { a: `${large}\ufffd` },
  ],
  [
    'bytes that are not UTF-8',
    Buffer.concat([Buffer.from(`{"a":"${large}`), Buffer.from([0xff]), Buffer.from('"}')]),
    { a: `${large}\ufffd` },
  ],
])('The payload of a large body is the same in pieces as in one: %s.', (_what, body, payload) => {
  const inPieces = new EventContext({}, body);
  for (const _ of inPieces.parse());
  expect(inPieces.payload).toEqual(payload);
  expect(new EventContext({}, body).payload).toEqual(payload);
});
