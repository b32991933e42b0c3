import { z } from 'zod';
import { namespaceObject, secretFields, secretObject } from './core-kinds.ts';
import { apiVersion } from './definition.ts';
import { type FieldNode, fieldTree } from './field-tree.ts';
import { type Kind, kinds } from './kinds.ts';
import { clusterMetadata, namespacedMetadata } from './object-metadata.ts';

/** The schema of a whole object of a kind but for its status, which may be anything there, and the shape of all of it. */
export interface ObjectSchema {
  schema: z.ZodType<Record<string, unknown>>;
  tree: FieldNode;
}

const schemas = new Map<Kind, ObjectSchema>();

export function objectSchema(kind: Kind): ObjectSchema {
  const known = schemas.get(kind);
  if (known !== undefined) return known;
  const made = makeSchema(kind);
  schemas.set(kind, made);
  return made;
}

function makeSchema(kind: Kind): ObjectSchema {
  switch (kind) {
    case 'Namespace':
      return { schema: namespaceObject, tree: fieldTree(namespaceObject) };
    case 'Secret':
      return { schema: secretObject, tree: fieldTree(secretFields) };
    default: {
      const { scope, spec, status } = kinds[kind];
      const fields = z.strictObject({
        apiVersion: z.literal(apiVersion),
        kind: z.literal(kind),
        metadata: scope === 'Cluster' ? clusterMetadata : namespacedMetadata,
        spec,
        status: status.optional(),
      });
      return { schema: fields.extend({ status: z.unknown().optional() }), tree: fieldTree(fields) };
    }
  }
}
