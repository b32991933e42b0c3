import { expect, test } from '@jest/globals';
import { type PayloadSchemaRecord, recordLayoutVersion } from '../core/records.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { compilePayloadSchema } from './payload-schema.ts';

const organization = { id: 'org_a', slug: 'a', namespace: 'a', plan: 'enterprise' as const, payloadLimitBytes: 1 };

function version(
  jsonSchema: string,
  published: PayloadSchemaRecord | null,
  status: PosthornObject<'PayloadSchema'>['status'] = {},
): number {
  const object: PosthornObject<'PayloadSchema'> = {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'PayloadSchema',
    metadata: {
      name: 'a',
      uid: 'b4f1c8f2-0f5e-4f0e-9a44-3f2f7c1d2e3a',
      resourceVersion: '1',
      generation: 4,
      creationTimestamp: '2026-01-31T12:00:00Z',
    },
    spec: { jsonSchema: JSON.parse(jsonSchema) },
    status,
  };
  return compilePayloadSchema(object, { organization, jsonSchema, published }).version;
}
const record = (jsonSchema: string, number: number): PayloadSchemaRecord => ({
  v: recordLayoutVersion,
  id: 'sch_a',
  org: 'org_a',
  jsonSchema,
  version: number,
  generation: 1,
});

test('the first version is 1', () => {
  expect(version('{"a":1}', null)).toBe(1);
});

test('an equal schema keeps its version, another one gets the next', () => {
  expect(version('{"a":1}', record('{"a":1}', 3))).toBe(3);
  expect(version('{"a":2}', record('{"a":1}', 3))).toBe(4);
});

test('the version continues from the status when Redis was emptied', () => {
  expect(version('{"a":1}', null, { version: 7, observedGeneration: 4 })).toBe(7);
  expect(version('{"a":1}', null, { version: 7, observedGeneration: 3 })).toBe(8);
});
