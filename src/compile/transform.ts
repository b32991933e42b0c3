import { resourceId } from '../core/ids.ts';
import { recordLayoutVersion, type TransformRecord } from '../core/records.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { transform as definition } from '../resources/transform.ts';
import type { OrganizationFacts } from './organization.ts';

/** A Transform whose code parses. */
export function compileTransform({ metadata, spec }: PosthornObject<'Transform'>, organization: OrganizationFacts): TransformRecord {
  return {
    v: recordLayoutVersion,
    id: resourceId(definition.idPrefix, metadata),
    org: organization.id,
    type: spec.type,
    code: spec.code,
    generation: metadata.generation,
  };
}
