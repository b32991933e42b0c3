import fc from 'fast-check';

const digits = (maxLength: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${maxLength}}$`));
const number = fc
  .tuple(
    fc.constantFrom('', '-'),
    digits(25).map((text) => text.replace(/^0+(?=.)/, '')),
    fc.option(digits(20), { nil: null, freq: 2 }),
    fc.option(fc.tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), digits(3)), { nil: null, freq: 3 }),
  )
  .map(([sign, whole, fraction, exponent]) => `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${exponent?.join('') ?? ''}`);

const hex = fc.stringMatching(/^[0-9a-fA-F]{4}$/).map((text) => `\\u${text}`);
const surrogate = fc.constantFrom('\\ud83d', '\\uDE80', '\\ud83d\\ude80', '\\uFEFF', '\\u0000', '\\u2028');
const escaped = fc.constantFrom(...['"', '\\', '/', 'b', 'f', 'n', 'r', 't'].map((char) => `\\${char}`));
const plain = fc.constantFrom('a', '1', ' ', 'é', '\u2028', '\u007f', '🚀', '\ufeff', '\uffff', '{', ':', ',', ']', '-1.50', '__proto__');
const string = fc.array(fc.oneof(plain, escaped, hex, surrogate), { maxLength: 5 }).map((parts) => `"${parts.join('')}"`);

const space = fc.stringMatching(/^[ \t\r\n]{0,2}$/);
/** Some of them are few, so that they come twice. */
const name = fc.oneof(
  fc.constantFrom('"a"', '"b"', '"\\u0061"', '"__proto__"', '"1"', '"0"', '"toJSON"', '""'),
  fc.constantFrom('"\\\\"', '"\\\\u0"', '"\\n"', '"\\u005c"'),
  string,
);
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(number, string, fc.constantFrom('true', 'false', 'null')),
    fc
      .tuple(space, fc.array(fc.tuple(tie('value'), space), { maxLength: 4 }))
      .map(([before, items]) => `[${before}${items.map(([item, after]) => item + after).join(',')}]`),
    fc
      .tuple(space, fc.array(fc.tuple(name, space, tie('value'), space), { maxLength: 4 }))
      .map(
        ([before, members]) =>
          `{${before}${members.map(([key, between, member, after]) => `${key}${between}:${between}${member}${after}`).join(',')}}`,
      ),
  ),
}));
/** JSON of every form that a sender may write, with a byte order mark or without. */
export const anyJson = fc
  .tuple(fc.constantFrom('', '', '\ufeff'), space, value, space)
  .map(([mark, before, text, after]) => Buffer.from(`${mark}${before}${text}${after}`));
/** What is nearly JSON. */
export const brokenJson = fc
  .tuple(value, fc.nat(), fc.constantFrom('', ',', '"', '\\', '0', '.', '}', ']', 'e', '\u00a0', '\u0001', '+'))
  .map(([text, at, piece]) => {
    const place = at % (text.length + 1);
    return Buffer.from(text.slice(0, place) + piece + text.slice(place + (piece === '' ? 1 : 0)));
  });
