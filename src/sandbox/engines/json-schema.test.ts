import { describe, expect, test } from '@jest/globals';
import { checkSchema, validate } from './json-schema.ts';

const drafts = [
  'https://json-schema.org/draft/2020-12/schema',
  'http://json-schema.org/draft-07/schema#',
  'http://json-schema.org/draft/2020-12/schema#',
  'https://json-schema.org/draft-07/schema',
];
const problems = (schema: object, payload: string) => validate([JSON.stringify(schema)], payload, 10)[0];

describe.each(drafts)('multipleOf in %s', ($schema) => {
  const price = { $schema, properties: { price: { type: 'number', multipleOf: 0.01 } } };

  test.each(['19.99', '143.48', '1.11', '2.22', '0.07', '4.35', '-4.35', '1999e-2', '5', '"no number"'])('0.01 takes %s', (text) => {
    checkSchema(JSON.stringify(price));
    const anyType = { $schema, properties: { price: { multipleOf: 0.01 } } };
    expect(problems(text.startsWith('"') ? anyType : price, `{"price":${text}}`)).toEqual([]);
  });

  test.each(['19.999', '0.005', '1e-9'])('0.01 does not take %s', (text) => {
    expect(problems(price, `{"price":${text}}`)).toEqual([{ path: '/price', message: 'must be multiple of 0.01' }]);
  });

  test.each([0, -0.01, '0.01'])('must be a number above 0, not %j', (multipleOf) => {
    expect(() => checkSchema(JSON.stringify({ $schema, multipleOf }))).toThrow('/multipleOf must be');
  });

  test('counts in lists, references and negations, too', () => {
    const schema = {
      $schema,
      definitions: { cents: { multipleOf: 0.01 } },
      items: { allOf: [{ $ref: '#/definitions/cents' }, { not: { multipleOf: 0.05 } }] },
    };
    expect(problems(schema, '[4.36, 19.99]')).toEqual([]);
    expect(problems(schema, '[4.35]')).toEqual([{ path: '/0', message: 'must NOT be valid' }]);
    expect(problems(schema, '[1.001]')).toEqual([{ path: '/0', message: 'must be multiple of 0.01' }]);
  });
});

describe('times', () => {
  const isValid = (format: string, text: string): boolean => problems({ format }, JSON.stringify(text))?.length === 0;
  const nines = '9'.repeat(15);

  test.each([
    ['date-time', `2026-01-31T23:59:59.${nines}Z`],
    ['date-time', `2026-01-31T23:59:59.${'9'.repeat(10_000)}+02:00`],
    ['date-time', '2026-01-31T12:00:00.1234567Z'],
    ['date-time', '2016-12-31T23:59:60Z'],
    ['time', `12:00:59.${nines}Z`],
    ['iso-date-time', `2026-01-31T23:59:59.${nines}`],
    ['iso-time', `23:59:59.${nines}`],
  ])('%s may be %s', (format, text) => expect(isValid(format, text)).toBe(true));

  test.each([
    ['date-time', `2026-01-31T23:59:61.${nines}Z`],
    ['date-time', `2026-01-31T12:00:60.${nines}Z`],
    ['date-time', `2026-01-31T12:00:59.${nines}`],
    ['date-time', `2026-01-31T12:00:59.${nines}xZ`],
    ['date-time', '2026-01-31T12:00:59.Z'],
    ['date-time', `2026-02-30T12:00:59.${nines}Z`],
    ['time', `24:00:00.${nines}Z`],
  ])('%s may not be %s', (format, text) => expect(isValid(format, text)).toBe(false));
});

describe.each(drafts)('values that are not allowed in %s', ($schema) => {
  test('the message names those that are, as many as are read at a glance', () => {
    expect(() => checkSchema(JSON.stringify({ $schema, type: 'text' }))).toThrow(
      '/type must be equal to one of the allowed values: "array", "boolean"',
    );
    const sizes = { $schema, enum: ['s', 'm', 7, null] };
    expect(problems(sizes, '"l"')).toEqual([{ path: '', message: 'must be equal to one of the allowed values: "s", "m", 7, null' }]);
    const many = { $schema, enum: Array.from({ length: 1000 }, (_, i) => `value ${i}`) };
    const [problem] = problems(many, '"l"') ?? [];
    expect(problem?.message).toMatch(/: "value 0", "value 1",.*, …$/);
    expect(problem?.message.length).toBeLessThan(400);
  });
});
