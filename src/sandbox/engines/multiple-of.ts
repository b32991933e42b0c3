import { type JsonNumber, decimalOf as writtenDecimal } from '../../core/exact-number.ts';

/** `digits` times ten to the power of `exponent`. */
interface Decimal {
  digits: bigint;
  exponent: number;
}

/** Different decimals of at most so many digits have different doubles. */
const maxExactDigits = 1e15;
/** Larger powers of ten are no doubles. */
const maxExactPower = 22;

/**
 * Whether numbers are multiples of the divisor as JSON writes both, in decimals: 19.99 is one of 0.01, though neither double is exact. Of an
 * integer beyond 2^53 either the double itself or its shortest decimal may be the multiple, since it is unknown which of the two was written.
 */
export function multiplesOf(divisor: number): (value: number) => boolean {
  if (divisor === 0) return () => false;
  if (!Number.isFinite(divisor)) return (value) => value === 0;
  const by = decimalOf(divisor);
  const scale = by.exponent <= 0 && by.exponent >= -maxExactPower ? 10 ** -by.exponent : null;
  return (value) => {
    if (!Number.isFinite(value)) return false;
    if (value === 0 || (Number.isInteger(divisor) && value % divisor === 0)) return true;
    if (Math.abs(value) < Math.abs(divisor)) return false;
    if (scale !== null) {
      const scaled = Math.round(value * scale);
      // The double of this decimal is the value.
      if (Math.abs(scaled) < maxExactDigits && scaled / scale === value) return scaled % Number(by.digits) === 0;
    }
    return isDecimalMultiple(decimalOf(value), by);
  };
}

/** `value` is not smaller than the divisor. */
function isDecimalMultiple({ digits, exponent }: Decimal, by: Decimal): boolean {
  const shift = exponent - by.exponent;
  return shift < 0 ? digits % (by.digits * powerOfTen(-shift)) === 0n : (digits * powerOfTen(shift)) % by.digits === 0n;
}

/** The shortest decimal that is read as this double. */
function decimalOf(number: number): Decimal {
  const [mantissa = '', exponent = '0'] = String(number).split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

/** Powers of ten by their exponents, which are at most 700. */
const powers: bigint[] = [];

function powerOfTen(exponent: number): bigint {
  powers[exponent] ??= 10n ** BigInt(exponent);
  return powers[exponent];
}

/** Whether a number is a multiple of the divisor as both are written, however many digits they have. */
export function isMultiple(value: JsonNumber, divisor: JsonNumber): boolean {
  const [one, by] = [writtenDecimal(value), writtenDecimal(divisor)];
  if (by.digits === '') return false;
  if (one.digits === '') return true;
  const shift = lastPlace(one) - lastPlace(by);
  // Its last digit is not 0.
  if (shift < 0n) return false;
  const modulus = BigInt(by.digits);
  return (BigInt(one.digits) * powerOfTenModulo(shift, modulus)) % modulus === 0n;
}

function lastPlace({ digits, exponent }: ReturnType<typeof writtenDecimal>): bigint {
  return (Number.isFinite(exponent) || typeof exponent === 'bigint' ? BigInt(exponent) : 0n) - BigInt(digits.length);
}

function powerOfTenModulo(exponent: bigint, modulus: bigint): bigint {
  let [result, base, left] = [1n % modulus, 10n % modulus, exponent];
  for (; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * base) % modulus;
    base = (base * base) % modulus;
  }
  return result;
}
