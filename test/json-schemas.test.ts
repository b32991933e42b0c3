import { globSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { parseAllDocuments } from 'yaml';
import { posthornKinds } from '../src/resources/kinds.ts';

const root = new URL('../', import.meta.url).pathname;
const directory = `${root}config/schemas/posthorn.dev/`;
const ajv = new Ajv({ strict: false, allErrors: true });
for (const file of readdirSync(directory)) ajv.addSchema(JSON.parse(readFileSync(directory + file, 'utf8')), file);

const samples = globSync('config/samples/**/*.yaml', { cwd: root })
  .flatMap((file) => parseAllDocuments(readFileSync(root + file, 'utf8')).map((document): unknown => document.toJS()))
  .filter((document): document is Record<string, unknown> => String(Object(document)['apiVersion']).startsWith('posthorn.dev/'));
const errorsOf = (schema: string, document: unknown): unknown => (ajv.validate(schema, document) === true ? null : ajv.errors);

test('There is a schema of each kind, in the layout of kubeconform', () => {
  expect(readdirSync(directory).sort()).toEqual([...posthornKinds.map((kind) => `${kind.toLowerCase()}_v1alpha1.json`), 'all.json'].sort());
});

test.each(samples.map((sample) => [String(sample['kind']), sample] as const))(
  'A sample of %s fits the schema of its kind and that of all kinds',
  (kind, sample) => {
    expect([errorsOf(`${kind.toLowerCase()}_v1alpha1.json`, sample), errorsOf('all.json', sample)]).toEqual([null, null]);
  },
);

const head = { apiVersion: 'posthorn.dev/v1alpha1', metadata: { name: 'a' } };
test.each<[string, object]>([
  ['an unknown field', { ...head, kind: 'Source', spec: { colour: 'red' } }],
  ['a number out of its range', { ...head, kind: 'Destination', spec: { http: { url: 'https://a.example/', timeoutMs: 1 } } }],
  ['a type that is wrong', { ...head, kind: 'Route', spec: { sourceRef: 'orders', destinationRefs: [] } }],
  ['no spec', { ...head, kind: 'Route' }],
  ['a kind that there is not', { ...head, kind: 'Rout', spec: {} }],
  ['a version that there is not', { ...head, apiVersion: 'posthorn.dev/v9', kind: 'Source', spec: {} }],
])('The schema of all kinds refuses %s', (_what, document) => {
  expect(errorsOf('all.json', document)).not.toBeNull();
});
