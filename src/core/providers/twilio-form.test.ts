import { describe, expect, test } from '@jest/globals';
import { expectShortTurns } from '../../../test/support/short-work.ts';
import { inOnePiece } from '../in-one-piece.ts';
import { loopTurns } from '../loop-turns.ts';
import { wholePayloadBytes } from '../payload-sizes.ts';
import { signedFormFields } from './twilio-form.ts';

/** By the rule of Twilio's own libraries, over what `URLSearchParams` reads. */
function expected(body: string | Buffer): string {
  const params = new URLSearchParams(body.toString());
  const names = [...new Set(params.keys())].sort();
  return names
    .map((name) =>
      [...new Set(params.getAll(name))]
        .sort()
        .map((value) => name + value)
        .join(''),
    )
    .join('');
}
const signed = (body: string | Buffer): Buffer | null => inOnePiece(signedFormFields(Buffer.from(body)));
const megabytes = 'x'.repeat(3 * wholePayloadBytes);

describe('the signed text of a form has its fields by name', () => {
  test.each([
    'b=2&a=1',
    'From=%2B491234&Body=Hello+w%C3%B6rld%21',
    'a=2&a=1&a=2',
    'a=%F0%9F%98%80&a=%EF%BC%81',
    '&&a=1&&b&=c&',
    'a==1=2',
    'a=%zz&b=%4&c=%',
    'a=%ff%C3&%ff=1',
    'ü=ö',
    '',
  ])('%j', (body) => {
    expect(signed(body)?.toString()).toBe(expected(body));
  });

  test.each([
    ['a long value', `b=${megabytes}&a=1`],
    ['a long value that is encoded', `Body=${encodeURIComponent('ü &+'.repeat(wholePayloadBytes))}&A=1`],
    ['a long value and a field that comes twice', `b=${megabytes}&a=2&a=1`],
    ['as many fields as there may be', Array.from({ length: 5000 }, (_, i) => `f${i}=${'x'.repeat(400)}`).join('&')],
  ])('above 1 MiB: %s', (_what, body) => {
    expect(signed(body)?.toString() === expected(body)).toBe(true);
  });

  test.each<[string, string | Buffer]>([
    ['more than 5,000 fields', Array.from({ length: 5001 }, (_, i) => `f${i}=`).join('&')],
    ['nothing but separators', Buffer.alloc(2 * wholePayloadBytes, '&')],
    ['names of more than 1 MiB', Array.from({ length: 3000 }, (_, i) => `${i}${'n'.repeat(400)}=1`).join('&')],
    ['values of one name of more than 1 MiB', `a=${megabytes}&a=1`],
    ['a large form that is no UTF-8', `a=${megabytes}%ff`],
    ['a large form with a small value that is no UTF-8', `a=${megabytes}&b=%ff`],
  ])('and none where it has %s', (_what, body) => {
    expect(signed(body)).toBeNull();
  });
});

test('A form of 25 MiB takes no long turn of the event loop.', async () => {
  const body = Buffer.from(`Body=${'%C3%BC+'.repeat(Math.floor((25 * wholePayloadBytes) / 7))}&MessageSid=SM1`);
  await expectShortTurns(50, () => loopTurns.of('org_a').run(signedFormFields(body)));
});
