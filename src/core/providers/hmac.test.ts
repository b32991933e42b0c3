import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { digestFromBase64 } from './hmac.ts';

describe.each(['sha1', 'sha256', 'sha512'] as const)('a %s digest in Base64', (algorithm) => {
  const digest = createHash(algorithm).update('x').digest();
  const text = digest.toString('base64');
  const bare = text.replace(/=+$/, '');

  test('is read as its bytes', () => expect(digestFromBase64(text, algorithm)).toEqual(digest));

  test.each([
    ['without padding', bare],
    ['with too little padding', text.slice(0, -1)],
    ['with more padding', `${text}=`],
    ['with rubbish behind it', `${text}AAAA`],
    ['with a line break behind it', `${text}\n`],
    ['with white space before it', ` ${text}`],
    ['with a character that is no digit', `${text.slice(0, 9)}!${text.slice(9)}`],
    ['with a digit of base64url', `${bare.slice(0, -1)}_${text.slice(bare.length)}`],
    ['with other bits behind its last byte', withOtherLastBits(text)],
    ['that is one digit short', text.slice(1)],
  ])('%s is no digest', (_, changed) => expect(digestFromBase64(changed, algorithm)).toBeNull());
});

/** The last digit before the padding counts in part only. */
function withOtherLastBits(text: string): string {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const last = text.replace(/=+$/, '').length - 1;
  return text.slice(0, last) + digits.charAt(digits.indexOf(text.charAt(last)) + 1) + text.slice(last + 1);
}
