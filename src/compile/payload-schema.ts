import { resourceId } from '../core/ids.ts';
import { type PayloadSchemaRecord, recordLayoutVersion } from '../core/records.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { payloadSchema as definition } from '../resources/payload-schema.ts';
import type { OrganizationFacts } from './organization.ts';

export interface PayloadSchemaInputs {
  organization: OrganizationFacts;
  /** JSON text of the schema, which compiles. */
  jsonSchema: string;
  /** The record in force now. */
  published: PayloadSchemaRecord | null;
}

/** A PayloadSchema that compiles, with the number of its version: one more whenever the schema is another. */
export function compilePayloadSchema(object: PosthornObject<'PayloadSchema'>, inputs: PayloadSchemaInputs): PayloadSchemaRecord {
  const { metadata } = object;
  return {
    v: recordLayoutVersion,
    id: resourceId(definition.idPrefix, metadata),
    org: inputs.organization.id,
    jsonSchema: inputs.jsonSchema,
    version: versionOf(object, inputs),
    generation: metadata.generation,
  };
}

function versionOf({ metadata, status }: PosthornObject<'PayloadSchema'>, { jsonSchema, published }: PayloadSchemaInputs): number {
  if (published?.jsonSchema === jsonSchema) return published.version;
  const known = Math.max(published?.version ?? 0, status?.version ?? 0);
  // An emptied Redis: the status is of this very schema.
  const isKnown = published === null && known > 0 && status?.observedGeneration === metadata.generation;
  return isKnown ? known : known + 1;
}
