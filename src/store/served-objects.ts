import { defaultInstallation } from '../core/default-installation.ts';
import type { Kind, ObjectOf } from '../resources/kinds.ts';
import type { ResourceCache } from './cache.ts';
import type { Key } from './store.ts';

type Organization = ObjectOf<'Organization'>;

/** Target of a reflector. */
export type ReflectorSink<K extends Kind> = Pick<ResourceCache<K>, 'kind' | 'size' | 'upsert' | 'remove' | 'replace'>;

/** Data of an Organization, of whichever installation. */
interface Claim {
  name: string;
  uid: string;
  namespace: string;
  installation: string;
  /** Orders the claims of one namespace: the least has it. */
  rank: string;
}

/** The installation that serves the Organization. */
export function installationOf({ spec }: { spec: { installation?: string | undefined } }): string {
  return spec.installation ?? defaultInstallation;
}

/**
 * Which objects an installation serves: its own Organizations, and what is in a namespace that no Organization of another installation has. Of several
 * Organizations that name a namespace the oldest has it. Everything else is kept from the caches and evaluated again when the Organizations change.
 */
export class ServedObjects {
  readonly #installation: string | null;
  readonly #claims = new Map<string, Claim>();
  readonly #byNamespace = new Map<string, Set<Claim>>();
  readonly #sinks: NamespacedSink<Kind>[] = [];
  readonly #listeners = new Set<(namespace: string) => void>();

  /** `installation`: null serves those of all. */
  constructor(installation: string | null) {
    this.#installation = installation;
  }

