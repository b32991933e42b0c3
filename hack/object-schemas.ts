// node hack/object-schemas.ts SOURCE DIRECTORY: writes a JSON schema for kubeconform, DIRECTORY/<kind>-<group>-<version>.json, of each
// kind that our chart makes and that SOURCE defines: the module of Kubernetes (by its OpenAPI documents), or a tree with
// CustomResourceDefinitions. Fields that a schema does not name are errors.
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { type Schema, strictSchema } from './lib/strict-schema.ts';

const documents = [
  'api__v1',
  'apis__apps__v1',
  'apis__batch__v1',
  'apis__autoscaling__v2',
  'apis__networking.k8s.io__v1',
  'apis__policy__v1',
  'apis__rbac.authorization.k8s.io__v1',
  'apis__apiextensions.k8s.io__v1',
];
const openApi = z.object({ components: z.object({ schemas: z.record(z.string(), z.record(z.string(), z.unknown())) }) });
const groupVersionKinds = z.array(z.object({ group: z.string(), version: z.string(), kind: z.string() })).length(1);
const definition = z.object({
  kind: z.literal('CustomResourceDefinition'),
  spec: z.object({
    group: z.string(),
    names: z.object({ kind: z.string() }),
    versions: z.array(z.object({ name: z.string(), schema: z.object({ openAPIV3Schema: z.record(z.string(), z.unknown()) }) })),
  }),
});

const schemas = z.record(z.string(), z.record(z.string(), z.unknown()));

const [source = '', directory = ''] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
const specifications = globSync('api/openapi-spec/v3/*_openapi.json', { cwd: source });
if (specifications.length > 0) for (const document of documents) writeBuiltIn(`api/openapi-spec/v3/${document}_openapi.json`);
else for (const file of globSync('**/*.yaml', { cwd: source }).sort()) writeCustom(file);

function writeBuiltIn(file: string): void {
  const known = openApi.parse(JSON.parse(readFileSync(join(source, file), 'utf8'))).components.schemas;
  for (const [name, schema] of Object.entries(known)) {
    const kinds = groupVersionKinds.safeParse(schema['x-kubernetes-group-version-kind']);
    if (!kinds.success || name.endsWith('List')) continue;
    for (const { group, version, kind } of kinds.data) {
      const definitions: Record<string, Schema> = {};
      collect(name, known, definitions);
      write({ group, version, kind }, { $ref: `#/definitions/${name}`, definitions });
    }
  }
}

/** Puts a schema and those that it refers to into `definitions`. */
function collect(name: string, known: Record<string, Schema>, definitions: Record<string, Schema>): void {
  const schema = known[name];
  if (schema === undefined || definitions[name] !== undefined) return;
  const strict = strictSchema(schema);
  definitions[name] = strict;
  for (const [, other = ''] of JSON.stringify(strict).matchAll(/"#\/definitions\/([^"]+)"/g)) collect(other, known, definitions);
}

function writeCustom(file: string): void {
  const text = readFileSync(join(source, file), 'utf8');
  if (!text.includes('kind: CustomResourceDefinition') || text.includes('{{')) return;
  for (const document of parseAllDocuments(text)) {
    const crd = definition.safeParse(document.toJS());
    if (!crd.success) continue;
    const { group, names, versions } = crd.data.spec;
    for (const { name, schema } of versions) {
      const { properties, ...rest } = strictSchema(schema.openAPIV3Schema);
      write(
        { group, version: name, kind: names.kind },
        { ...rest, properties: { ...schemas.parse(properties), metadata: { type: 'object' } } },
      );
    }
  }
}

/** `[group, version, kind]` as kubeconform names them. */
function write({ group, version, kind }: { group: string; version: string; kind: string }, schema: Schema): void {
  const suffix = group === '' ? version : `${group.split('.')[0]}-${version}`;
  writeFileSync(join(directory, `${kind.toLowerCase()}-${suffix}.json`), JSON.stringify(schema));
}
