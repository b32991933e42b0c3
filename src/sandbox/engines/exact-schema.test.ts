import { describe, expect, test } from '@jest/globals';
import { checkSchema, validate } from './json-schema.ts';

const drafts = ['https://json-schema.org/draft/2020-12/schema', 'http://json-schema.org/draft-07/schema#'];

describe.each(drafts)('numbers that are no doubles in %s', (draft) => {
  const messages = (schema: string, payload: string): string[] => {
    const text = schema.replace('{', `{"$schema":"${draft}",`);
    checkSchema(text);
    return (validate([text], payload, 10)[0] ?? []).map(({ path, message }) => `${path} ${message}`);
  };

  test.each([
    ['{"const":9007199254740993}', '9007199254740993'],
    ['{"const":9007199254740993}', '9007199254740993.0'],
    ['{"const":9007199254740992}', '9007199254740992'],
    ['{"const":{"a":[9007199254740993]}}', '{"a":[9007199254740993]}'],
    ['{"enum":[5,9007199254740993]}', '9007199254740993'],
    ['{"enum":[[9007199254740993,1]]}', '[9007199254740993,1]'],
    ['{"maximum":9007199254740993}', '9007199254740993'],
    ['{"exclusiveMinimum":9007199254740992}', '9007199254740993'],
    ['{"maximum":1E401}', '1E400'],
    ['{"type":"integer"}', '123456789012345678901234567890'],
    ['{"type":"integer"}', '1E400'],
    ['{"type":"integer"}', '9007199254740993.0'],
    ['{"type":"number"}', '9007199254740993.5'],
    ['{"multipleOf":3}', '9007199254740993'],
    ['{"multipleOf":0.01}', '90071992547409931.99'],
    ['{"multipleOf":9007199254740993}', '18014398509481986'],
    ['{"multipleOf":0.1}', '1E400'],
    ['{"uniqueItems":true}', '[9007199254740993,9007199254740992,{"a":9007199254740993},{"a":9007199254740992}]'],
    ['{"properties":{"a":{"anyOf":[{"const":9007199254740993},{"type":"string"}]}}}', '{"a":9007199254740993}'],
    ['{"propertyNames":{"enum":["a"]}}', '{"a":9007199254740993}'],
    ['{"maxLength":3}', '9007199254740993'],
  ])('%s takes %s', (schema, payload) => expect(messages(schema, payload)).toEqual([]));

  test.each([
    ['{"const":9007199254740993}', '9007199254740992', ' must be equal to constant'],
    ['{"const":9007199254740992}', '9007199254740993', ' must be equal to constant'],
    ['{"const":{"a":[9007199254740993]}}', '{"a":[9007199254740992]}', ' must be equal to constant'],
    [
      '{"properties":{"a":{"enum":[9007199254740993,"9007199254740992"]}}}',
      '{"a":9007199254740992}',
      '/a must be equal to one of the allowed values: 9007199254740993, "9007199254740992"',
    ],
    ['{"items":{"maximum":9007199254740992}}', '[1,9007199254740993]', '/1 must be <= 9007199254740992'],
    ['{"minimum":9007199254740993}', '9007199254740992', ' must be >= 9007199254740993'],
    ['{"exclusiveMaximum":9007199254740993}', '9007199254740993', ' must be < 9007199254740993'],
    ['{"maximum":1E400}', '1E401', ' must be <= 1E400'],
    ['{"maximum":10}', '1E400', ' must be <= 10'],
    ['{"type":"integer"}', '9007199254740993.5', ' must be integer'],
    ['{"type":"integer"}', '1e-400', ' must be integer'],
    ['{"multipleOf":3}', '9007199254740994', null],
    ['{"multipleOf":2}', '9007199254740993', ' must be multiple of 2'],
    ['{"multipleOf":0.01}', '90071992547409931.999', ' must be multiple of 0.01'],
    ['{"uniqueItems":true}', '[9007199254740993,9007199254740993.0]', ' must NOT have duplicate items'],
    [
      '{"additionalProperties":{"$ref":"#/definitions/a"},"definitions":{"a":{"maximum":9007199254740992}}}',
      '{"x":9007199254740993}',
      '/x must be <= 9007199254740992',
    ],
  ])('%s does not take %s', (schema, payload, message) => expect(messages(schema, payload)).toEqual([message ?? ' must be multiple of 3']));
});
