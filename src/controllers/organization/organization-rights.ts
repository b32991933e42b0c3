import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Refusal } from '../../compile/compiled.ts';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import { RightsPending } from '../../core/rights-pending.ts';
import { apiVersion } from '../../resources/definition.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ClusterKind, ClusterObject } from '../../store/cluster-objects.ts';
import type { KubernetesObjects } from '../../store/kubernetes/kubernetes-objects.ts';
import type { ResourceStore } from '../../store/store.ts';
import { isOwned } from '../held-ids.ts';
import { organizationLabel } from './organization-namespace.ts';

export const roleBindingKind: ClusterKind = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', plural: 'rolebindings' };

/** An installation of Posthorn in a cluster: the chart names its ServiceAccounts and ClusterRoles for it. */
export interface Installation {
  name: string;
  namespace: string;
}

type Organization = PosthornObject<'Organization'>;

export interface OrganizationRightsOptions {
  objects: Pick<KubernetesObjects, 'get' | 'apply' | 'delete'>;
  store: Pick<ResourceStore, 'list'>;
  installation: Installation;
  clock: Clock;
}

/** `pending`: the right is not granted, or the API server does not apply it yet. It is not reported. */
export type RightsState = { state: 'granted' } | { state: 'pending' | 'refused'; unresolved: Refusal; requeueAfterMs: number };

const group = 'rbac.authorization.k8s.io';
const manager = 'posthorn-controller';
const components = ['api', 'controller'] as const;
/** For so long missing rights are not reported: a binding counts a moment after it is made. */
const pendingMs = 30_000;
const firstLookMs = 250;
const slowestLookMs = 30_000;

/** Names of the RoleBindings in the namespace of each organization, which are those of the ClusterRoles that they bind. */
export function bindingNames({ name }: Installation): string[] {
  return components.map((component) => `${name}-organization-${component}`);
}

/**
 * Rights of the api and the controller in the namespace of an organization: a RoleBinding each, to a ClusterRole of the installation. They go with
 * the organization.
 */
export class OrganizationRights {
  readonly #options: OrganizationRightsOptions;
  /** uids of organizations whose Secrets the controller could list. */
  readonly #granted = new Set<string>();
  readonly #missingSinceMs = new Map<string, number>();

  constructor(options: OrganizationRightsOptions) {
    this.#options = options;
  }

  /** Makes the bindings what they should be, and checks whether they count. Throws what is no refusal, such as CONFLICT and UNAVAILABLE. */
  async ensure(organization: Organization): Promise<RightsState> {
    const { uid } = organization.metadata;
    try {
      for (const component of components) if (await this.#bind(organization, component)) this.#granted.delete(uid);
      if (!this.#granted.has(uid)) await this.#options.store.list('Secret', { namespace: organization.spec.namespace, limit: 1 });
      this.#granted.add(uid);
      this.#missingSinceMs.delete(uid);
      return { state: 'granted' };
    } catch (error) {
      const isRefusal = error instanceof RightsPending || isPosthornError(error, 'FORBIDDEN', 'VALIDATION_FAILED', 'RESOURCE_NOT_FOUND');
      if (!isRefusal) throw error;
      return this.#missing(organization, error);
    }
  }

  /** Makes `ensure` check the rights again: something was refused. */
  doubt({ metadata }: Organization): void {
    this.#granted.delete(metadata.uid);
  }

  /** Removes the rights; those of another organization in the same namespace stay. */
  async remove(organization: Organization): Promise<void> {
    const { objects, installation } = this.#options;
    const { namespace } = organization.spec;
    for (const name of bindingNames(installation)) {
      const there = await objects.get(roleBindingKind, { namespace, name });
      if (there !== null && isOwned(organization, there)) await objects.delete(roleBindingKind, { namespace, name }, there.metadata.uid);
    }
    this.#granted.delete(organization.metadata.uid);
    this.#missingSinceMs.delete(organization.metadata.uid);
  }

  /** Whether something was changed, which counts a moment later. */
  async #bind(organization: Organization, component: (typeof components)[number]): Promise<boolean> {
    const { objects, installation } = this.#options;
    const name = `${installation.name}-organization-${component}`;
    const key = { namespace: organization.spec.namespace, name };
    const wanted = {
      roleRef: { apiGroup: group, kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name: `${installation.name}-${component}`, namespace: installation.namespace }],
    };
    let there = await objects.get(roleBindingKind, key);
    if (there !== null && there.metadata.deletionTimestamp === undefined && holds(organization, there, wanted)) return false;
    // The role of a binding cannot be changed.
    if (there !== null && !isDeepStrictEqual(binding.safeParse(there).data?.roleRef, wanted.roleRef)) {
      await objects.delete(roleBindingKind, key, there.metadata.uid);
      there = null;
    }
    const { name: owner, uid } = organization.metadata;
    const metadata = {
      ...key,
      labels: { [organizationLabel]: owner, 'app.kubernetes.io/managed-by': 'posthorn' },
      ownerReferences: [{ apiVersion, kind: 'Organization', name: owner, uid, controller: true }],
    };
    await objects.apply(roleBindingKind, { metadata, ...wanted }, { manager, uid: there?.metadata.uid ?? null });
    return true;
  }

  #missing({ metadata, spec }: Organization, error: Error): RightsState {
    const nowMs = this.#options.clock.now();
    const sinceMs = this.#missingSinceMs.get(metadata.uid) ?? nowMs;
    this.#granted.delete(metadata.uid);
    this.#missingSinceMs.set(metadata.uid, sinceMs);
    const forMs = nowMs - sinceMs;
    const cause = error instanceof RightsPending && error.cause instanceof Error ? error.cause.message : error.message;
    const message = `access to Secrets in the namespace ${spec.namespace} cannot be granted or is not effective: ${cause}`;
    return {
      state: forMs < pendingMs ? 'pending' : 'refused',
      unresolved: { reason: 'RightsNotGranted', message },
      // As long again as it has taken until now.
      requeueAfterMs: Math.min(slowestLookMs, Math.max(firstLookMs, forMs)) * (0.8 + 0.4 * Math.random()),
    };
  }
}

const subject = z.looseObject({ kind: z.string(), name: z.string(), namespace: z.string().exactOptional() });
const roleRef = z.looseObject({ apiGroup: z.string(), kind: z.string(), name: z.string() });
const binding = z.looseObject({ roleRef, subjects: z.array(subject).default([]) });

function holds(organization: Organization, there: ClusterObject, wanted: { roleRef: object; subjects: object[] }): boolean {
  const found = binding.safeParse(there).data;
  return (
    isOwned(organization, there) &&
    there.metadata.labels?.[organizationLabel] === organization.metadata.name &&
    isDeepStrictEqual(found?.roleRef, wanted.roleRef) &&
    isDeepStrictEqual(found?.subjects, wanted.subjects)
  );
}
