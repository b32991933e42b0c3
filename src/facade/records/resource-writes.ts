import type { z } from 'zod';
import { canonicalJson } from '../../core/canonical-json.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { readSecret } from './credentials.ts';
import { awaitGone, awaitInForce } from './in-force.ts';
import { refuseForeignLists } from './leave-routes.ts';
import { find } from './lookup.ts';
import { deleteAll } from './multi-resource-writes.ts';
import { nouns } from './nouns.ts';
import { withOrganizationLock } from './organization-lock.ts';
import type { RecordWrite } from './record-write.ts';
import { madeBefore } from './request-marks.ts';
import type { ResourceFamilyDefinition } from './resource-family-definition.ts';
import { secretRefsIn } from './secret-refs.ts';
import { deleteSecret, SecretDraft, unusedSecrets } from './secrets.ts';
import { refuseReservedSlug, slugOf } from './slug.ts';
import { changeSpec, createObject, deleteObject, refuseForeign, type Spec, type WantedSlug } from './write.ts';

type Definition<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject> = Pick<
  ResourceFamilyDefinition<K, Body, Query>,
  'kind' | 'immutable' | 'toSpec' | 'writesLookAt' | 'beforeDelete'
>;

/** Creates the resource and its Secret, and waits until it is in force. */
export async function createRecord<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  definition: Definition<K, Body, Query>,
  call: Call,
  body: z.output<Body>,
): Promise<ObjectOf<K>> {
  const made = await madeBefore(call, definition.kind);
  const created =
    (made === null ? null : await whole(call, made)) ?? (await writeNew(definition, call, wantedSlug(nouns[definition.kind], body), body));
  await awaitInForce(call, definition.kind, created);
  return created;
}

/** Of an object that has just been made the controllers say after 3 seconds that its Secret is missing. */
const lateSecretMs = 5000;

/** What the same request has made before it was broken off; null when that is only a part, which goes. */
export async function whole<K extends ServedKind>(call: Call, made: ObjectOf<K>): Promise<ObjectOf<K> | null> {
  const timeoutMs = Math.max(call.services.inForceTimeoutMs, lateSecretMs);
  const secrets = await Promise.all(secretRefsIn(made.spec).map((ref) => readSecret(call, made, ref, timeoutMs)));
  if (!secrets.includes(null)) return made;
  await deleteObject(call, made);
  // Its slug is free for what takes its place.
  await awaitGone(call, made.kind, made);
  return null;
}

/** The same without waiting, under a given slug; `mark` as of `createObject`. */
export async function writeNew<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  definition: Definition<K, Body, Query>,
  call: Call,
  slug: WantedSlug,
  body: z.output<Body>,
  mark?: string,
): Promise<ObjectOf<K>> {
  const { kind } = definition;
  return await alone(definition.writesLookAt, call, async (note) => {
    let secrets = new SecretDraft(call, '');
    const specFor = (name: string): Promise<Spec> => {
      secrets = new SecretDraft(call, name);
      return definition.toSpec({ call, body, secrets });
    };
    const object = await createObject(call, kind, slug, specFor, mark);
    note(object);
    try {
      await secrets.store(object);
    } catch (error) {
      await deleteObject(call, object);
      throw error;
    }
    return object;
  });
}

/** Changes the resource and its Secrets, and waits until the change is in force. */
export async function changeRecord<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  definition: Definition<K, Body, Query>,
  call: Call,
  body: z.output<Body>,
): Promise<ObjectOf<K>> {
  const changed = await writeChange(definition, call, call.params['id'] ?? '', body);
  await awaitInForce(call, definition.kind, changed);
  return changed;
}

/** The same without waiting. */
export async function writeChange<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  definition: Definition<K, Body, Query>,
  call: Call,
  idOrSlug: string,
  body: z.output<Body>,
): Promise<ObjectOf<K>> {
  const { kind } = definition;
  const load = (): Promise<ObjectOf<K>> => find(call, kind, idOrSlug);
  return await alone(definition.writesLookAt, call, async (note) => {
    let secrets = new SecretDraft(call, '');
    let desired: Spec = {};
    let unused: string[] = [];
    const desiredSpec = async (current: ObjectOf<K>): Promise<Spec> => {
      await secrets.discard();
      secrets = new SecretDraft(call, current.metadata.name, current);
      const sent = await withoutImmutable(definition, call, current, body);
      desired = await secrets.moved(await definition.toSpec({ call, body: sent, current, secrets }));
      return desired;
    };
    const storeSecrets = async (current: ObjectOf<K>): Promise<void> => {
      unused = await unusedSecrets(call, current, desired);
      await secrets.store({ kind, metadata: current.metadata, spec: desired });
    };
    const { after } = await changeSpec(call, kind, load, desiredSpec, storeSecrets).catch(async (error: unknown) => {
      // After a write without an answer the Secret may be in use; it is owned by the resource and goes with it.
      if (!isPosthornError(error, 'UNAVAILABLE')) await secrets.discard();
      throw error;
    });
    note(after);
    for (const name of unused) await deleteSecret(call, name);
    return after;
  });
}

/** Deletes the resource with what follows from it, and waits until it has left the lists. */
export async function deleteRecord<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  definition: Definition<K, Body, Query>,
  call: Call,
): Promise<ObjectOf<K>> {
  const { kind, beforeDelete } = definition;
  const deleted = await alone(beforeDelete?.looksAt, call, async (note) => {
    const object = await find(call, kind, call.params['id'] ?? '');
    refuseForeign(object);
    await refuseForeignLists(call, [object]);
    await beforeDelete?.run?.(object, call);
    await deleteAll(call, [object], note);
    return object;
  });
  await awaitGone(call, kind, deleted);
  return deleted;
}

function alone<T>(looksAt: readonly ServedKind[] | undefined, call: Call, action: (note: RecordWrite) => Promise<T>): Promise<T> {
  return looksAt === undefined ? action(() => {}) : withOrganizationLock(call, looksAt, action);
}

function wantedSlug(noun: string, body: Record<string, unknown>): WantedSlug {
  const { slug, name } = body;
  if (typeof slug !== 'string') return { base: slugOf(typeof name === 'string' ? name : '', noun.replaceAll(' ', '-')) };
  refuseReservedSlug(slug);
  return { exact: slug };
}

async function withoutImmutable<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  { immutable }: Definition<K, Body, Query>,
  call: Call,
  current: ObjectOf<K>,
  body: z.output<Body>,
): Promise<z.output<Body>> {
  for (const [field, valuesOf] of Object.entries(immutable)) {
    const sent = (body as Record<string, unknown>)[field];
    if (sent === undefined) continue;
    const equal = (await valuesOf(current, call)).some((value) => canonicalJson(value) === canonicalJson(sent));
    if (!equal)
      throw new PosthornError('VALIDATION_FAILED', `${field} cannot be changed.`, { details: { [field]: ['cannot be changed'] } });
  }
  return body;
}
