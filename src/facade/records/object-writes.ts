import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { hopAnnotation, hopOfRequest } from '../../core/hops.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import { type Version, versionOf } from '../../store/store.ts';
import type { Call, CallContext } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { nouns } from './nouns.ts';
import { facadeManager } from './owned-spec.ts';
import { requestKeyAnnotation } from './request-keys.ts';
import { slugCandidates, type WantedSlug } from './slug.ts';
import { forClients, isQuotaUsedUp, pauseBeforeRetry } from './store-errors.ts';
import { beyondLimit, planChange, refuseBeyondLimit, type Spec } from './write-rules.ts';

// Each function makes one write to the store, whole or not at all. `WriteTransaction` alone calls them and orders several of them.

const maxSlugs = 1000;

/** Slugs that creates of this process are trying at the moment, so that equal names do not race for the same one. */
const beingTried = new Set<string>();

/**
 * Makes an object under `slug.exact`, or under the first free one of `slug.base`, `-2`, `-3`, …: the store's
 * ALREADY_EXISTS decides, so that slugs are unique over all replicas. FORBIDDEN beyond the limit of the organization.
 * Stores `mark` on it (`request-keys.ts`).
 */
export async function createObject<K extends ServedKind>(
  call: Call,
  kind: K,
  slug: WantedSlug,
  specFor: (slug: string) => Promise<Spec>,
  mark: string | undefined,
): Promise<ObjectOf<K>> {
  const { namespace } = call.caller.organization;
  const cache = call.services.caches[kind];
  refuseBeyondLimit(call, kind);
  let tried = 0;
  for (const name of 'exact' in slug ? [slug.exact] : slugCandidates(slug.base)) {
    const trying = `${namespace}/${kind}/${name}`;
    if ('base' in slug && (beingTried.has(trying) || cache.get({ namespace, name }) !== undefined)) continue;
    if (++tried > maxSlugs) break;
    beingTried.add(trying);
    try {
      return await call.services.store.create(
        {
          kind,
          metadata: { name, namespace, ...annotated(call, kind, mark) },
          spec: await specFor(name),
        },
        { manager: facadeManager },
      );
    } catch (error) {
      if (isQuotaUsedUp(error)) throw beyondLimit(call, kind);
      if (!isPosthornError(error, 'ALREADY_EXISTS')) throw forClients(error, kind);
      if ('exact' in slug) throw new PosthornError('ALREADY_EXISTS', `There is already a ${nouns[kind]} with the slug "${name}".`);
    } finally {
      beingTried.delete(trying);
    }
  }
  throw new PosthornError('CONFLICT', 'No free slug was found for this name; give a slug.');
}

/** A replay keeps the hops of the request that makes it, for `replay.finished`. FORBIDDEN where these are too many. */
function annotated(call: Call, kind: ServedKind, mark: string | undefined): { annotations?: Record<string, string> } {
  const hop = kind === 'Replay' ? hopOfRequest(call.sentHop) : null;
  const annotations = {
    ...(mark !== undefined && { [requestKeyAnnotation]: mark }),
    ...(hop !== null && { [hopAnnotation]: String(hop) }),
  };
  return Object.keys(annotations).length === 0 ? {} : { annotations };
}

/**
 * Changes a spec under the rules of field ownership: reads, computes what `posthorn-api` applies, and
 * applies it to that version; again after a concurrent change. `load` reads the object, `desiredSpec` gets what it read.
 */
export async function changeSpec<K extends ServedKind>(
  call: CallContext,
  kind: K,
  load: () => Promise<ObjectOf<K>>,
  desiredSpec: (current: ObjectOf<K>) => Promise<Spec>,
  beforeApply: (current: ObjectOf<K>) => Promise<void> = async () => {},
): Promise<ObjectOf<K>> {
  for (let attempt = 1; ; attempt++) {
    const current = await load();
    const spec = planChange(current, await desiredSpec(current));
    if (spec === null) return current;
    await beforeApply(current);
    try {
      const { name, namespace } = current.metadata;
      return await call.services.store.apply(
        { kind, metadata: { name, namespace }, spec },
        { manager: facadeManager, ifVersion: versionOf(current) },
      );
    } catch (error) {
      if (!isPosthornError(error, 'CONFLICT')) throw forClients(error, kind);
      await pauseBeforeRetry(kind, attempt, error);
    }
  }
}

/** Deletes exactly this object, and only as it was read where `version` is given (else CONFLICT). Succeeds if it is absent. */
export async function deleteObject(
  call: CallContext,
  { kind, metadata: { name, namespace, uid } }: { kind: ServedKind; metadata: { name: string; namespace?: string; uid: string } },
  version?: Version,
): Promise<void> {
  try {
    await call.services.store.delete(kind, { name, namespace }, { uid, ...(version !== undefined && { version }) });
  } catch (error) {
    if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
  }
}
