import { isPosthornError } from '../../core/errors.ts';
import { RightsPending } from '../../core/rights-pending.ts';
import { apiVersion } from '../../resources/definition.ts';
import { configurationKinds, definitionOf } from '../../resources/kinds.ts';
import type { ObjectMeta } from '../../resources/metadata.ts';
import type { ClusterKind } from '../../store/cluster-objects.ts';
import type { KubernetesObjects } from '../../store/kubernetes/kubernetes-objects.ts';
import type { ResourceStore } from '../../store/store.ts';

/** Kinds by which a namespace is in use; the chart grants the right to list them where organizations live. */
const kinds: readonly ClusterKind[] = [
  { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' },
  { apiVersion: 'v1', kind: 'PersistentVolumeClaim', plural: 'persistentvolumeclaims' },
  { apiVersion: 'v1', kind: 'Pod', plural: 'pods' },
  { apiVersion: 'v1', kind: 'Service', plural: 'services' },
  { apiVersion: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts' },
  { apiVersion: 'apps/v1', kind: 'DaemonSet', plural: 'daemonsets' },
  { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments' },
  { apiVersion: 'apps/v1', kind: 'StatefulSet', plural: 'statefulsets' },
  { apiVersion: 'batch/v1', kind: 'CronJob', plural: 'cronjobs' },
  { apiVersion: 'batch/v1', kind: 'Job', plural: 'jobs' },
  { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', plural: 'ingresses' },
];

/** What Kubernetes, or OpenShift, puts into every namespace. */
const inEveryNamespace: ReadonlySet<string> = new Set([
  'ConfigMap kube-root-ca.crt',
  'ConfigMap openshift-service-ca.crt',
  'ServiceAccount builder',
  'ServiceAccount default',
  'ServiceAccount deployer',
]);

export interface NamespaceContentsOptions {
  /** Null: resources do not live in Kubernetes. */
  objects: Pick<KubernetesObjects, 'list' | 'deleteAll'> | null;
  store: Pick<ResourceStore, 'list' | 'delete'>;
}

/**
 * What is in a namespace that is neither Posthorn's nor Kubernetes' own, as `Kind name`; what cannot be listed counts as there. Events, Leases and
 * objects of kinds that are not known here do not count.
 */
export async function foreignContents({ objects, store }: NamespaceContentsOptions, namespace: string): Promise<string[]> {
  const found: string[] = [];
  for (const kind of objects === null ? [] : kinds) {
    const items = await unlessRefused(() => objects?.list(kind, { namespace }) ?? Promise.resolve({ items: [] }));
    if (items === null) found.push(`${kind.plural}, which the controller may not list`);
    else found.push(...items.map(({ name }) => `${kind.kind} ${name}`).filter((each) => !inEveryNamespace.has(each)));
  }
  const secrets = await unlessRefused(() => foreignSecrets(store, namespace));
  if (secrets === null) found.push('secrets, which the controller may not list');
  else found.push(...secrets.map((name) => `Secret ${name}`));
  return found;
}

/** Deletes the resources of an organization from its namespace; the Secrets that the API has made for them are theirs, and go with them. */
export async function deleteResources({ objects, store }: NamespaceContentsOptions, namespace: string): Promise<void> {
  for (const kind of configurationKinds.filter((each) => each !== 'Organization')) {
    if (objects !== null) {
      await objects.deleteAll({ apiVersion, kind, plural: definitionOf(kind).plural }, namespace);
      continue;
    }
    for (let continueToken: string | undefined; ; ) {
      const page = await store.list(kind, { namespace, ...(continueToken !== undefined && { continueToken }) });
      for (const { metadata } of page.items) await store.delete(kind, { namespace, name: metadata.name }).catch(unlessGone);
      continueToken = page.continueToken;
      if (continueToken === undefined) break;
    }
  }
}

function unlessGone(error: unknown): void {
  if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
}

/** Names of the foreign Secrets on the first page that has some. */
async function foreignSecrets(store: Pick<ResourceStore, 'list'>, namespace: string): Promise<{ items: string[] }> {
  for (let continueToken: string | undefined; ; ) {
    const page = await store.list('Secret', { namespace, ...(continueToken !== undefined && { continueToken }) });
    const items = page.items.filter(({ metadata }) => !isOwnSecret(metadata)).map(({ metadata }) => metadata.name);
    continueToken = page.continueToken;
    if (items.length > 0 || continueToken === undefined) return { items };
  }
}

/** The API has made it, or Kubernetes for a ServiceAccount. */
function isOwnSecret({ labels, annotations }: ObjectMeta): boolean {
  return labels?.['app.kubernetes.io/managed-by'] === 'posthorn' || annotations?.['kubernetes.io/service-account.name'] !== undefined;
}

/** Null: the right is missing. A kind that the server does not serve has no objects. */
async function unlessRefused<T>(list: () => Promise<{ items: T[] }>): Promise<T[] | null> {
  try {
    return (await list()).items;
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return [];
    if (isPosthornError(error, 'FORBIDDEN') || error instanceof RightsPending) return null;
    throw error;
  }
}
