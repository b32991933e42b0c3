import { setTimeout as pause } from 'node:timers/promises';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { type FieldNode, fieldTree } from '../../resources/field-tree.ts';
import { kinds, type ObjectOf, type PosthornObject } from '../../resources/kinds.ts';
import { versionOf } from '../../store/store.ts';
import type { Call, Place } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { nouns } from './nouns.ts';
import { facadeManager, fieldManaged, foreignManagers, ownedSpec } from './owned-spec.ts';
import { markAnnotation } from './request-marks.ts';
import { slugCandidates } from './slug.ts';
import { forClients, isQuotaUsedUp } from './store-errors.ts';

export type Spec = Record<string, unknown>;

/** One slug and no other, or the first free one of those that begin with it. */
export type WantedSlug = { exact: string } | { base: string };

const changeAttempts = 10;
const maxSlugs = 1000;

/** Slugs that creates of this process are trying at the moment, so that equal names do not race for the same one. */
const beingTried = new Set<string>();

/**
 * Makes an object under `slug.exact`, or under the first free one of `slug.base`, `-2`, `-3`, …: the store's
 * ALREADY_EXISTS decides, so that slugs are unique over all replicas. FORBIDDEN beyond the limit of the organization.
 * `mark` is left on it (`request-marks.ts`).
 */
export async function createObject<K extends ServedKind>(
  call: Call,
  kind: K,
  slug: WantedSlug,
  specFor: (slug: string) => Promise<Spec>,
  mark = call.idempotency?.mark,
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
          metadata: { name, namespace, ...(mark !== undefined && { annotations: { [markAnnotation]: mark } }) },
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

/**
 * FORBIDDEN when the organization has as many of the kind as its limit says, or would have more than that; in a cluster its ResourceQuota says
 * the same to everybody.
 */
export function refuseBeyondLimit(call: Call, kind: ServedKind, wouldHave?: number): void {
  const { namespace, objectsPerKind } = call.caller.organization;
  if (objectsPerKind === null || (wouldHave ?? call.services.caches[kind].list(namespace).length + 1) <= objectsPerKind) return;
  throw beyondLimit(call, kind, wouldHave);
}

function beyondLimit({ caller: { organization } }: Call, kind: ServedKind, wouldHave?: number): PosthornError {
  const { plan, objectsPerKind } = organization;
  const objects = `${nouns[kind]}s`;
  const has = `has ${objectsPerKind === null ? '' : `${objectsPerKind} `}${objects}, as many as`;
  const is = wouldHave === undefined ? has : `would have ${wouldHave} ${objects}, more than the ${objectsPerKind} that`;
  return new PosthornError('FORBIDDEN', `The organization ${is} its plan (${plan}) or its limit allows; delete some, or have it raised.`);
}

/**
 * Changes a spec under the rules of field ownership: reads, computes what `posthorn-api` applies, and
 * applies it to that version; again when somebody was faster. `load` reads the object, `desiredSpec` gets what it read.
 */
export async function changeSpec<K extends ServedKind>(
  call: Place,
  kind: K,
  load: () => Promise<ObjectOf<K>>,
  desiredSpec: (current: ObjectOf<K>) => Promise<Spec>,
  beforeApply: (current: ObjectOf<K>) => Promise<void> = async () => {},
): Promise<{ before: ObjectOf<K>; after: ObjectOf<K> }> {
  for (let attempt = 1; ; attempt++) {
    const before = await load();
    const spec = planChange(before, await desiredSpec(before));
    if (spec === null) return { before, after: before };
    await beforeApply(before);
    try {
      const after = await applySpec(call, kind, before, spec);
      return { before, after };
    } catch (error) {
      if (!isPosthornError(error, 'CONFLICT')) throw forClients(error, kind);
      if (attempt === changeAttempts) {
        const message = `The ${nouns[kind]} is being changed by others at this moment; send the request again.`;
        throw new PosthornError('CONFLICT', message, { cause: error });
      }
      await pause(attempt * (5 + 10 * Math.random()));
    }
  }
}

/** What `posthorn-api` applies to make the spec so; null when it is so. FIELD_MANAGED when something foreign would change or have to go. */
export function planChange<K extends ServedKind>(object: ObjectOf<K>, desired: Spec): Spec | null {
  return ownedSpec(specTrees[object.kind], object.spec, desired, object.metadata.managedFields ?? []);
}

function applySpec<K extends ServedKind>(call: Place, kind: K, { metadata }: ObjectOf<K>, spec: Spec): Promise<ObjectOf<K>> {
  const { name, namespace } = metadata;
  return call.services.store.apply(
    { kind, metadata: { name, namespace }, spec },
    { manager: facadeManager, ifVersion: versionOf({ metadata }) },
  );
}

/** Deletes exactly this object; that it is gone already is as good. */
export async function deleteObject(
  call: Place,
  { kind, metadata: { name, namespace, uid } }: { kind: ServedKind; metadata: { name: string; namespace?: string; uid: string } },
): Promise<void> {
  try {
    await call.services.store.delete(kind, { name, namespace }, { uid });
  } catch (error) {
    if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
  }
}

/** FIELD_MANAGED when another manager owns something in the spec: who declares an object deletes it. */
export function refuseForeign(object: PosthornObject<ServedKind>): void {
  const managers = foreignManagers(object.metadata.managedFields ?? []);
  if (managers.length > 0) throw fieldManaged({ [`${object.kind} "${object.metadata.name}"`]: managers });
}

const specTrees: Record<ServedKind, FieldNode> = {
  Source: fieldTree(kinds.Source.spec),
  Destination: fieldTree(kinds.Destination.spec),
  Route: fieldTree(kinds.Route.spec),
  Filter: fieldTree(kinds.Filter.spec),
  Transform: fieldTree(kinds.Transform.spec),
  PayloadSchema: fieldTree(kinds.PayloadSchema.spec),
  NotificationChannel: fieldTree(kinds.NotificationChannel.spec),
  HttpCronJob: fieldTree(kinds.HttpCronJob.spec),
  ApiKey: fieldTree(kinds.ApiKey.spec),
  WebhookEventType: fieldTree(kinds.WebhookEventType.spec),
};
