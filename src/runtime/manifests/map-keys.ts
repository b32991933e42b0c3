import { type Document, isAlias, isScalar, type Pair, Scalar } from 'yaml';
import { ExactNumber, type JsonNumber } from '../../core/exact-number.ts';

const longest = { int: 2n ** 63n - 1n, uint: 2n ** 64n - 1n };

/**
 * Makes the key of a pair the text that kubectl makes of it: `0x10` is 16, `1.50` is 1.5, `no` is false. Numbers with a fraction or an exponent have the
 * digits of a float of 32 bits there. Throws an Error for what is no key to kubectl, either: null, a list, an object, an integer of 64 bits without a sign.
 */
export function keyAsText(pair: Pair, document: Document, numberOf: (source: string, double: number) => JsonNumber | string): void {
  const { key } = pair;
  const node = isAlias(key) ? key.resolve(document) : key;
  if (!isScalar(node)) throw new Error(`the key ${String(key)} is a list or an object; keys are text`);
  const { value, source = '' } = node;
  if (value === null) throw new Error('a key is null; keys are text');
  if (typeof value !== 'number' && !(value instanceof ExactNumber)) return;
  const number = typeof value === 'number' ? numberOf(source, value) : value;
  const text = new Scalar(typeof number === 'string' ? number : numberText(number, source));
  if (node.range != null) text.range = node.range;
  pair.key = text;
}

function numberText(number: JsonNumber, source: string): string {
  const [double, text] = [Number(number), String(number)];
  const isInteger = /^-?\d+$/.test(text) && !(/[.e]/i.test(source) && !/^[-+]?0x/i.test(source));
  if (!isInteger) return floatText(double);
  const integer = BigInt(text);
  if (integer > longest.int && integer <= longest.uint) throw new Error(`the key ${text} is too large; keys are text`);
  return BigInt.asIntN(64, integer) === integer ? String(integer) : floatText(double);
}

/** As Go's `strconv.FormatFloat(double, 'g', -1, 32)`, and YAML's words for what is no number. */
function floatText(double: number): string {
  const float = Math.fround(double);
  if (Number.isNaN(float)) return '.nan';
  if (!Number.isFinite(float)) return float < 0 ? '-.inf' : '.inf';
  if (float === 0) return Object.is(float, -0) ? '-0' : '0';
  let [digits, exponent] = partsOf(float, 1);
  for (let count = 2; Math.fround(Number(`${digits}e${exponent}`)) !== float; count++) [digits, exponent] = partsOf(float, count);
  if (exponent >= -4 && exponent < 6) return String(Number(`${digits}e${exponent}`));
  return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

function partsOf(float: number, digits: number): [digits: string, exponent: number] {
  const [mantissa = '', exponent = ''] = float.toExponential(digits - 1).split('e');
  return [mantissa, Number(exponent)];
}
