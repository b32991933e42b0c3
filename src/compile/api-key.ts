import { resourceId } from '../core/ids.ts';
import { type ApiKeyRecord, recordLayoutVersion, type Scope } from '../core/records.ts';
import { apiKey as definition } from '../resources/api-key.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { type Compiled, refuse } from './compiled.ts';
import type { OrganizationFacts } from './organization.ts';

const allScopes: Scope[] = ['read', 'write', 'delete'];

/** Refuses an expiry that is no time. An expired key keeps its record: the facade reports that it has expired. */
export function compileApiKey({ metadata, spec }: PosthornObject<'ApiKey'>, organization: OrganizationFacts): Compiled<ApiKeyRecord> {
  const expiresAtMs = spec.expiresAt === undefined ? null : Date.parse(spec.expiresAt);
  if (Number.isNaN(expiresAtMs)) return refuse('InvalidExpiry', 'spec.expiresAt is not an RFC 3339 time');
  return {
    record: {
      v: recordLayoutVersion,
      id: resourceId(definition.idPrefix, metadata),
      org: organization.id,
      orgSlug: organization.slug,
      namespace: organization.namespace,
      name: spec.name ?? metadata.name,
      sha256: spec.sha256,
      role: spec.role,
      scopes: [...(spec.scopes ?? allScopes)],
      expiresAtMs,
      ...(spec.createdBy?.sha256 !== undefined && { makerSha256: spec.createdBy.sha256 }),
      generation: metadata.generation,
    },
  };
}
