import { describe, expect, test } from '@jest/globals';
import { formPairs } from './form-pairs.ts';
import { hexLine, hexLineCount } from './hex-lines.ts';
import { inTimeSlices } from './in-time-slices.ts';
import { collapsedAtFirst, copiedValue, type JsonLines, jsonLines, opened, pathOf, visibleLines } from './json-lines.ts';
import { hitsIn, textLines } from './text-lines.ts';
import { indentedXml } from './xml-text.ts';

function result<Result>(work: Generator<number, Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}

/** As the viewer shows them, all branches open. */
function written(text: string, { lines }: JsonLines): string[] {
  return visibleLines(lines, new Set()).flatMap((at) => {
    const line = lines[at];
    if (line === undefined) return [];
    const key = line.keyStart < 0 ? '' : `${text.slice(line.keyStart, line.keyEnd)}: `;
    const isEmpty = line.kind === 'open' && line.members === 0;
    const value = line.kind === 'open' && !isEmpty ? text[line.valueStart] : text.slice(line.valueStart, line.valueEnd);
    const { hasComma } = (isEmpty ? lines[line.end] : line) ?? line;
    return [`${'  '.repeat(line.depth)}${key}${value}${hasComma ? ',' : ''}`];
  });
}

describe('jsonLines', () => {
  test('keeps numbers and repeated keys as they are written', () => {
    const text = '{"id":12345678901234567890,"total":1.10,"e":-1E+5,"total":2}';
    const lines = result(jsonLines(text));
    expect(lines.faultAt).toBeNull();
    expect(written(text, lines)).toEqual(['{', '  "id": 12345678901234567890,', '  "total": 1.10,', '  "e": -1E+5,', '  "total": 2', '}']);
  });

  test.each([
    '{"a":[1,{"b":[]},"x\\"y"],"c":{"d":null,"e":true}}',
    '[]',
    '{}',
    '[[[]]]',
    '"text"',
    ' 5 ',
    '{"a":"\\\\"}',
    '[{},[],{"a":{}}]',
  ])('lays %s out as JSON.stringify does', (text) => {
    const lines = result(jsonLines(text));
    expect(lines.faultAt).toBeNull();
    const expected = JSON.stringify(JSON.parse(text), null, 2).split('\n');
    expect(written(text, lines)).toEqual(expected);
  });

  test.each([
    ['{"a":1,}', 7],
    ['[1,]', 3],
    ['[,1]', 1],
    ['{"a" 1}', 5],
    ['[1 2]', 3],
    ['[01]', 2],
    ['{"a":[1', 7],
    ['["abc', 1],
    ['tru', 0],
    ['', 0],
    ['{} x', 3],
    ['[1}', 2],
    ['["a\nb"]', 1],
  ])('says where %j stops being JSON', (text, at) => {
    expect(result(jsonLines(text)).faultAt).toBe(at);
  });

  test('shows what a cut text has', () => {
    const text = '{"a":[1,2';
    const lines = result(jsonLines(text));
    expect(written(text, lines)).toEqual(['{', '  "a": [', '    1,', '    2']);
  });

  test('works in turns on a large text', async () => {
    const text = JSON.stringify(Array.from({ length: 50_000 }, (_each, at) => ({ at, name: `n${at}` })));
    const { lines, faultAt } = await inTimeSlices(jsonLines(text));
    expect(faultAt).toBeNull();
    expect(lines).toHaveLength(50_000 * 4 + 2);
  });
});

describe('branches', () => {
  const long = JSON.stringify({
    few: [1, 2],
    many: Array.from({ length: 101 }, (_each, at) => at),
    deep: { a: { b: { c: { d: { e: 1 } } } } },
  });
  const { lines } = result(jsonLines(long));

  test('of more than 100 members, and below the fourth level, are collapsed at first', () => {
    expect([...collapsedAtFirst(lines)].map((at) => pathOf(long, lines, at))).toEqual(['payload.many', 'payload.deep.a.b.c.d']);
  });

  test('have their lines when they are opened', () => {
    const collapsed = collapsedAtFirst(lines);
    const at = lines.findIndex(({ parent, index }) => parent >= 0 && lines[parent]?.members === 101 && index === 100);
    expect(visibleLines(lines, collapsed)).not.toContain(at);
    expect(visibleLines(lines, opened(lines, collapsed, at))).toContain(at);
  });
});

test('pathOf writes names that are no plain ones in brackets', () => {
  const text = '{"System.State":[{"sku":"x"}]}';
  const { lines } = result(jsonLines(text));
  expect(pathOf(text, lines, 3)).toBe("payload['System.State'][0].sku");
});

test('copiedValue is the text of a string, and anything else as written', () => {
  const text = '["a\\n", 1.10, {"b": 2}]';
  const { lines } = result(jsonLines(text));
  expect([1, 2, 3].map((at) => lines[at] && copiedValue(text, lines[at]))).toEqual(['a\n', '1.10', '{"b": 2}']);
});

describe('hitsIn', () => {
  test('finds lines in any case, each once, and takes no pattern', () => {
    const text = 'one Two\n\ntwo two\na.b\naxb\n';
    expect(hitsIn(text, textLines(text), 'TWO')).toEqual([0, 2]);
    expect(hitsIn(text, textLines(text), 'a.b')).toEqual([3]);
    expect(hitsIn(text, textLines(text), 'none')).toEqual([]);
  });
});

test('textLines cuts long lines', () => {
  expect(textLines('a\n\nb')).toEqual([
    { start: 0, end: 1 },
    { start: 2, end: 2 },
    { start: 3, end: 4 },
  ]);
  expect(textLines('x'.repeat(1200)).map(({ end }) => end)).toEqual([500, 1000, 1200]);
});

test('hexLine has the offset, the bytes and the ASCII', () => {
  const bytes = new TextEncoder().encode('Posthorn: ü over sixteen');
  expect(hexLineCount(bytes)).toBe(2);
  expect(hexLine(bytes, 0)).toEqual({
    offset: '00000000',
    hex: '50 6f 73 74 68 6f 72 6e  3a 20 c3 bc 20 6f 76 65',
    ascii: 'Posthorn: .. ove',
  });
  expect(hexLine(bytes, 1)).toMatchObject({ offset: '00000010', ascii: 'r sixteen' });
});

test('formPairs decodes fields in their order', () => {
  expect(formPairs('b=1+2&a=%C3%BC&b=&c')).toEqual([
    ['b', '1 2'],
    ['a', 'ü'],
    ['b', ''],
    ['c', ''],
  ]);
});

test('indentedXml has one element a line', () => {
  expect(result(indentedXml('<?xml version="1.0"?><a><b x="1">text</b><c/><!-- n --><d><e></e></d></a>')).split('\n')).toEqual([
    '<?xml version="1.0"?>',
    '<a>',
    '  <b x="1">text</b>',
    '  <c/>',
    '  <!-- n -->',
    '  <d>',
    '    <e></e>',
    '  </d>',
    '</a>',
  ]);
});
