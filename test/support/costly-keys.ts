import { generateKeyPairSync, randomBytes } from 'node:crypto';

interface RsaParts {
  n: bigint;
  e: bigint;
  d: bigint;
  p: bigint;
  q: bigint;
  dp: bigint;
  dq: bigint;
  qi: bigint;
}

/** A third prime. */
interface OtherPrime {
  r: bigint;
  d: bigint;
  t: bigint;
}

/** An RSA key in PEM whose primes are no primes: it signs nothing that verifies, and takes as long. `own`: parts in place of those that belong together. */
export function rsaKeyOfBits(bits: number, own: Partial<RsaParts> = {}, other: OtherPrime | null = null): string {
  for (;;) {
    const [p, q] = [oddOfBits(bits / 2), oddOfBits(bits / 2)];
    const [d, qi] = [inverse(65_537n, (p - 1n) * (q - 1n)), inverse(q, p)];
    if (d === null || qi === null) continue;
    const key: RsaParts = { n: p * q, e: 65_537n, d, p, q, dp: d % (p - 1n), dq: d % (q - 1n), qi, ...own };
    const numbers = [other === null ? 0n : 1n, key.n, key.e, key.d, key.p, key.q, key.dp, key.dq, key.qi];
    const others = other === null ? [] : [derOf(0x30, derOf(0x30, integers([other.r, other.d, other.t])))];
    const bytes = derOf(0x30, Buffer.concat([integers(numbers), ...others]));
    return `-----BEGIN RSA PRIVATE KEY-----\n${bytes.toString('base64')}\n-----END RSA PRIVATE KEY-----\n`;
  }
}

/** An RSA key in PEM as one that only signs with PSS, with any hash. */
export function pssOf(rsaKey: string): string {
  const bytes = Buffer.from(rsaKey.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  const identifier = derOf(0x30, derOf(0x06, Buffer.from('2a864886f70d01010a', 'hex')));
  const key = derOf(0x30, Buffer.concat([derOf(0x02, Buffer.from([0])), identifier, derOf(0x04, bytes)]));
  return `-----BEGIN PRIVATE KEY-----\n${key.toString('base64')}\n-----END PRIVATE KEY-----\n`;
}

/** A key in PEM that is encrypted with an empty password, which is hashed so many times. */
export function encryptedKey(iterations: number): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const bytes = privateKey.export({ type: 'pkcs8', format: 'der', cipher: 'aes-256-cbc', passphrase: '' });
  // The count, which Node writes as 2048, is the integer behind the salt of 16 bytes.
  const at = bytes.indexOf(Buffer.from('02020800', 'hex'));
  if (at < 0) throw new Error('the key has another form');
  bytes.writeUInt16BE(iterations, at + 2);
  return `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${bytes.toString('base64')}\n-----END ENCRYPTED PRIVATE KEY-----\n`;
}

function integers(numbers: readonly bigint[]): Buffer {
  return Buffer.concat(numbers.map((number) => derOf(0x02, bytesOf(number))));
}

function oddOfBits(bits: number): bigint {
  const bytes = randomBytes(bits / 8);
  bytes.writeUInt8(bytes.readUInt8(0) | 0xc0, 0);
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) | 1, bytes.length - 1);
  return BigInt(`0x${bytes.toString('hex')}`);
}

/** Null: there is none. */
function inverse(value: bigint, modulus: bigint): bigint | null {
  let [before, rest, factorBefore, factor] = [modulus, value % modulus, 0n, 1n];
  while (rest > 0n) {
    const quotient = before / rest;
    [before, rest] = [rest, before - quotient * rest];
    [factorBefore, factor] = [factor, factorBefore - quotient * factor];
  }
  return before === 1n ? ((factorBefore % modulus) + modulus) % modulus : null;
}

/** With a zero in front, so that the number is positive. */
function bytesOf(value: bigint): Buffer {
  const hex = value.toString(16);
  return Buffer.from(`00${hex.length % 2 === 0 ? '' : '0'}${hex}`, 'hex').subarray(hex.length % 2 === 1 || /^[0-7]/.test(hex) ? 1 : 0);
}

function derOf(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 128
      ? [length]
      : length < 65_536
        ? [0x82, length >> 8, length & 0xff]
        : [0x83, length >> 16, (length >> 8) & 0xff, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
