import { resourceId } from '../core/ids.ts';
import { wholePayloadBytes } from '../core/payload-sizes.ts';
import { type OrganizationRecord, recordLayoutVersion } from '../core/records.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { organization as definition } from '../resources/organization.ts';
import { planMonthlyMessages, planObjectsPerKind, planPayloadLimitBytes } from './plan-limits.ts';

/** What the resources of an organization take from it. */
export type OrganizationFacts = Pick<
  OrganizationRecord,
  'id' | 'slug' | 'namespace' | 'plan' | 'payloadLimitBytes' | 'largePayloadLimitBytes' | 'monthlyMessages'
>;

export function organizationFacts({ metadata, spec }: PosthornObject<'Organization'>): OrganizationFacts {
  const payloadBytes = spec.limits?.payloadBytes ?? planPayloadLimitBytes(spec.plan);
  const monthlyMessages = spec.limits?.monthlyMessages ?? planMonthlyMessages(spec.plan);
  return {
    id: resourceId(definition.idPrefix, metadata),
    slug: metadata.name,
    namespace: spec.namespace,
    plan: spec.plan,
    payloadLimitBytes: Math.min(payloadBytes, wholePayloadBytes),
    ...(payloadBytes > wholePayloadBytes && { largePayloadLimitBytes: payloadBytes }),
    ...(monthlyMessages !== null && { monthlyMessages }),
  };
}

/** Resources of each kind that the organization may have in its namespace; null: any number. */
export function objectsPerKind({ limits, plan }: PosthornObject<'Organization'>['spec']): number | null {
  return limits?.objectsPerKind ?? planObjectsPerKind(plan);
}

/**
 * Never refused: what can be wrong with an Organization by itself, its schema refuses. `archiveDestinationId`: of the warehouse that
 * `spec.archive` names; null when it is not there, or is none. `deliveryPool`: whose workers serve it; null: those of the default one.
 */
export function compileOrganization(
  object: PosthornObject<'Organization'>,
  archiveDestinationId: string | null = null,
  deliveryPool: string | null = null,
): OrganizationRecord {
  const { allowedCidrs = [], allowedHosts = [] } = object.spec.egress ?? {};
  const maxObjects = objectsPerKind(object.spec);
  return {
    v: recordLayoutVersion,
    ...organizationFacts(object),
    ...(maxObjects !== null && { objectsPerKind: maxObjects }),
    egress: { allowedCidrs: [...allowedCidrs], allowedHosts: allowedHosts.map((host) => host.toLowerCase()) },
    ...(object.spec.archive !== undefined && { archive: { destinationId: archiveDestinationId } }),
    ...(deliveryPool !== null && { deliveryPool }),
    ...(object.spec.deletionPolicy === 'Delete' && { deletionPolicy: 'Delete' }),
    generation: object.metadata.generation,
  };
}
