import { spawnSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readFieldMapping } from '../../src/core/field-mapping.ts';
import { payloadText } from '../../src/core/payload-text.ts';
import { payloadJson } from '../../src/core/payload-value.ts';
import { readJson } from '../../src/core/read-json.ts';
import { javascriptEngine } from '../../src/sandbox/engines/javascript.ts';
import { jsonataEngine } from '../../src/sandbox/engines/jsonata.ts';
import { liquidEngine } from '../../src/sandbox/engines/liquid.ts';
import { assertProperty } from '../support/property.ts';

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
const json = fc
  .tuple(fc.constantFrom('', '', '\ufeff'), space, value, space)
  .map(([mark, before, text, after]) => Buffer.from(`${mark}${before}${text}${after}`));
/** What is nearly JSON. */
const broken = fc
  .tuple(value, fc.nat(), fc.constantFrom('', ',', '"', '\\', '0', '.', '}', ']', 'e', '\u00a0', '\u0001', '+'))
  .map(([text, at, piece]) => {
    const place = at % (text.length + 1);
    return Buffer.from(text.slice(0, place) + piece + text.slice(place + (piece === '' ? 1 : 0)));
  });

/**
 * Python's reader, with decimals: a text says the same as another one when all numbers in it have the same value, of members of one name the last
 * counts, and their order does not. Returns per list of texts null when the first is no JSON, and else which of the others say something else.
 */
const reader = `
import base64, decimal, json, sys
sys.set_int_max_str_digits(0)
def no(word):
    raise ValueError(word)
def number(text):
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    digits = "".join(map(str, digits)).lstrip("0")
    kept = digits.rstrip("0")
    return ("number", "", 0) if kept == "" else ("number", "-" * sign + kept, exponent + len(digits) - len(kept))
def kind(value):
    if isinstance(value, dict):
        return ("object", sorted((key, kind(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", [kind(item) for item in value])
    return value if isinstance(value, tuple) else (type(value).__name__, value)
def read(text):
    return kind(json.loads(text, parse_float=number, parse_int=number, parse_constant=no))
def judged(sent, others):
    try:
        expected = read(base64.b64decode(sent).decode("utf-8-sig"))
    except ValueError:
        return None
    wrong = []
    for name, text in others.items():
        try:
            if repr(read(text)) != repr(expected):
                wrong.append(name)
        except ValueError:
            wrong.append(name)
    return wrong
print(json.dumps([judged(*each) for each in json.load(sys.stdin)]))
`;

function judgedByPython(cases: readonly [Buffer, Record<string, string>][]): (string[] | null)[] {
  const input = JSON.stringify(cases.map(([sent, others]) => [sent.toString('base64'), others]));
  const { status, stdout, stderr } = spawnSync('python3', ['-c', reader], { input, encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

const engines = [
  ['javascript', javascriptEngine, '(event) => ({ kept: event.payload })'],
  ['jsonata', jsonataEngine, '{"kept": payload}'],
  ['liquid', liquidEngine, '{"kept": {{ payload | json }}}'],
] as const;

/** What comes of a payload on each of its ways, as JSON text. */
async function waysOf(payload: Buffer): Promise<Record<string, string>> {
  const ways: Record<string, string> = { file: payloadJson(payload) };
  const { mapping } = readFieldMapping([{ source: '$.payload', target: 'a', type: 'json' }]);
  const read = readJson(payloadText(payload));
  for (const [, column] of mapping?.({ payload: read }) ?? []) ways['column'] = JSON.stringify(column);
  for (const [engine, { run }, code] of engines) {
    const warnings: string[] = [];
    const event = {
      organization: 'org_a',
      event: '{"id":"evt_a"}',
      payload: payloadText(payload),
      code,
      warn: (text: string) => warnings.push(text),
    };
    const output = await run(event);
    // Numbers that share a double may have changed, and it has been said.
    if (warnings.length === 0 && output !== null) ways[engine] = output.replace(/^\s*\{\s*"kept"\s*:/, '').replace(/\}\s*$/, '');
  }
  // As bytes: a lone surrogate is none.
  return Object.fromEntries(Object.entries(ways).map(([way, text]) => [way, Buffer.from(text).toString()]));
}

test('JSON of every form says in files, columns and what transforms hand on what it says to Python', async () => {
  const property = fc.asyncProperty(fc.array(json, { minLength: 20, maxLength: 60 }), async (payloads) => {
    const cases: [Buffer, Record<string, string>][] = [];
    for (const payload of payloads) cases.push([payload, await waysOf(payload)]);
    const judged = judgedByPython(cases);
    const wrong = judged.flatMap((names, i) => (names === null || names.length > 0 ? [[names, String(payloads[i]), cases[i]?.[1]]] : []));
    expect(wrong).toEqual([]);
  });
  await assertProperty(property, 20, 20_000);
});

test('what is no JSON to Python is none to filters and files, and the other way round', () => {
  const property = fc.property(fc.array(fc.oneof(broken, json), { minLength: 100, maxLength: 300 }), (payloads) => {
    const judged = judgedByPython(payloads.map((payload) => [payload, {}]));
    const differing = payloads.filter((payload, i) => (readJson(payloadText(payload)) === undefined) !== (judged[i] === null));
    expect(differing.map(String)).toEqual([]);
  });
  assertProperty(property, 20, 15_000);
});
