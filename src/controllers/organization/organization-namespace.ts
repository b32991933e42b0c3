import type { Refusal } from '../../compile/compiled.ts';
import { defaultInstallation } from '../../core/default-installation.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { NamespaceObject, PosthornObject } from '../../resources/kinds.ts';
import type { ObjectMeta } from '../../resources/metadata.ts';
import type { ResourceCache } from '../../store/cache.ts';
import { installationOf } from '../../store/served-objects.ts';
import type { ResourceStore } from '../../store/store.ts';
import { idOf, isLive } from '../held-ids.ts';

/** On the namespace of an organization: the organization's name. */
export const organizationLabel = 'posthorn.dev/organization';
/** On the namespace of an organization of another installation than `default`: the name of that. */
const installationLabel = 'posthorn.dev/installation';
/** On a namespace that no installation may touch: `true`. */
const protectedLabel = 'posthorn.dev/protected';
/** On a namespace that was made for an organization and goes with it: the organization's uid. */
const madeForAnnotation = 'posthorn.dev/made-for';
const manager = 'posthorn-controller';

/**
 * `ready`: there and labelled. `gone`: it was there, and was deleted. `waiting`: it cannot be had now; its change will
 * trigger a retry. `protected`: the same, and Posthorn may not use it.
 */
export type NamespaceState = { state: 'ready'; uid: string } | { state: 'gone' | 'waiting' | 'protected'; unresolved: Refusal };

function wasMadeFor(organization: ObjectMeta, namespace: NamespaceObject): boolean {
  const madeFor = namespace.metadata.annotations?.[madeForAnnotation];
  return (
    madeFor !== undefined &&
    (madeFor === organization.uid ||
      idOf('Organization', { metadata: { uid: madeFor } }) === idOf('Organization', { metadata: organization }))
  );
}

function labelsOf(organization: PosthornObject<'Organization'>): Record<string, string> {
  const installation = installationOf(organization);
  return {
    [organizationLabel]: organization.metadata.name,
    ...(installation !== defaultInstallation && { [installationLabel]: installation }),
  };
}

export function protectedNamespace(name: string): Refusal {
  const message = `the namespace ${name} is the namespace of the installation or has the label ${protectedLabel}; an organization cannot use it`;
  return { reason: 'NamespaceProtected', message };
}

/** The namespace of an organization: made when it is missing, adopted when it is there. */
export class OrganizationNamespaces {
  readonly #store: Pick<ResourceStore, 'get' | 'apply' | 'delete'>;
  readonly #cache: ResourceCache<'Namespace'>;
  readonly #ownNamespace: string | null;

  /** `ownNamespace`: that of the installation, which no organization may have; null: it has none. */
  constructor(store: Pick<ResourceStore, 'get' | 'apply' | 'delete'>, cache: ResourceCache<'Namespace'>, ownNamespace: string | null) {
    this.#store = store;
    this.#cache = cache;
    this.#ownNamespace = ownNamespace;
  }

  /** A namespace of the organization that was deleted is not recreated: the deletion was intended. */
  async ensure(organization: PosthornObject<'Organization'>): Promise<NamespaceState> {
    const { metadata, spec, status } = organization;
    const name = spec.namespace;
    const cached = this.#cache.get({ name });
    const namespace = cached ?? (await this.#read(name));
    if (this.#isProtected(name, namespace)) return { state: 'protected', unresolved: protectedNamespace(name) };
    if (namespace === null) {
      if (status?.namespaceUid !== undefined) {
        const message = `the namespace ${name} was deleted; recreate it or delete the Organization`;
        return { state: 'gone', unresolved: { reason: 'NamespaceGone', message } };
      }
      const made = await this.#label(organization, metadata.uid);
      return { state: 'ready', uid: made.metadata.uid };
    }
    if (!isLive(namespace))
      return { state: 'waiting', unresolved: { reason: 'NamespaceTerminating', message: `the namespace ${name} is being deleted` } };
    const madeFor = namespace.metadata.annotations?.[madeForAnnotation];
    const { labels = {} } = namespace.metadata;
    const isLabelled = Object.entries(labelsOf(organization)).every(([label, value]) => labels[label] === value);
    if (!isLabelled || (labels[installationLabel] ?? defaultInstallation) !== installationOf(organization))
      await this.#label(organization, madeFor);
    return { state: 'ready', uid: namespace.metadata.uid };
  }

  /** Whether the namespace is there and was made for this organization, or for an earlier one whose id it has. */
  async isMadeFor({ metadata, spec }: PosthornObject<'Organization'>): Promise<boolean> {
    const namespace = await this.#read(spec.namespace);
    return namespace !== null && isLive(namespace) && !this.#isProtected(spec.namespace, namespace) && wasMadeFor(metadata, namespace);
  }

  /** Whether the namespace exists for good and is this organization's. */
  async isOf({ metadata, spec }: PosthornObject<'Organization'>): Promise<boolean> {
    const namespace = await this.#read(spec.namespace);
    if (namespace === null || !isLive(namespace) || this.#isProtected(spec.namespace, namespace)) return false;
    return namespace.metadata.labels?.[organizationLabel] === metadata.name;
  }

  /**
   * Deletes the namespace (`isToGo`), or takes the label off it; a protected one is left alone. `keepsMark`: another organization with the id may have it
   * as if it were made for that.
   */
  async release(
    { metadata, spec }: PosthornObject<'Organization'>,
    { isToGo, keepsMark }: { isToGo: boolean; keepsMark: boolean },
  ): Promise<void> {
    const namespace = await this.#read(spec.namespace);
    if (namespace === null || !isLive(namespace) || this.#isProtected(spec.namespace, namespace)) return;
    const { labels, annotations, uid } = namespace.metadata;
    const madeFor = annotations?.[madeForAnnotation];
    if (isToGo) await this.#store.delete('Namespace', { name: spec.namespace }, { uid });
    else if (labels?.[organizationLabel] === metadata.name) {
      const marks = keepsMark && madeFor !== undefined ? { annotations: { [madeForAnnotation]: madeFor } } : {};
      await this.#store.apply({ kind: 'Namespace', metadata: { name: spec.namespace, ...marks } }, { manager, force: true });
    }
  }

  /** Uid of the namespace; null: it is not there to stay. */
  async uidOf(name: string): Promise<string | null> {
    const namespace = await this.#read(name);
    return namespace !== null && isLive(namespace) ? namespace.metadata.uid : null;
  }

  #isProtected(name: string, namespace: NamespaceObject | null): boolean {
    return name === this.#ownNamespace || namespace?.metadata.labels?.[protectedLabel] === 'true';
  }

  async #label(organization: PosthornObject<'Organization'>, madeFor: string | undefined): Promise<NamespaceObject> {
    const annotations = madeFor === undefined ? {} : { annotations: { [madeForAnnotation]: madeFor } };
    return this.#store.apply(
      { kind: 'Namespace', metadata: { name: organization.spec.namespace, labels: labelsOf(organization), ...annotations } },
      { manager, force: true },
    );
  }

  /** Uncached: a cache that lags behind must not make a namespace look deleted. */
  async #read(name: string): Promise<NamespaceObject | null> {
    try {
      return await this.#store.get('Namespace', { name });
    } catch (error) {
      if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
      throw error;
    }
  }
}
