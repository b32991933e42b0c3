import { PosthornError } from '../../core/errors.ts';

/** A list of numbers as `cmsgpack.pack` of a script writes it (MessagePack). Throws INTERNAL for anything else. */
export function unpackNumbers(packed: Buffer): number[] {
  const head = packed[0] ?? 0;
  let at = 1;
  let length = head & 0x0f;
  if (head === 0xdc) {
    length = packed.readUInt16BE(1);
    at = 3;
  } else if ((head & 0xf0) !== 0x90) throw malformed();
  const numbers: number[] = [];
  for (let i = 0; i < length; i++) {
    const type = packed[at];
    if (type === undefined) throw malformed();
    at += 1;
    if (type <= 0x7f) numbers.push(type);
    else {
      const [width, read] = readers.get(type) ?? [];
      if (width === undefined || read === undefined || at + width > packed.length) throw malformed();
      numbers.push(read(packed, at));
      at += width;
    }
  }
  return numbers;
}

const readers: ReadonlyMap<number, readonly [width: number, read: (packed: Buffer, at: number) => number]> = new Map([
  [0xcc, [1, (packed: Buffer, at: number) => packed.readUInt8(at)]],
  [0xcd, [2, (packed: Buffer, at: number) => packed.readUInt16BE(at)]],
  [0xce, [4, (packed: Buffer, at: number) => packed.readUInt32BE(at)]],
  [0xcf, [8, (packed: Buffer, at: number) => Number(packed.readBigUInt64BE(at))]],
  [0xca, [4, (packed: Buffer, at: number) => packed.readFloatBE(at)]],
  [0xcb, [8, (packed: Buffer, at: number) => packed.readDoubleBE(at)]],
]);

function malformed(): PosthornError {
  return new PosthornError('INTERNAL', 'packed statistics are malformed');
}
