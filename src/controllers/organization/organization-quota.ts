import { z } from 'zod';
import type { Refusal } from '../../compile/compiled.ts';
import { objectsPerKind } from '../../compile/organization.ts';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import { apiVersion } from '../../resources/definition.ts';
import { configurationKinds, kinds, type PosthornObject } from '../../resources/kinds.ts';
import type { ClusterKind, ClusterObject } from '../../store/cluster-objects.ts';
import type { KubernetesObjects } from '../../store/kubernetes/kubernetes-objects.ts';
import { isOwned } from '../held-ids.ts';
import { organizationLabel } from './organization-namespace.ts';

export const quotaKind: ClusterKind = { apiVersion: 'v1', kind: 'ResourceQuota', plural: 'resourcequotas' };

const quotaName = 'posthorn';
const manager = 'posthorn-controller';
/** No event reports granted rights, or a deleted foreign quota. */
const lookAgainMs = 60_000;
const group = apiVersion.split('/')[0];
/** What is counted, as a ResourceQuota calls it. */
const counted = configurationKinds
  .filter((kind) => kinds[kind].scope === 'Namespaced')
  .map((kind) => `count/${kinds[kind].plural}.${group}`);

type Organization = PosthornObject<'Organization'>;

export interface OrganizationQuotasOptions {
  objects: Pick<KubernetesObjects, 'get' | 'apply' | 'delete'>;
  clock: Clock;
  /** In how many milliseconds the controller manager of the cluster counts every kind; before that a quota refuses what is not counted. */
  countedAfterMs: number;
}

export interface QuotaState {
  /** Why it is not what it should be. */
  unresolved?: Refusal;
  /** When to look again; absent: when something changes. */
  requeueAfterMs?: number;
}

/**
 * The ResourceQuota of an organization: how many resources of each kind its namespace may have, from all makers. The garbage collector
 * takes it with the organization.
 */
export class OrganizationQuotas {
  readonly #objects: OrganizationQuotasOptions['objects'];
  readonly #clock: Clock;
  readonly #countedFromMs: number;

  constructor({ objects, clock, countedAfterMs }: OrganizationQuotasOptions) {
    this.#objects = objects;
    this.#clock = clock;
    this.#countedFromMs = clock.now() + countedAfterMs;
  }

  /** Sets it to plan and limits. One of that name that is not the organization's is left alone. */
  async ensure(organization: Organization): Promise<QuotaState> {
    try {
      return await this.#ensure(organization);
    } catch (error) {
      if (!isPosthornError(error, 'FORBIDDEN')) throw error;
      const message = `the ResourceQuota ${quotaName} cannot be applied: ${error.message}`;
      return { unresolved: { reason: 'QuotaForbidden', message }, requeueAfterMs: lookAgainMs };
    }
  }

  async #ensure(organization: Organization): Promise<QuotaState> {
    const most = objectsPerKind(organization.spec);
    const there = await this.#objects.get(quotaKind, keyOf(organization));
    if (there !== null && !isOwned(organization, there)) {
      if (most === null) return {};
      const message = `the ResourceQuota ${quotaName} in ${organization.spec.namespace} has another owner; rename it`;
      return { unresolved: { reason: 'QuotaNotOwned', message }, requeueAfterMs: lookAgainMs };
    }
    if (most === null) {
      if (there !== null) await this.#objects.delete(quotaKind, keyOf(organization), there.metadata.uid);
      return {};
    }
    const hard = Object.fromEntries(counted.map((name) => [name, quantity(most)]));
    if (there !== null && holds(there, hard)) return {};
    const requeueAfterMs = this.#countedFromMs - this.#clock.now();
    if (requeueAfterMs > 0 && (there === null || counted.some((name) => !isCounted(there, name)))) return { requeueAfterMs };
    const { name, uid } = organization.metadata;
    const metadata = {
      ...keyOf(organization),
      labels: { [organizationLabel]: name },
      ownerReferences: [{ apiVersion, kind: 'Organization', name, uid, controller: true }],
    };
    await this.#objects.apply(quotaKind, { metadata, spec: { hard } }, { manager, uid: there?.metadata.uid ?? null });
    return {};
  }
}

/** A count as Kubernetes shows it: 1k for 1000. */
function quantity(count: number): string {
  if (count % 1_000_000 === 0) return `${count / 1_000_000}M`;
  return count % 1000 === 0 ? `${count / 1000}k` : String(count);
}

function keyOf({ spec }: Organization): { namespace: string; name: string } {
  return { namespace: spec.namespace, name: quotaName };
}

const quotaSpec = z.object({ hard: z.record(z.string(), z.string()) });
const quotaStatus = z.object({ used: z.record(z.string(), z.string()) });

function holds({ metadata, spec }: ClusterObject, hard: Record<string, string>): boolean {
  const there = quotaSpec.safeParse(spec).data?.hard ?? {};
  return metadata.labels?.[organizationLabel] !== undefined && Object.entries(hard).every(([name, most]) => there[name] === most);
}

function isCounted({ status }: ClusterObject, name: string): boolean {
  return quotaStatus.safeParse(status).data?.used[name] !== undefined;
}
