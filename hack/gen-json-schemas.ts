// Writes config/schemas/: a JSON schema of each kind for kubeconform, and one of all kinds for editors. With --check it only lists what differs, and
// fails if anything does.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { group, version } from '../src/resources/definition.ts';
import { type PosthornKind, posthornKinds } from '../src/resources/kinds.ts';
import { kindSchema } from './lib/kind-schema.ts';
import type { Schema } from './lib/strict-schema.ts';

const directory = new URL(`../config/schemas/${group}/`, import.meta.url);
const dialect = 'http://json-schema.org/draft-07/schema#';
const described = z.looseObject({ properties: z.record(z.string(), z.record(z.string(), z.unknown())) });

const fileOf = (kind: PosthornKind): string => `${kind.toLowerCase()}_${version}.json`;

function schemaOf(kind: PosthornKind): Schema {
  const { properties, ...rest } = described.parse(kindSchema(kind));
  const { description, ...metadata } = { description: 'Name, namespace, labels and annotations.', type: 'object' };
  return {
    $schema: dialect,
    ...rest,
    required: ['apiVersion', 'kind', 'metadata', 'spec'],
    properties: {
      ...properties,
      apiVersion: { ...properties['apiVersion'], const: `${group}/${version}` },
      kind: { ...properties['kind'], const: kind },
      metadata: { description, ...metadata },
    },
  };
}

/** The schema of the kind that the document names. */
const anyKind: Schema = { $schema: dialect, oneOf: posthornKinds.map((kind) => ({ $ref: fileOf(kind) })) };

const textOf = (schema: Schema): string => `${JSON.stringify(schema, null, 2)}\n`;
const wanted = new Map([
  ...posthornKinds.map((kind): [string, string] => [fileOf(kind), textOf(schemaOf(kind))]),
  ['all.json', textOf(anyKind)],
]);
mkdirSync(directory, { recursive: true });
const present = readdirSync(directory);
const stale = present.filter((file) => !wanted.has(file));
const changed = [...wanted].filter(([file, text]) => !present.includes(file) || readFileSync(new URL(file, directory), 'utf8') !== text);

if (process.argv.includes('--check')) {
  for (const file of [...stale, ...changed.map(([name]) => name)])
    console.error(`config/schemas/${group}/${file} differs from src/resources: run node hack/gen-json-schemas.ts`);
  if (stale.length + changed.length > 0) process.exitCode = 1;
} else {
  for (const file of stale) rmSync(new URL(file, directory));
  for (const [file, text] of changed) writeFileSync(new URL(file, directory), text);
  console.log(`config/schemas/: ${changed.length} written, ${stale.length} removed, ${wanted.size - changed.length} as they were`);
}