  /** Whether the namespace is that of an Organization of another installation. */
  isElsewhere(namespace: string): boolean {
    if (this.#installation === null) return false;
    let owner: Claim | undefined;
    for (const claim of this.#byNamespace.get(namespace) ?? []) if (owner === undefined || claim.rank < owner.rank) owner = claim;
    return owner !== undefined && owner.installation !== this.#installation;
  }

  /** Called when a namespace has gone to another installation, or come from there. Returns the function that ends it. */
  onChange(listener: (namespace: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Where the reflector of the cache puts what it sees. */
  before<K extends Kind>(cache: ResourceCache<K>): ReflectorSink<K> {
    if (this.#installation === null || cache.kind === 'Namespace') return cache;
    if (cache.kind === 'Organization') {
      const sink = new OrganizationSink(this, cache as unknown as ResourceCache<'Organization'>);
      return sink as unknown as ReflectorSink<K>;
    }
    const sink = new NamespacedSink(cache, (namespace) => this.isElsewhere(namespace));
    this.#sinks.push(sink as unknown as NamespacedSink<Kind>);
    return sink;
  }

  /** `organization`: as recorded last. */
  serves({ metadata }: Organization): boolean {
    return this.#installation === null || this.#claims.get(metadata.name)?.installation === this.#installation;
  }

  /**
   * Notes the Organization of this name; null: it is gone. Its installation never changes: where the API server has lost the field, with
   * CustomResourceDefinitions of an earlier release, the Organization stays with the one that it was seen with.
   */
  note(name: string, organization: Organization | null): void {
    const before = this.#claims.get(name);
    if (before !== undefined) {
      const claims = this.#byNamespace.get(before.namespace);
      claims?.delete(before);
      if (claims?.size === 0) this.#byNamespace.delete(before.namespace);
      this.#claims.delete(name);
    }
    if (organization === null) return;
    const seen = claimOf(organization);
    const claim = before?.uid === seen.uid ? { ...seen, installation: before.installation } : seen;
    this.#claims.set(name, claim);
    const claims = this.#byNamespace.get(claim.namespace);
    if (claims === undefined) this.#byNamespace.set(claim.namespace, new Set([claim]));
    else claims.add(claim);
  }

  uidOf(name: string): string | undefined {
    return this.#claims.get(name)?.uid;
  }

  namespacesOf(organizations: readonly Organization[]): Set<string> {
    const known = organizations.map(({ metadata }) => this.#claims.get(metadata.name)?.namespace ?? '');
    return new Set([...known, ...organizations.map(({ spec }) => spec.namespace)]);
  }

  get claimed(): { names: string[]; namespaces: string[] } {
    return { names: [...this.#claims.keys()], namespaces: [...this.#byNamespace.keys()] };
  }

  /** Makes a change to the Organizations; then moves what is in those of the namespaces that have gone to another installation or come from there. */
  settle(namespaces: ReadonlySet<string>, change: () => void): void {
    const before = new Map([...namespaces].map((namespace) => [namespace, this.isElsewhere(namespace)]));
    change();
    const moved = new Set([...before].filter(([namespace, was]) => was !== this.isElsewhere(namespace)).map(([namespace]) => namespace));
    if (moved.size === 0) return;
    for (const sink of this.#sinks) sink.judgeAgain(moved);
    for (const namespace of moved) for (const listener of this.#listeners) listener(namespace);
  }
}

function claimOf(organization: Organization): Claim {
  const { name, uid, creationTimestamp, deletionTimestamp } = organization.metadata;
  // One that is being deleted has its namespace until another one has.
  const rank = `${deletionTimestamp === undefined ? 0 : 1} ${creationTimestamp} ${uid}`;
  return { name, uid, namespace: organization.spec.namespace, installation: installationOf(organization), rank };
}

/** Adds the Organizations of the installation to the cache, and records all. */
class OrganizationSink implements ReflectorSink<'Organization'> {
  readonly kind = 'Organization';
  readonly #served: ServedObjects;
  readonly #cache: ResourceCache<'Organization'>;

  constructor(served: ServedObjects, cache: ResourceCache<'Organization'>) {
    this.#served = served;
    this.#cache = cache;
  }

  get size(): number {
    return this.#cache.size;
  }

  upsert(object: Organization): void {
    this.#served.settle(this.#served.namespacesOf([object]), () => {
      this.#served.note(object.metadata.name, object);
      if (this.#served.serves(object)) this.#cache.upsert(object);
      else this.#withdraw(object.metadata);
    });
  }

  remove(object: Organization): void {
    this.#served.settle(this.#served.namespacesOf([object]), () => {
      // Another one may have its name.
      if (this.#served.uidOf(object.metadata.name) === object.metadata.uid) this.#served.note(object.metadata.name, null);
      this.#cache.remove(object);
    });
  }

  replace(objects: readonly Organization[]): void {
    const { names, namespaces } = this.#served.claimed;
    this.#served.settle(new Set([...namespaces, ...this.#served.namespacesOf(objects)]), () => {
      const present = new Set(objects.map(({ metadata }) => metadata.name));
      for (const name of names) if (!present.has(name)) this.#served.note(name, null);
      for (const object of objects) this.#served.note(object.metadata.name, object);
      this.#cache.replace(objects.filter((object) => this.#served.serves(object)));
    });
  }

  #withdraw(key: Key): void {
    const there = this.#cache.get(key);
    if (there !== undefined) this.#cache.remove(there);
  }
}

/** Keeps from the cache what is in the namespaces of other installations. */
class NamespacedSink<K extends Kind> implements ReflectorSink<K> {
  readonly kind: K;
  readonly #cache: ResourceCache<K>;
  readonly #isElsewhere: (namespace: string) => boolean;
  /** By namespace, then by name. */
  readonly #kept = new Map<string, Map<string, ObjectOf<K>>>();

  constructor(cache: ResourceCache<K>, isElsewhere: (namespace: string) => boolean) {
    this.kind = cache.kind;
    this.#cache = cache;
    this.#isElsewhere = isElsewhere;
  }

  get size(): number {
    return this.#cache.size;
  }

  upsert(object: ObjectOf<K>): void {
    if (this.#isElsewhere(object.metadata.namespace ?? '')) {
      const there = this.#cache.get(object.metadata);
      if (there !== undefined) this.#cache.remove(there);
      this.#keep(object);
      return;
    }
    this.#kept.get(object.metadata.namespace ?? '')?.delete(object.metadata.name);
    this.#cache.upsert(object);
  }

  remove(object: ObjectOf<K>): void {
    const { namespace = '', name, uid } = object.metadata;
    const kept = this.#kept.get(namespace);
    if (kept?.get(name)?.metadata.uid === uid) kept.delete(name);
    if (kept?.size === 0) this.#kept.delete(namespace);
    this.#cache.remove(object);
  }

  replace(objects: readonly ObjectOf<K>[]): void {
    this.#kept.clear();
    const served = objects.filter((object) => !this.#isElsewhere(object.metadata.namespace ?? ''));
    if (served.length < objects.length)
      for (const object of objects) if (this.#isElsewhere(object.metadata.namespace ?? '')) this.#keep(object);
    this.#cache.replace(served);
  }

  judgeAgain(namespaces: ReadonlySet<string>): void {
    for (const object of this.#cache.list()) {
      const { namespace = '' } = object.metadata;
      if (!namespaces.has(namespace) || !this.#isElsewhere(namespace)) continue;
      this.#keep(object);
      this.#cache.remove(object);
    }
    for (const namespace of namespaces) {
      if (this.#isElsewhere(namespace)) continue;
      const kept = this.#kept.get(namespace);
      this.#kept.delete(namespace);
      for (const object of kept?.values() ?? []) this.#cache.upsert(object);
    }
  }

  #keep(object: ObjectOf<K>): void {
    const { namespace = '', name } = object.metadata;
    const kept = this.#kept.get(namespace) ?? new Map<string, ObjectOf<K>>();
    this.#kept.set(namespace, kept.set(name, this.#cache.asKept(object)));
  }
}
