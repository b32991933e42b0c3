import { spawnSync } from 'node:child_process';

/**
 * Python's reader, with decimals: a text equals another one when all numbers in it have the same value, of members of one name the last
 * counts, and their order does not. Returns per list of texts null when the first is no JSON, and else which of the others differ.
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

export function parsedByPython(cases: readonly [Buffer, Record<string, string>][]): (string[] | null)[] {
  const input = JSON.stringify(cases.map(([sent, others]) => [sent.toString('base64'), others]));
  const { status, stdout, stderr } = spawnSync('python3', ['-c', reader], { input, encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

const toolchain = new URL('../../hack/lib/toolchain.sh', import.meta.url).pathname;

/** A Python with orjson, a parser in Rust that reads bytes; null where there is none. */
export function pythonWithOrjson(): string | null {
  const { status, stdout } = spawnSync('bash', ['-c', `. "${toolchain}"; ensure_orjson && echo "$orjson"`], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return status === 0 ? stdout.trim() : null;
}

const orjsonReader = `
import base64, json, orjson, sys
def is_json(sent):
    try:
        orjson.loads(base64.b64decode(sent).removeprefix(b"\\xef\\xbb\\xbf"))
        return True
    except orjson.JSONDecodeError:
        return False
print(json.dumps([is_json(each) for each in json.load(sys.stdin)]))
`;

/** Whether each payload is JSON to orjson, which takes no half of a surrogate pair and no number beyond all doubles. */
export function isJsonToOrjson(python: string, payloads: readonly Buffer[]): boolean[] {
  const input = JSON.stringify(payloads.map((payload) => payload.toString('base64')));
  const { status, stdout, stderr } = spawnSync(python, ['-c', orjsonReader], { input, encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}
