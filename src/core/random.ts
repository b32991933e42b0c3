import { randomFillSync } from 'node:crypto';

/** RFC 4648 base32, in lower case. */
export const base32Letters = 'abcdefghijklmnopqrstuvwxyz234567';

const codes = Buffer.from(base32Letters);
const block = Buffer.allocUnsafeSlow(8192);
let text = '';
let used = 0;

/** Random characters of base32 in lower case, with 5 bits each, from the system's generator. They are drawn in blocks, and none is returned twice. */
export function randomBase32(length: number): string {
  if (used + length > text.length) {
    randomFillSync(block);
    for (let i = 0; i < block.length; i++) block[i] = codes[(block[i] ?? 0) & 31] ?? 0;
    text = block.toString('latin1');
    used = 0;
  }
  used += length;
  return text.slice(used - length, used);
}
