declare global {
  interface JSON {
    rawJSON(text: string): unknown;
    isRawJSON(value: unknown): boolean;
  }
}

/**
 * A number of a JSON text that is written differently than the double nearest to it: of more digits than a double has, beyond its range, or in another
 * form (`19.90`, `1E3`). It is written as it was read.
 */
export class ExactNumber {
  readonly text: string;
  #double: number | null = null;
  #decimal: Decimal | null = null;

  /** `text`: a number as JSON has it. */
  constructor(text: string) {
    this.text = text;
  }

  /** The nearest one; infinite when all are too small. */
  get double(): number {
    this.#double ??= Number(this.text);
    return this.#double;
  }

  get decimal(): Decimal {
    this.#decimal ??= readDecimal(this.text);
    return this.#decimal;
  }

  valueOf(): number {
    return this.double;
  }

  toString(): string {
    return this.text;
  }

  toJSON(): unknown {
    return JSON.rawJSON(this.text);
  }
}

/** A number of a JSON text, as `parseJson` gives it. */
export type JsonNumber = number | ExactNumber;

export function isJsonNumber(value: unknown): value is JsonNumber {
  return typeof value === 'number' || value instanceof ExactNumber;
}

/** A number as JSON writes it. */
export const jsonNumberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Whether the value is an object or a list of a JSON text. */
export function isContainer(value: unknown): value is unknown[] | Record<string, unknown> {
  return typeof value === 'object' && value !== null && !(value instanceof ExactNumber);
}

/** Value of a number of a JSON text. */
export function jsonNumber(text: string): JsonNumber {
  const number = Number(text);
  return String(number) === text ? number : new ExactNumber(text);
}

const decimalForm = /^([-+]?)(\d*)(?:\.(\d*))?([eE][-+]?\d+)?$/;

/** The value of a decimal in a spelling that JSON lacks: `+5`, `007`, `.5`, `5.`; null for another text. */
export function decimalNumber(text: string): JsonNumber | null {
  const [, sign = '', whole = '', fraction = '', exponent = ''] = decimalForm.exec(text) ?? [];
  if (whole + fraction === '') return null;
  return jsonNumber(`${sign === '-' ? '-' : ''}${whole.replace(/^0+/, '') || '0'}${fraction && `.${fraction}`}${exponent}`);
}

const parts = /^(-?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

/** A decimal without zeros at either end of its digits: 0.`digits` times ten to the power of `exponent`. No digits: zero. */
interface Decimal {
  isNegative: boolean;
  digits: string;
  exponent: number | bigint;
}

function readDecimal(text: string): Decimal {
  const [, sign = '', whole = '', fraction = '', power = '0'] = parts.exec(text) ?? [];
  const all = whole + fraction;
  let start = 0;
  while (all.charCodeAt(start) === 0x30) start++;
  let end = all.length;
  while (end > start && all.charCodeAt(end - 1) === 0x30) end--;
  const digits = all.slice(start, end);
  if (digits === '') return { isNegative: false, digits, exponent: 0 };
  return { isNegative: sign === '-', digits, exponent: exponentOf(power, whole.length - start) };
}

const safeExponentLength = 15;
/** Characters. Larger exponents are taken for infinite: they are indistinguishable in practice. */
const maxExponentLength = 1000;

function exponentOf(power: string, places: number): number | bigint {
  if (power.length <= safeExponentLength) return Number(power) + places;
  const digits = power.replace(/^[+-]?0*/, '');
  if (digits.length > maxExponentLength) return power.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  const exponent = BigInt(digits === '' ? '0' : digits) * (power.startsWith('-') ? -1n : 1n) + BigInt(places);
  return Number.isSafeInteger(Number(exponent)) ? Number(exponent) : exponent;
}

export function decimalOf(number: JsonNumber): Decimal {
  return typeof number === 'number' ? readDecimal(String(number)) : number.decimal;
}

/** The double nearest to a number of a JSON text. */
export function doubleOf(number: JsonNumber): number {
  return typeof number === 'number' ? number : number.double;
}

/** Order of two numbers as they are written, in decimals: negative, 0 or positive. */
export function compareNumbers(one: JsonNumber, other: JsonNumber): number {
  const [oneDouble, otherDouble] = [doubleOf(one), doubleOf(other)];
  // The larger of two numbers never has the smaller double.
  if (oneDouble !== otherDouble) return oneDouble < otherDouble ? -1 : 1;
  if (typeof one === 'number' && typeof other === 'number') return 0;
  const [left, right] = [decimalOf(one), decimalOf(other)];
  if (left.isNegative !== right.isNegative) return left.isNegative ? -1 : 1;
  const order = compareSizes(left, right);
  return left.isNegative ? -order : order;
}

function compareSizes(one: Decimal, other: Decimal): number {
  if (one.digits === '' || other.digits === '') return one.digits.length - other.digits.length;
  if (one.exponent !== other.exponent) return one.exponent < other.exponent ? -1 : 1;
  if (one.digits === other.digits) return 0;
  return one.digits < other.digits ? -1 : 1;
}

export function equalNumbers(one: JsonNumber, other: JsonNumber): boolean {
  return compareNumbers(one, other) === 0;
}

/** Whether the nearest double is written with the same value: that of `19.90` is, that of 9007199254740993 is not. */
export function isDouble(number: JsonNumber): boolean {
  if (typeof number === 'number') return true;
  return Number.isFinite(number.double) && compareNumbers(number, number.double) === 0;
}
