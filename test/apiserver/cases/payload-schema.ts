import { specCases, type ValidationCase } from './case.ts';
import { sharingCases } from './sharing.ts';

const { valid, invalid } = specCases('PayloadSchema', { jsonSchema: { type: 'object' } });

export const payloadSchemaCases: ValidationCase[] = [
  valid('the smallest one', {}),
  valid('an empty schema', { jsonSchema: {} }),
  valid('keywords that hold null, and unknown ones', {
    jsonSchema: { default: null, const: null, enum: [null, 1], 'x-note': { a: [null] }, properties: { a: { examples: [null] } } },
  }),
  valid('references and dollars', { jsonSchema: { $id: 'https://a.example/b', $defs: { a: {} }, $ref: '#/$defs/a' } }),
  invalid('a text', { jsonSchema: '{}' }, 'spec.jsonSchema'),
  invalid('a list', { jsonSchema: [] }, 'spec.jsonSchema'),
  invalid('a boolean', { jsonSchema: true }, 'spec.jsonSchema'),
  invalid('null', { jsonSchema: null }, 'spec.jsonSchema'),
  invalid('an unknown field', { version: 1 }, 'spec.version'),
  valid('a schema that is none, which the controller refuses', { jsonSchema: { type: 'objekt' } }),
  ...sharingCases('PayloadSchema', { jsonSchema: { type: 'object' } }, 'spec.jsonSchema'),
];
