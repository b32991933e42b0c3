import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readFieldMapping } from '../../src/core/field-mapping.ts';
import { payloadText } from '../../src/core/payload-text.ts';
import { payloadJson } from '../../src/core/payload-value.ts';
import { readJson } from '../../src/core/read-json.ts';
import { javascriptEngine } from '../../src/sandbox/engines/javascript.ts';
import { jsonataEngine } from '../../src/sandbox/engines/jsonata.ts';
import { liquidEngine } from '../../src/sandbox/engines/liquid.ts';
import { anyJson, brokenJson } from '../support/json-texts.ts';
import { assertProperty } from '../support/property.ts';
import { isJsonToOrjson, parsedByPython, pythonWithOrjson } from '../support/python-json.ts';

const engines = [
  ['javascript', javascriptEngine, '(event) => ({ kept: event.payload })'],
  ['jsonata', jsonataEngine, '{"kept": payload}'],
  ['liquid', liquidEngine, '{"kept": {{ payload | json }}}'],
] as const;

/** The result of a payload on each of its ways, as JSON text. */
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
    // Numbers that share a double may have changed, and a warning reports it.
    if (warnings.length === 0 && output !== null) ways[engine] = output.replace(/^\s*\{\s*"kept"\s*:/, '').replace(/\}\s*$/, '');
  }
  // As bytes: a lone surrogate is none.
  return Object.fromEntries(Object.entries(ways).map(([way, text]) => [way, Buffer.from(text).toString()]));
}

test('JSON of every form says in files, columns and what transforms hand on what it says to Python', async () => {
  const property = fc.asyncProperty(fc.array(anyJson, { minLength: 20, maxLength: 60 }), async (payloads) => {
    const cases: [Buffer, Record<string, string>][] = [];
    for (const payload of payloads) cases.push([payload, await waysOf(payload)]);
    const judged = parsedByPython(cases);
    const wrong = judged.flatMap((names, i) => (names === null || names.length > 0 ? [[names, String(payloads[i]), cases[i]?.[1]]] : []));
    expect(wrong).toEqual([]);
  });
  await assertProperty(property, 20, 20_000);
});

test('what is no JSON to Python is none to filters and files, and the other way round', () => {
  const property = fc.property(fc.array(fc.oneof(brokenJson, anyJson), { minLength: 100, maxLength: 300 }), (payloads) => {
    const judged = parsedByPython(payloads.map((payload) => [payload, {}]));
    const differing = payloads.filter((payload, i) => (readJson(payloadText(payload)) === undefined) !== (judged[i] === null));
    expect(differing.map(String)).toEqual([]);
  });
  assertProperty(property, 20, 15_000);
});

const python = pythonWithOrjson();
const testWithOrjson = python === null ? test.skip : test;

/** What orjson may refuse and JSON has: halves of surrogate pairs, and numbers beyond all doubles. */
const beyondOrjson = /\\ud[89a-f]|e\+?\d{3}/i;

testWithOrjson('what is no JSON to orjson is none to filters and files, and the other way round', () => {
  const property = fc.property(fc.array(fc.oneof(brokenJson, anyJson), { minLength: 100, maxLength: 300 }), (payloads) => {
    const judged = isJsonToOrjson(python ?? '', payloads);
    const differing = payloads.filter(
      (payload, i) => (readJson(payloadText(payload)) !== undefined) !== judged[i] && !beyondOrjson.test(String(payload)),
    );
    expect(differing.map(String)).toEqual([]);
  });
  assertProperty(property, 20, 15_000);
});
