import { egressRules, type InstallationEgress } from '../../core/egress-policy.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import { type WarehousePlan, type WarehouseSources, warehousePlan } from '../targets/warehouse/warehouse-plan.ts';

export interface ArchiveTargetSources extends WarehouseSources {
  registry: RegistryReader;
  /** Egress rules of the installation; those of the organization are added. */
  allowed: InstallationEgress;
}

/** Where the archive of an organization is written to, or why it cannot be. Throws UNAVAILABLE without Redis. */
export async function archiveTarget(
  sources: ArchiveTargetSources,
  org: string,
  destinationId: string | null,
): Promise<Pick<WarehousePlan, 'store' | 'layout' | 'secrets' | 'dispatcher'> | string> {
  if (destinationId === null) return 'the destination of the archive is not there, or is no warehouse';
  const { registry, allowed } = sources;
  const [destination, organization] = await Promise.all([
    registry.getOf(org, 'destination', destinationId),
    registry.get('organization', org),
  ]);
  if (destination === null || destination.type === 'http') return 'the destination of the archive is not there, or is no warehouse';
  if (!destination.enabled) return 'the destination of the archive is disabled, or suspended by the plan';
  const plan = await warehousePlan(destination, { ...sources, egress: egressRules(allowed, organization) });
  if (plan === null) return 'a secret of the destination of the archive does not open';
  return 'refusal' in plan ? plan.refusal.message : plan;
}
