import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { z } from 'zod';
import { crdFor, crdYaml, maxSelectableFields, selectableFieldsOf } from './custom-resource-definitions.ts';
import { isRecord } from './field-tree.ts';
import { kinds, type PosthornKind, posthornKinds } from './kinds.ts';

interface Field {
  path: string;
  schema: Record<string, unknown>;
}

/** Every field of a structural schema, not those inside of `anyOf`, `allOf` and `not`. */
function fieldsOf(schema: unknown, path: string): Field[] {
  if (!isRecord(schema)) return [];
  const properties = isRecord(schema['properties']) ? Object.entries(schema['properties']) : [];
  return [
    { path, schema },
    ...properties.flatMap(([name, field]) => fieldsOf(field, `${path}.${name}`)),
    ...fieldsOf(schema['items'], `${path}[]`),
  ];
}

const crdSpec = z.looseObject({
  versions: z.tuple([
    z.looseObject({ schema: z.looseObject({ openAPIV3Schema: z.looseObject({ properties: z.record(z.string(), z.unknown()) }) }) }),
  ]),
});

function configurationFields(kind: PosthornKind): Field[] {
  const { properties } = crdSpec.parse(crdFor(kind).spec).versions[0].schema.openAPIV3Schema;
  return ['spec', 'status'].flatMap((part) => fieldsOf(properties[part], part));
}

describe.each(posthornKinds)('the CRD of kind %s', (kind) => {
  test('bounds every text, so that the cost of rules can be estimated', () => {
    const unbounded = configurationFields(kind).filter(
      ({ schema }) => schema['type'] === 'string' && !('maxLength' in schema) && !('enum' in schema),
    );
    expect(unbounded.map(({ path }) => path)).toEqual([]);
  });

  test('says in words what a text must be: the API server answers a pattern with the pattern', () => {
    const wordless = configurationFields(kind).filter(
      ({ path, schema }) =>
        path.startsWith('spec') && 'pattern' in schema && !('format' in schema || 'x-kubernetes-int-or-string' in schema),
    );
    expect(wordless.map(({ path }) => path)).toEqual([]);
  });

  test('bounds every list and says how it merges', () => {
    const loose = configurationFields(kind).filter(
      ({ schema }) => schema['type'] === 'array' && !('maxItems' in schema && 'x-kubernetes-list-type' in schema),
    );
    expect(loose.map(({ path }) => path)).toEqual([]);
  });

  test('describes every field', () => {
    const silent = configurationFields(kind).filter(
      ({ path, schema }) => !path.endsWith('[]') && typeof schema['description'] !== 'string',
    );
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  test('shows an age only of a time in the past: kubectl prints a date in the future as <invalid>', () => {
    const ages = kinds[kind].printerColumns.filter(({ type }) => type === 'date').map(({ jsonPath }) => jsonPath);
    expect(ages.filter((path) => path.startsWith('.spec.'))).toEqual([]);
  });

  test('shows whether it is enabled, where its spec has the switch', () => {
    const { spec, printerColumns } = kinds[kind];
    const columns = printerColumns.filter(({ jsonPath }) => jsonPath === '.spec.enabled').map(({ name }) => name);
    expect(columns).toEqual('enabled' in spec.shape ? ['Enabled'] : []);
  });

  test('is selected by no more fields than the API server takes', () => {
    expect(selectableFieldsOf(kind).length).toBeLessThanOrEqual(maxSelectableFields);
  });

  test('reads the same in YAML 1.1, which kubectl speaks, and YAML 1.2', () => {
    const text = crdYaml(crdFor(kind));
    expect(parse(text, { version: '1.1' })).toEqual(parse(text));
    expect(parse(text)).toEqual(crdFor(kind));
  });
});
