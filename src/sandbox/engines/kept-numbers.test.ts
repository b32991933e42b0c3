import { describe, expect, test } from '@jest/globals';
import type { TransformEngine } from './engine.ts';
import { javascriptEngine } from './javascript.ts';
import { jsonataEngine } from './jsonata.ts';
import { liquidEngine } from './liquid.ts';

async function run(engine: TransformEngine, code: string, payload: string, event = '{"id":"evt_a"}') {
  const warnings: string[] = [];
  const output = await engine.run({ organization: 'org_a', code, event, payload, warn: (warning) => warnings.push(warning) });
  return { output, warnings };
}

const natives: [string, TransformEngine, string][] = [
  ['javascript', javascriptEngine, '(event) => event.payload'],
  ['jsonata', jsonataEngine, 'payload'],
];

describe.each(natives)('%s', (type, engine, code) => {
  test.each([
    '{"id":9007199254740993,"l":[19.90,{"n":-123456789012345678901234567890}]}',
    '{"a":1E400,"b":-1E400,"c":1e-400,"d":-1e-400}',
    '9007199254740993',
    '{"a":9007199254740993,"b":9007199254740993}',
    '{"a":"9007199254740993","b":0.1000000000000000055}',
  ])('hands %s on as it is', async (payload) => expect(await run(engine, code, payload)).toEqual({ output: payload, warnings: [] }));

  test('writes numbers that lose nothing as doubles', async () => {
    const { output, warnings } = await run(engine, code, '{"a":1.0,"b":1E3,"c":19.90,"d":19.9,"e":-0}');
    expect(JSON.parse(output ?? '')).toEqual({ a: 1, b: 1000, c: 19.9, d: 19.9, e: 0 });
    expect([output?.includes('19.90'), warnings]).toEqual([false, []]);
  });

  test('writes -0 as a zero, not as the text of a number that is too small for a double', async () => {
    const { output, warnings } = await run(engine, code, '{"a":-0,"b":1e-400}');
    expect(output).toMatch(/^\{"a":-?0,"b":1e-400\}$/);
    expect(warnings).toEqual([]);
  });

  test.each([
    ['{"a":9007199254740993,"b":9007199254740992}', '9007199254740993 and 9007199254740992'],
    ['{"a":0.1000000000000000055,"b":0.1}', '0.1000000000000000055 and 0.1'],
    ['{"a":1e-400,"b":0}', '1e-400 and 0'],
    ['{"a":1E400,"b":1E401}', '1E400 and 1E401'],
    ['{"a":123456789012345678901,"b":123456789012345678902}', '123456789012345678901 and 123456789012345678902'],
  ])('warns of %s, whose numbers it cannot distinguish', async (payload, told) => {
    const { warnings } = await run(engine, code, payload);
    expect(warnings).toEqual([`numbers of the event are the same to the transform and may have changed: ${told}`]);
    expect(await run(engine, '"none"', payload)).toEqual({ output: '"none"', warnings: [] });
  });

  test('has no numbers of a text that is no JSON', async () => {
    const read = type === 'jsonata' ? '$number($substringAfter(payload, " "))' : '(event) => Number(event.payload.slice(6))';
    expect(await run(engine, read, 'price 19.90')).toEqual({ output: '19.9', warnings: [] });
  });

  test('keeps the metadata of the event, too', async () => {
    const read = type === 'jsonata' ? 'metadata' : '(event) => event.metadata';
    expect((await run(engine, read, '{}', '{"id":"evt_a","metadata":{"m":7615917337495251231}}')).output).toBe('{"m":7615917337495251231}');
  });
});

describe('liquid', () => {
  const payload =
    '{"id":9007199254740993,"price":19.90,"whole":100.00,"at":1700000000.0,"big":1E400,"l":[1.0,9007199254740993,9007199254740993]}';

  test.each([
    ['{{ payload.id }} {{ payload.price }} {{ payload.whole }} {{ payload.big }}', '9007199254740993 19.90 100.00 1E400'],
    ['{{ payload }}', '[object Object]'],
    ['{{ payload | json }}', payload],
    ['{{ payload.l | uniq | join: "," }}', '1.0,9007199254740993'],
    ['{{ payload.price | plus: 1 }} {{ payload.whole | divided_by: 3 | floor }}', '20.9 33'],
    ['{{ payload.price | append: " EUR" }}', '19.90 EUR'],
    ['{{ payload.at | date: "%Y" }}', '2023'],
    [
      '{% if payload.price > 19 and payload.price < 20 and 19 < payload.price and payload.whole >= 100 and payload.whole <= 100 %}in{% endif %}',
      'in',
    ],
    ['{% if payload.whole == 100 %}equal{% endif %} {% if 100 == payload.whole %}equal{% endif %}', 'equal equal'],
    ['{% case payload.whole %}{% when 100 %}hundred{% endcase %}', 'hundred'],
    ['{% if payload.id > payload.price %}more{% endif %}', 'more'],
    ['{% for i in (1..payload.l[0]) %}{{ i }}{% endfor %}', '1'],
  ])('%s is %s', async (code, text) => expect(await run(liquidEngine, code, payload)).toEqual({ output: text, warnings: [] }));
});
