import { readdirSync, readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { posthornKinds } from '../../../src/resources/kinds.ts';
import type { ValidationCase } from './case.ts';

const directory = new URL('../../../config/samples/', import.meta.url);
/** Kinds of Kubernetes that a sample has beside ours. */
const foreign: ReadonlySet<string> = new Set(['ConfigMap', 'Deployment', 'Service']);
const manifest = z.looseObject({
  kind: z.enum([...posthornKinds, 'Namespace', 'Secret']),
  metadata: z.looseObject({ name: z.string() }),
});

/** Every manifest of config/samples of our kinds, Namespaces and Secrets, moved to the namespace of the table. */
export const sampleCases: ValidationCase[] = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) =>
    parseAllDocuments(readFileSync(new URL(file, directory), 'utf8')).flatMap((document): ValidationCase[] => {
      if (foreign.has(String(document.get('kind')))) return [];
      const { kind, ...object } = manifest.parse(document.toJS());
      const { namespace: _, ...metadata } = object.metadata;
      return [{ name: `the sample ${file}, ${metadata.name}`, kind, object: { ...object, metadata } }];
    }),
  );
