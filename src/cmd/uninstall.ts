import { z } from 'zod';
import type { Clock } from '../core/clock.ts';
import { isPosthornError, PosthornError } from '../core/errors.ts';
import { listAll } from '../store/all-objects.ts';
import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import { installationOf } from '../store/served-objects.ts';
import type { Key, ResourceStore } from '../store/store.ts';
import { release, releaseManager } from './bootstrap-release.ts';

export interface UninstallOptions {
  api: Pick<KubernetesApi, 'request'>;
  store: Pick<ResourceStore, 'list' | 'delete' | 'apply'>;
  clock: Clock;
  /** Where the installation is. */
  namespace: string;
  /** The Organizations of others are not touched. */
  installation: string;
  /** Name of the controllers' Deployment. */
  controller: string;
  /** Organizations are deleted, by their deletionPolicy, while the controllers can still clean up after them. */
  deletesOrganizations: boolean;
  /** The kinds themselves go afterwards, with every Organization of the cluster. */
  deletesCrds: boolean;
  write(line: string): void;
}

const pollMs = 500;
/** Organizations that an error names. */
const namedMax = 5;
const goneDeadlineMs = 120_000;
const scaled = z.looseObject({ spec: z.looseObject({ replicas: z.int().default(1) }) });

/**
 * Steps before the objects of an installation are deleted, so that nothing is left that waits for a missing controller:
 * deletes the pools of workers, which finish what they have begun, stops the controllers, and takes their finalizer off the
 * organizations that stay. Controllers that are scaled to 0 are not waited for. Throws INVALID_CONFIG, before anything is done, where the kinds are to go
 * and another installation has Organizations.
 */
export async function uninstall(options: UninstallOptions): Promise<void> {
  const { write } = options;
  if (options.deletesCrds) await requireNoOthers(options);
  await deletePools(options);
  if (options.deletesOrganizations) {
    const names = await organizations(options);
    for (const name of names) await deleteForGood(options, 'Organization', { name });
    const isGone = await controllersBringAbout(options, async () => (await organizations(options)).length === 0);
    write(isGone ? `organizations deleted: ${names.length}` : 'the controllers have not cleaned up after all organizations');
  }
  await stopControllers(options);
  const left = await organizations(options);
  for (const name of left) {
    await unlessGone(
      options.store.apply({ kind: 'Organization', metadata: { name, finalizers: [] } }, { manager: 'posthorn-controller', force: true }),
    );
  }
  write(`controllers stopped; organizations that stay: ${left.length}`);
}

/** With the kinds the Organizations of every installation would go. */
async function requireNoOthers(options: UninstallOptions): Promise<void> {
  const others = (await listAll(options.store, 'Organization')).filter((each) => installationOf(each) !== options.installation);
  if (others.length === 0) return;
  const named = others.slice(0, namedMax).map((each) => `${each.metadata.name} (${installationOf(each)})`);
  const rest = others.length > namedMax ? ` and ${others.length - namedMax} more` : '';
  throw new PosthornError(
    'INVALID_CONFIG',
    `nothing is uninstalled: the CRDs would go with the release, and other installations have Organizations: ${named.join(', ')}${rest}. Upgrade the release with crds.keep=true before, or delete these Organizations.`,
  );
}

async function deletePools(options: UninstallOptions): Promise<void> {
  const { store, namespace, write } = options;
  const list = async () => (await store.list('DeliveryPool', { namespace })).items.map(({ metadata }) => metadata.name);
  const names = await list();
  for (const name of names) await deleteForGood(options, 'DeliveryPool', { namespace, name });
  const isGone = await controllersBringAbout(options, async () => (await list()).length === 0);
  write(isGone ? `pools of workers deleted: ${names.length}` : 'the controllers have not ended all pools of workers');
  for (const name of isGone ? [] : await list()) {
    const object = { kind: 'DeliveryPool' as const, metadata: { namespace, name, finalizers: [] } };
    await unlessGone(store.apply(object, { manager: 'posthorn-controller', force: true }));
  }
}

/** The controllers would make again what the installation requires. */
async function deleteForGood({ store }: UninstallOptions, kind: 'DeliveryPool' | 'Organization', key: Key): Promise<void> {
  await unlessGone(store.apply({ kind, metadata: { ...key, ...release } }, { manager: releaseManager, force: true }));
  await unlessGone(store.delete(kind, key));
}

async function stopControllers(options: UninstallOptions): Promise<void> {
  const path = controllersPath(options);
  await unlessGone(options.api.request('DELETE', path, { query: { propagationPolicy: 'Foreground' } }));
  // In the foreground: the Deployment goes once its pods are gone.
  const isGone = await waitUntil(options, async () => (await unlessGone(options.api.request('GET', path))) === undefined);
  if (!isGone) options.write(`the pods of ${options.controller} do not end`);
}

/** False when they have not done it in time, or are scaled to 0 and never will. */
async function controllersBringAbout(options: UninstallOptions, holds: () => Promise<boolean>): Promise<boolean> {
  const isOver = async () => (await holds()) || (await areScaledToZero(options));
  return (await waitUntil(options, isOver)) && (await holds());
}

async function areScaledToZero(options: UninstallOptions): Promise<boolean> {
  const deployment = await unlessGone(options.api.request('GET', controllersPath(options)));
  return deployment !== undefined && scaled.parse(deployment).spec.replicas === 0;
}

function controllersPath({ namespace, controller }: UninstallOptions): string {
  return `/apis/apps/v1/namespaces/${namespace}/deployments/${controller}`;
}

/** Names of those of the installation. */
async function organizations(options: UninstallOptions): Promise<string[]> {
  const all = await listAll(options.store, 'Organization');
  return all.filter((each) => installationOf(each) === options.installation).map(({ metadata }) => metadata.name);
}

/** Undefined when there is no such object, or kind. */
async function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return undefined;
    throw error;
  }
}

/** False when it does not hold in time. */
async function waitUntil({ clock }: UninstallOptions, holds: () => Promise<boolean>): Promise<boolean> {
  const untilMs = clock.now() + goneDeadlineMs;
  while (!(await holds())) {
    if (clock.now() >= untilMs) return false;
    await clock.sleep(pollMs);
  }
  return true;
}
