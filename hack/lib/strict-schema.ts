import { z } from 'zod';

/** A JSON schema. */
export type Schema = { [key: string]: unknown };

const oneSchema = z.record(z.string(), z.unknown());
const schemas = z.record(z.string(), oneSchema);
const schemaList = z.array(oneSchema);
const unused = ['format', 'nullable'];
const texts = ['description', 'default'];

/**
 * A schema of Kubernetes as JSON Schema: with `nullable` and `int-or-string` in its words, and without unknown fields.
 * `isDescribed`: with descriptions and defaults, for editors.
 */
export function strictSchema(schema: Schema, isDescribed = false): Schema {
  const result: Schema = {};
  const strict = (each: Schema): Schema => strictSchema(each, isDescribed);
  for (const [key, value] of Object.entries(schema)) {
    if (key.startsWith('x-kubernetes-') || unused.includes(key) || (!isDescribed && texts.includes(key))) continue;
    if (key === '$ref') result[key] = String(value).replace('#/components/schemas/', '#/definitions/');
    else if (key === 'properties')
      result[key] = Object.fromEntries(Object.entries(schemas.parse(value)).map(([name, each]) => [name, strict(each)]));
    else if (key === 'allOf' && schema['properties'] === undefined) result[key] = schemaList.parse(value).map(strict);
    else if (key === 'items' || key === 'additionalProperties')
      result[key] = typeof value === 'boolean' ? value : strict(oneSchema.parse(value));
    else result[key] = value;
  }
  if (schema['x-kubernetes-int-or-string'] === true || schema['format'] === 'int-or-string') {
    delete result['type'];
    result['anyOf'] = [{ type: 'integer' }, { type: 'string' }];
  }
  if (result['properties'] !== undefined && schema['x-kubernetes-preserve-unknown-fields'] !== true) result['additionalProperties'] = false;
  return schema['nullable'] === true ? { anyOf: [result, { type: 'null' }] } : result;
}
