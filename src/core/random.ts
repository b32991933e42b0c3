import { randomFillSync } from 'node:crypto';

const pool = Buffer.allocUnsafeSlow(8192);
let used = pool.length;

/**
 * Random bytes from the system's generator, drawn in blocks: a call for a few bytes costs a tenth of `randomBytes`. No byte
 * is given out twice. The bytes are overwritten by a later call: encode or copy them at once.
 */
export function fewRandomBytes(length: number): Uint8Array {
  if (used + length > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += length;
  return pool.subarray(used - length, used);
}
