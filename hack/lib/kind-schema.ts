import { z } from 'zod';
import { crdFor } from '../../src/resources/custom-resource-definitions.ts';
import type { PosthornKind } from '../../src/resources/kinds.ts';
import { type Schema, strictSchema } from './strict-schema.ts';

const definition = z.object({
  versions: z.tuple([z.object({ schema: z.object({ openAPIV3Schema: z.record(z.string(), z.unknown()) }) })]),
});

/** The JSON schema of a kind: types and bounds of its CustomResourceDefinition. Fields that it does not name are errors. */
export function kindSchema(kind: PosthornKind): Schema {
  const [{ schema }] = definition.parse(crdFor(kind).spec).versions;
  return strictSchema(schema.openAPIV3Schema, true);
}
