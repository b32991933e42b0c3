import { isDeepStrictEqual } from 'node:util';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { Kind } from '../../resources/kinds.ts';
import { targetsFirst } from '../../resources/references.ts';
import { allObjects } from '../../store/all-objects.ts';
import type { ApplyObject, Key, ResourceStore } from '../../store/store.ts';

/** The field manager of what comes from files. */
const manifestsManager = 'posthorn-manifests';

const concurrency = 16;
// Objects that others lie in or refer to go first, so that most is in force after the first pass.
const order: readonly Kind[] = ['Namespace', 'Organization', 'Secret', ...targetsFirst.filter((kind) => kind !== 'Organization')];

export interface ApplyFailure {
  object: ApplyObject;
  message: string;
  /** The same apply may do later, such as when the namespace has been made. */
  passing: boolean;
  /** Its namespace is that of an Organization among the objects, which has not made it yet. */
  isEarly: boolean;
}

/** Applies sets of manifests, each time only what differs from what it applied before. */
export class ManifestApplier {
  readonly #store: ResourceStore;
  /** Field manager whose objects are never pruned, also when others own a part of them. */
  readonly #protectedManager: string;
  readonly #applied = new Map<string, ApplyObject>();

  constructor(store: ResourceStore, options: { protectedManager: string }) {
    this.#store = store;
    this.#protectedManager = options.protectedManager;
  }

  /** Takes over fields of other owners: in this mode the files take precedence. Rejects never. */
  async apply(objects: readonly ApplyObject[]): Promise<ApplyFailure[]> {
    const failures: ApplyFailure[] = [];
    const awaited = namespacesOf(objects);
    for (const kind of order) {
      const waiting = objects.filter(
        (object) => object.kind === kind && !isDeepStrictEqual(this.#applied.get(idOf(kind, object.metadata)), object),
      );
      await Promise.all(
        Array.from({ length: concurrency }, async () => {
          for (let object = waiting.shift(); object !== undefined; object = waiting.shift()) {
            const failure = await this.#applyOne(object);
            if (failure === null) continue;
            const isEarly = failure.isMissing && awaited.has(object.metadata.namespace ?? '');
            failures.push({ object, message: failure.message, passing: failure.passing, isEarly });
          }
        }),
      );
    }
    return failures;
  }

  /**
   * Deletes the objects that this manager has applied at some time and that are not among `objects`; those that are protected stay, without the fields
   * that it has given them. Returns what is deleted.
   */
  async prune(objects: readonly ApplyObject[]): Promise<string[]> {
    const wanted = new Set(objects.map((object) => idOf(object.kind, object.metadata)));
    const pruned: string[] = [];
    for (const kind of order.toReversed()) {
      for (const { key, managers } of await this.#stored(kind)) {
        const id = idOf(kind, key);
        if (wanted.has(id) || !managers.includes(manifestsManager)) continue;
        if (managers.includes(this.#protectedManager)) {
          await this.#release(kind, key);
          continue;
        }
        try {
          await this.#store.delete(kind, key);
        } catch (error) {
          if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
        }
        this.#applied.delete(id);
        pruned.push(id);
      }
    }
    return pruned;
  }

  async #release(kind: Kind, key: Key): Promise<void> {
    try {
      await this.#store.apply({ kind, metadata: key }, { manager: manifestsManager, force: true });
      this.#applied.delete(idOf(kind, key));
    } catch (error) {
      // Without one of them it would be invalid: it keeps them.
      if (!isPosthornError(error, 'VALIDATION_FAILED')) throw error;
    }
  }

  async #applyOne(object: ApplyObject): Promise<{ message: string; passing: boolean; isMissing: boolean } | null> {
    try {
      await this.#store.apply(object, { manager: manifestsManager, force: true });
      this.#applied.set(idOf(object.kind, object.metadata), object);
      return null;
    } catch (error) {
      if (!(error instanceof PosthornError))
        return { message: error instanceof Error ? error.message : String(error), passing: true, isMissing: false };
      const details = Object.entries(error.details ?? {})
        .flatMap(([field, complaints]) => complaints.map((complaint) => (field === '' ? complaint : `${field}: ${complaint}`)))
        .filter((detail) => !error.message.includes(detail));
      const passing = isPosthornError(error, 'UNAVAILABLE', 'CONFLICT', 'RESOURCE_NOT_FOUND');
      return { message: [error.message, ...details].join('; '), passing, isMissing: isPosthornError(error, 'RESOURCE_NOT_FOUND') };
    }
  }

  async #stored(kind: Kind): Promise<{ key: Key; managers: string[] }[]> {
    const found: { key: Key; managers: string[] }[] = [];
    for await (const { metadata } of allObjects(this.#store, kind)) {
      const managers = (metadata.managedFields ?? []).filter(({ subresource }) => subresource === undefined).map(({ manager }) => manager);
      const { name, namespace } = metadata;
      found.push({ key: namespace === undefined ? { name } : { namespace, name }, managers });
    }
    return found;
  }
}

/** Namespaces that Organizations among the objects make. */
function namespacesOf(objects: readonly ApplyObject[]): ReadonlySet<string> {
  const organizations = objects.filter(({ kind }) => kind === 'Organization');
  return new Set(organizations.flatMap(({ spec }) => (isRecord(spec) && typeof spec['namespace'] === 'string' ? [spec['namespace']] : [])));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function idOf(kind: Kind, key: Key): string {
  return `${kind} ${key.namespace === undefined ? '' : `${key.namespace}/`}${key.name}`;
}
