import { resourceId } from '../core/ids.ts';
import { type OrganizationRecord, recordLayoutVersion } from '../core/records.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { organization as definition } from '../resources/organization.ts';
import { planMonthlyMessages, planPayloadLimitBytes } from './plan.ts';

/** What the resources of an organization take from it. */
export type OrganizationFacts = Pick<OrganizationRecord, 'id' | 'slug' | 'namespace' | 'plan' | 'payloadLimitBytes' | 'monthlyMessages'>;

export function organizationFacts({ metadata, spec }: PosthornObject<'Organization'>): OrganizationFacts {
  const monthlyMessages = spec.limits?.monthlyMessages ?? planMonthlyMessages(spec.plan);
  return {
    id: resourceId(definition.idPrefix, metadata),
    slug: metadata.name,
    namespace: spec.namespace,
    plan: spec.plan,
    payloadLimitBytes: spec.limits?.payloadBytes ?? planPayloadLimitBytes(spec.plan),
    ...(monthlyMessages !== null && { monthlyMessages }),
  };
}

/** Never refused: what can be wrong with an Organization by itself, its schema refuses. */
export function compileOrganization(object: PosthornObject<'Organization'>): OrganizationRecord {
  const { allowedCidrs = [], allowedHosts = [] } = object.spec.egress ?? {};
  return {
    v: recordLayoutVersion,
    ...organizationFacts(object),
    egress: { allowedCidrs: [...allowedCidrs], allowedHosts: allowedHosts.map((host) => host.toLowerCase()) },
    generation: object.metadata.generation,
  };
}
