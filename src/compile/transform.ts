import { resourceId } from '../core/ids.ts';
import { recordLayoutVersion, type TransformRecord } from '../core/records.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import type { ContentOf } from '../resources/sharing.ts';
import { transform as definition } from '../resources/transform.ts';
import type { OrganizationFacts } from './organization.ts';

/** A Transform whose code parses; `content`: that code, its own or what another organization shares. */
export function compileTransform(
  { metadata }: PosthornObject<'Transform'>,
  content: ContentOf<'Transform'>,
  organization: OrganizationFacts,
): TransformRecord {
  return {
    v: recordLayoutVersion,
    id: resourceId(definition.idPrefix, metadata),
    org: organization.id,
    type: content.type,
    code: content.code,
    generation: metadata.generation,
  };
}
